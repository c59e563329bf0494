#include "cost/probe.h"

#include <algorithm>
#include <cstdlib>

#include "layers/l0/kernel_axes.h"
#include "layers/l0/kernel_schedule.h"
#include "layers/l0/kernel_text.h"
#include "layers/support/diagnostics.h"
#include "layers/support/source.h"

namespace l3c::cost {
namespace {

std::string S(int64_t n) { return std::to_string(n); }

// The texts below are this file's own.
l0::Kernel Parsed(std::string text) {
  const support::SourceFile source("probe", std::move(text));
  support::Diagnostics diagnostics(&source);
  support::ParserBase parser(source, diagnostics);
  std::optional<l0::Kernel> kernel = l0::ParseKernel(parser);
  if (!kernel) std::abort();
  return *std::move(kernel);
}

l0::Kernel Product(Probe probe, const Extents& extents) {
  const auto [m, n, k] = extents;
  const std::string a = probe == Probe::kAtb ? S(m) + "*k + i" : S(k) + "*i + k";
  const std::string b = probe == Probe::kAbt ? S(k) + "*j + k" : S(n) + "*k + j";
  return Parsed(
      "kernel probe(a: in f32 [" + S(m * k) + "], b: in f32 [" + S(k * n) + "], y: out f32 [" +
      S(m * n) + "]) {\n  axis i : loop " + S(m) + "\n  axis j : loop " + S(n) +
      "\n  axis k : reduce " + S(k) + "\n  %0 = load a[" + a + "]\n  %1 = load b[" + b +
      "]\n  %2 = mul %0, %1\n  %3 = reduce_add %2 over k\n  store y[" + S(n) + "*i + j], %3\n}\n");
}

l0::Kernel TileProduct(const Extents& extents) {
  const auto [m, n, k] = extents;
  return Parsed(
      "kernel probe(a: in u32 [" + S(m * k) + "], b: in u32 [" + S(k * n) + "], y: out f32 [" +
      S(m * n) + "]) {\n  axis i : loop " + S(m) + " tile 16\n  axis j : loop " + S(n) +
      " tile 16 vector 16\n  axis k : reduce " + S(k) + " tile 16\n  %0 = load a[" + S(k) +
      "*i + k]\n  %1 = load b[" + S(n) +
      "*k + j]\n  %2 = bf16_dot %0, %1\n  %3 = reduce_add %2 over k in tiles\n  store y[" + S(n) +
      "*i + j], %3\n}\n");
}

l0::Kernel Sum(Probe probe, const Extents& extents) {
  const int64_t rows = extents[0];
  const int64_t columns = extents[1];
  const bool of_rows = probe == Probe::kRows;
  const std::string kept = of_rows ? "i" : "j";
  const std::string summed = of_rows ? "j" : "i";
  return Parsed("kernel probe(x: in f32 [" + S(rows * columns) + "], y: out f32 [" +
                S(of_rows ? rows : columns) + "]) {\n  axis " + kept + " : loop " +
                S(of_rows ? rows : columns) + "\n  axis " + summed + " : reduce " +
                S(of_rows ? columns : rows) + "\n  %0 = load x[" + S(columns) +
                "*i + j]\n  %1 = reduce_add %0 over " + summed + "\n  store y[" + kept +
                "], %1\n}\n");
}

l0::Kernel Map(int64_t elements) {
  return Parsed(
      "kernel probe(x: in f32 [" + S(elements) + "], y: out f32 [" + S(elements) +
      "]) {\n  axis i : loop " + S(elements) +
      "\n  %0 = load x[i]\n  %1 = const f32 0.5\n  %2 = mul %0, %1\n  store y[i], %2\n}\n");
}

l0::Kernel Turned(int64_t rows, int64_t columns) {
  return Parsed("kernel probe(x: in f32 [" + S(rows * columns) + "], y: out f32 [" +
                S(rows * columns) + "]) {\n  axis j : loop " + S(columns) + "\n  axis i : loop " +
                S(rows) + "\n  %0 = load x[" + S(columns) + "*i + j]\n  store y[" + S(rows) +
                "*j + i], %0\n}\n");
}

// Of a kernel without sums and products.
Likeness LikeMap(const l0::Kernel& kernel, const std::vector<l0::AxisSet>& free) {
  std::optional<l0::AxisId> along;  // of the largest store
  double most = -1;
  const auto points = [&](l0::UopId id) {
    double product = 1;
    for (l0::AxisId axis : l0::AxesIn(free[id])) {
      product *= static_cast<double>(kernel.axes[axis].extent);
    }
    return product;
  };
  for (l0::UopId id = 0; id < kernel.uops.size(); ++id) {
    const l0::Uop& uop = kernel.uops[id];
    if (uop.op != l0::UOp::kStore || points(id) <= most) continue;
    most = points(id);
    along.reset();
    for (const auto& [axis, coefficient] : uop.index.terms) {
      if (coefficient == 1 && kernel.axes[axis].extent > 1) along = axis;
    }
  }
  Likeness like{Probe::kMap, {1, 1, 1}};
  double bytes = 0;
  for (const l0::ParamBytes& param : l0::CountBytes(kernel)) bytes += param.read + param.written;
  like.extents[0] = std::max<int64_t>(1, static_cast<int64_t>(bytes / 8));
  for (l0::UopId id = 0; along && id < kernel.uops.size(); ++id) {
    const l0::Uop& uop = kernel.uops[id];
    if (uop.op != l0::UOp::kLoad || l0::CoefficientOf(uop.index, *along) < 2) continue;
    for (const auto& [axis, coefficient] : uop.index.terms) {
      if (coefficient != 1 || points(id) * 2 < most) continue;
      const int64_t columns = kernel.axes[axis].extent;
      return {Probe::kTurned,
              {std::max<int64_t>(1, static_cast<int64_t>(points(id)) / columns), columns, 1}};
    }
  }
  return like;
}

}  // namespace

std::string_view ProbeName(Probe probe) {
  switch (probe) {
    case Probe::kAb:
      return "product ab";
    case Probe::kAtb:
      return "product atb";
    case Probe::kAbt:
      return "product abt";
    case Probe::kRows:
      return "sum rows";
    case Probe::kColumns:
      return "sum columns";
    case Probe::kMap:
      return "map";
    case Probe::kTurned:
      return "turned";
    case Probe::kTiles:
      return "product tiles";
  }
  return "";
}

std::optional<Probe> FindProbe(std::string_view name) {
  for (Probe probe : kProbes) {
    if (ProbeName(probe) == name) return probe;
  }
  return std::nullopt;
}

l0::Kernel ProbeKernel(Probe probe, const Extents& extents) {
  switch (probe) {
    case Probe::kRows:
    case Probe::kColumns:
      return Sum(probe, extents);
    case Probe::kMap:
      return Map(extents[0]);
    case Probe::kTurned:
      return Turned(extents[0], extents[1]);
    case Probe::kTiles:
      return TileProduct(extents);
    default:
      return Product(probe, extents);
  }
}

std::vector<Extents> ProbeShapes(Probe probe) {
  std::vector<Extents> shapes;
  const auto add = [&](std::initializer_list<int64_t> sizes) {
    for (int64_t a : sizes) {
      for (int64_t b : sizes) {
        if (!IsProduct(probe)) {
          shapes.push_back({a, b, 1});
          continue;
        }
        for (int64_t c : sizes) shapes.push_back({a, b, c});
      }
    }
  };
  if (probe == Probe::kMap) {
    for (int shift : {22, 10, 16, 25, 13, 19, 7}) shapes.push_back({int64_t{1} << shift, 1, 1});
  } else if (probe == Probe::kTiles) {
    add({16, 128, 1024});
    shapes.push_back({128, 10, 128});
    shapes.push_back({1280, 1280, 640});
    add({64, 512});
  } else if (IsProduct(probe)) {
    // Powers of two share sets of the caches where others do not, so that both are needed.
    add({16, 128, 1024});
    add({48, 320});
    shapes.push_back({16, 4096, 4096});
    shapes.push_back({128, 10, 256});  // a last layer: columns that are no multiple of a vector
    add({32, 256, 2048});
    add({80, 640});
    shapes.push_back({1280, 1280, 1280});
  } else {
    add({16, 256, 4096});
    add({64, 1024});
    add({48, 640});
  }
  return shapes;
}

l0::Kernel ChainKernel(std::string_view op, int length, int64_t elements) {
  std::string text = "kernel chain(x: in f32 [" + S(elements) + "], y: out f32 [" + S(elements) +
                     "]) {\n  axis i : loop " + S(elements) + "\n" + "  %0 = load x[i]\n";
  int last = 0;
  int next = 1;
  if (op == "add") {
    text += "  %1 = const f32 0.001\n";
    next = 2;
  }
  const auto apply = [&](const std::string& name, const std::string& more) {
    text += "  %" + S(next) + " = " + name + " %" + S(last) + more + "\n";
    last = next++;
  };
  for (int n = 0; n < length; ++n) {
    apply(op == "recip" ? "reciprocal" : std::string(op), op == "add" ? ", %1" : "");
    if (op == "log2") apply("exp2", "");
  }
  return Parsed(text + "  store y[i], %" + S(last) + "\n}\n");
}

l0::Kernel MultiplyAddKernel(int lanes, int chains, int64_t length, bool pairs) {
  const std::string size = S(static_cast<int64_t>(lanes) * chains);
  return Parsed("kernel peak(x: in " + std::string(pairs ? "u32" : "f32") + " [" + size +
                "], y: out f32 [" + size + "]) {\n  axis i : loop " + S(chains) + " tile " +
                S(chains) + "\n  axis j : loop " + S(lanes) + " tile " + S(lanes) + " vector " +
                S(lanes) + "\n  axis k : reduce " + S(length) + "\n  %0 = load x[" + S(lanes) +
                "*i + j]\n  %1 = load x[j]\n  %2 = " + (pairs ? "bf16_dot" : "mul") + " %0, %1\n" +
                "  %3 = reduce_add %2 over k\n  store y[" + S(lanes) + "*i + j], %3\n}\n");
}

std::optional<Likeness> ProbeLike(const l0::Kernel& kernel) {
  if (kernel.axes.size() > l0::kMaxAxes) return std::nullopt;
  const std::vector<l0::AxisSet> free = l0::FreeAxes(kernel);
  const auto extent_of = [&](l0::AxisSet axes) {
    int64_t points = 1;
    for (l0::AxisId axis : l0::AxesIn(axes)) points *= kernel.axes[axis].extent;
    return points;
  };
  int64_t stored = 1;  // points of the largest store
  for (l0::UopId id = 0; id < kernel.uops.size(); ++id) {
    if (kernel.uops[id].op == l0::UOp::kStore) stored = std::max(stored, extent_of(free[id]));
  }
  std::optional<Likeness> found;
  const bool sums = std::any_of(kernel.uops.begin(), kernel.uops.end(),
                                [](const l0::Uop& uop) { return uop.op == l0::UOp::kReduce; });
  if (!sums) {
    const l0::KernelWork work = l0::CountWork(kernel);
    if (work.divides + work.transcendentals > 0) return std::nullopt;
    return LikeMap(kernel, free);
  }
  for (l0::UopId id = 0; id < kernel.uops.size(); ++id) {
    const l0::Uop& reduce = kernel.uops[id];
    if (reduce.op != l0::UOp::kReduce) continue;
    int64_t summed = 1;
    l0::AxisSet bound = 0;
    for (l0::AxisId axis : reduce.axes) {
      summed *= kernel.axes[axis].extent;
      bound |= l0::AxisBit(axis);
    }
    const l0::Uop& operand = kernel.uops[reduce.src[0]];
    const auto contiguous = [&](const l0::Uop& load) {
      for (l0::AxisId axis : reduce.axes) {
        if (std::abs(l0::CoefficientOf(load.index, axis)) == 1) return true;
      }
      return false;
    };
    Likeness like;
    const bool product = l0::IsProduct(operand) &&
                         kernel.uops[operand.src[0]].op == l0::UOp::kLoad &&
                         kernel.uops[operand.src[1]].op == l0::UOp::kLoad;
    if (product) {
      const l0::AxisSet left = free[operand.src[0]] & ~bound;
      const l0::AxisSet right = free[operand.src[1]] & ~bound;
      const l0::AxisSet both = left & right;
      if (extent_of(left & ~both) == 1 && extent_of(right & ~both) == 1) return std::nullopt;
      const bool left_along = contiguous(kernel.uops[operand.src[0]]);
      const bool right_along = contiguous(kernel.uops[operand.src[1]]);
      like.probe = reduce.in_tiles ? Probe::kTiles
                   : right_along   ? Probe::kAbt
                   : left_along    ? Probe::kAb
                                   : Probe::kAtb;
      // Products side by side are as if their rows were longer, but for columns that are read
      // across: those lie as far apart as one product is wide.
      const l0::AxisSet rows = like.probe == Probe::kAtb ? left & ~both : left;
      like.extents = {extent_of(rows), extent_of(right & ~both), summed};
      if (found && found->probe != Probe::kRows && found->probe != Probe::kColumns) {
        return std::nullopt;
      }
      found = like;
    } else if (!found && operand.op == l0::UOp::kLoad) {
      const int64_t kept = extent_of(free[id]);
      // What stores more than its sums spends its time otherwise, as a norm does.
      if (stored > kept) return std::nullopt;
      const bool rows = contiguous(operand);
      like.probe = rows ? Probe::kRows : Probe::kColumns;
      like.extents = rows ? Extents{kept, summed, 1} : Extents{summed, kept, 1};
      found = like;
    }
  }
  return found;
}

}  // namespace l3c::cost
