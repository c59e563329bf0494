// How fast kernels run: every candidate schedule of the kernels that training an MLP consists of,
// on one core, against the multiply-add peak and the copy bandwidth measured in the same run.
//
//   kernel_bench [FILTER]           one line for each kernel and schedule
//   kernel_bench --matmul [--threads N] MxKxN …   for each size FORM SIZE MICROSECONDS SCHEDULE of
//   the
//                                   fastest schedule of x·w, xᵀ·w and x·wᵀ; "turned" where a copy
//                                   of wᵀ is made first and is in the time
//
// Times are of the processor, of this thread: others do not count on a busy machine. With several
// threads they are the clock's. GFLOP/s count a multiply-add as two; GB/s count each byte of each
// parameter once.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/llvm/jit.h"
#include "layers/l0/kernel.h"
#include "layers/l0/kernel_schedule.h"
#include "layers/l0/kernel_text.h"
#include "layers/l0/kernel_verify.h"
#include "runtime/worker_team.h"

namespace l3c {
namespace {

// Nothing: one thread.
std::unique_ptr<runtime::WorkerTeam> team;

double Seconds() {
  timespec now;
  clock_gettime(team ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Best of several runs of at least a millisecond each, in seconds a call.
template <typename F>
double Time(const F& f) {
  f();
  int calls = 1;
  double best = 1e9;
  for (int round = 0; round < 12; ++round) {
    const double begin = Seconds();
    for (int i = 0; i < calls; ++i) f();
    const double elapsed = Seconds() - begin;
    best = std::min(best, elapsed / calls);
    if (elapsed < 2e-3) calls = std::max(calls * 2, static_cast<int>(2e-3 / best));
  }
  return best;
}

constexpr const char* kPeak = R"(
kernel peak(x: in f32 [384], y: out f32 [384]) {
    axis i : loop 24 tile 24
    axis j : loop 16 tile 16 vector 16
    axis k : reduce 100000
    %0 = load x[16*i + j]
    %1 = load x[j]
    %2 = mul %0, %1
    %3 = reduce_add %2 over k
    store y[16*i + j], %3
})";

struct Workload {
  const char* name;
  std::string text;
};

std::string S(int64_t x) { return std::to_string(x); }

// y[i, j] = Σ_k a·b; strides of a in (i, k) and of b in (k, j). `pairs`: k of them.
std::string Matmul(const std::string& name, int64_t m, int64_t k, int64_t n, int64_t ai, int64_t ak,
                   int64_t bk, int64_t bj, bool pairs = false) {
  const auto term = [](int64_t c, const char* axis) {
    return (c == 1 ? std::string() : S(c) + "*") + axis;
  };
  const std::string factor = pairs ? "u32" : "f32";
  return "kernel " + name + "(a: in " + factor + " [" + S(m * k) + "], b: in " + factor + " [" +
         S(k * n) + "], y: out f32 [" + S(m * n) + "]) {\n  axis i : loop " + S(m) +
         "\n  axis j : loop " + S(n) + "\n  axis k : reduce " + S(k) + "\n  %0 = load a[" +
         term(ai, "i") + " + " + term(ak, "k") + "]\n  %1 = load b[" + term(bk, "k") + " + " +
         term(bj, "j") + "]\n  %2 = " + (pairs ? "bf16_dot" : "mul") +
         " %0, %1\n  %3 = reduce_add %2 over k\n  store y[" + S(n) + "*i + j], %3\n}\n";
}

constexpr const char* kLayerNorm = R"(
kernel layer_norm(x: in f32 [128, 256], g: in f32 [256], b: in f32 [256], y: out f32 [128, 256]) {
    axis i : loop 128
    axis j : loop 256
    axis k : reduce 256
    %0 = load x[256*i + k]
    %1 = reduce_add %0 over k
    %2 = const f32 0.00390625
    %3 = mul %1, %2
    %4 = neg %3
    %5 = add %0, %4
    %6 = mul %5, %5
    %7 = reduce_add %6 over k
    %8 = mul %7, %2
    %9 = const f32 1e-5
    %10 = add %8, %9
    %11 = sqrt %10
    %12 = reciprocal %11
    %13 = load x[256*i + j]
    %14 = add %13, %4
    %15 = mul %14, %12
    %16 = load g[j]
    %17 = mul %15, %16
    %18 = load b[j]
    %19 = add %17, %18
    store y[256*i + j], %19
})";

constexpr const char* kGelu = R"(
kernel gelu(x: in f32 [32768], y: out f32 [32768]) {
    axis i : loop 32768
    %0 = load x[i]
    %1 = const f32 0.044715
    %2 = mul %0, %0
    %3 = mul %2, %0
    %4 = mul %3, %1
    %5 = add %0, %4
    %6 = const f32 -2.302208198
    %7 = mul %5, %6
    %8 = exp2 %7
    %9 = const f32 1
    %10 = add %8, %9
    %11 = reciprocal %10
    %12 = mul %0, %11
    store y[i], %12
})";

constexpr const char* kAdam = R"(
kernel adam(g: in f32 [200704], m: inout f32 [200704], v: inout f32 [200704],
            p: inout f32 [200704], s: in f32 [2]) {
    axis i : loop 200704
    %0 = load g[i]
    %1 = load m[i]
    %2 = const f32 0.9
    %3 = mul %1, %2
    %4 = const f32 0.1
    %5 = mul %0, %4
    %6 = add %3, %5
    %7 = load v[i]
    %8 = const f32 0.999
    %9 = mul %7, %8
    %10 = mul %0, %0
    %11 = const f32 0.001
    %12 = mul %10, %11
    %13 = add %9, %12
    %14 = load s[0]
    %15 = load s[1]
    %16 = mul %13, %15
    %17 = sqrt %16
    %18 = const f32 1e-8
    %19 = add %17, %18
    %20 = reciprocal %19
    %21 = mul %6, %20
    %22 = mul %21, %14
    %23 = load p[i]
    %24 = neg %22
    %25 = add %23, %24
    store m[i], %6
    store v[i], %13
    store p[i], %25
})";

constexpr const char* kSoftmax = R"(
kernel softmax(x: in f32 [128, 10], y: out f32 [128, 10]) {
    axis i : loop 128
    axis j : loop 10
    axis k : reduce 10
    %0 = load x[10*i + k]
    %1 = reduce_max %0 over k
    %2 = neg %1
    %3 = add %0, %2
    %4 = const f32 1.4426950408889634
    %5 = mul %3, %4
    %6 = exp2 %5
    %7 = reduce_add %6 over k
    %8 = reciprocal %7
    %9 = load x[10*i + j]
    %10 = add %9, %2
    %11 = mul %10, %4
    %12 = exp2 %11
    %13 = mul %12, %8
    store y[10*i + j], %13
})";

constexpr const char* kColumns = R"(
kernel column_sums(x: in f32 [128, 256], y: out f32 [256]) {
    axis j : loop 256
    axis i : reduce 128
    %0 = load x[256*i + j]
    %1 = reduce_add %0 over i
    store y[j], %1
})";

// The gradient of a weight with the optimiser's update in its epilogue: the gradient is never
// stored.
constexpr const char* kUpdate = R"(
kernel dw_adam(x: in f32 [128, 784], d: in f32 [128, 256], m: inout f32 [784, 256],
               v: inout f32 [784, 256], p: inout f32 [784, 256], s: in f32 [2]) {
    axis i : loop 784
    axis j : loop 256
    axis b : reduce 128
    %0 = load x[i + 784*b]
    %1 = load d[j + 256*b]
    %2 = mul %0, %1
    %3 = reduce_add %2 over b
    %4 = load m[256*i + j]
    %5 = const f32 0.9
    %6 = mul %4, %5
    %7 = const f32 0.1
    %8 = mul %3, %7
    %9 = add %6, %8
    %10 = load v[256*i + j]
    %11 = const f32 0.999
    %12 = mul %10, %11
    %13 = mul %3, %3
    %14 = const f32 0.001
    %15 = mul %13, %14
    %16 = add %12, %15
    %17 = load s[0]
    %18 = load s[1]
    %19 = mul %16, %18
    %20 = sqrt %19
    %21 = const f32 1e-8
    %22 = add %20, %21
    %23 = reciprocal %22
    %24 = mul %9, %23
    %25 = mul %24, %17
    %26 = neg %25
    %27 = load p[256*i + j]
    %28 = add %27, %26
    store m[256*i + j], %9
    store v[256*i + j], %16
    store p[256*i + j], %28
})";

constexpr const char* kLinearGelu = R"(
kernel linear_gelu(x: in f32 [128, 784], w: in f32 [784, 256], c: in f32 [256],
                   h: out f32 [128, 256], y: out f32 [128, 256]) {
    axis i : loop 128
    axis j : loop 256
    axis k : reduce 784
    %0 = load x[784*i + k]
    %1 = load w[j + 256*k]
    %2 = mul %0, %1
    %3 = reduce_add %2 over k
    %4 = load c[j]
    %5 = add %3, %4
    %6 = const f32 0.044715
    %7 = mul %5, %5
    %8 = mul %7, %5
    %9 = mul %8, %6
    %10 = add %5, %9
    %11 = const f32 -2.302208198
    %12 = mul %10, %11
    %13 = exp2 %12
    %14 = const f32 1
    %15 = add %13, %14
    %16 = reciprocal %15
    %17 = mul %5, %16
    store h[256*i + j], %5
    store y[256*i + j], %17
})";

std::vector<Workload> Workloads() {
  return {
      {"forward 128x784x256", Matmul("forward", 128, 784, 256, 784, 1, 256, 1)},
      {"forward 128x256x256", Matmul("forward2", 128, 256, 256, 256, 1, 256, 1)},
      {"forward 128x256x10", Matmul("forward3", 128, 256, 10, 256, 1, 10, 1)},
      {"dW 1024x1024x1024", Matmul("dw4", 1024, 1024, 1024, 1, 1024, 1024, 1)},
      {"dW 384x2048x1536", Matmul("dw5", 384, 2048, 1536, 1, 384, 1536, 1)},
      {"dW 784x128x256", Matmul("dw", 784, 128, 256, 1, 784, 256, 1)},
      {"dW 256x128x10", Matmul("dw3", 256, 128, 10, 1, 256, 10, 1)},
      {"dX 128x256x256", Matmul("dx", 128, 256, 256, 256, 1, 1, 256)},
      {"dX 128x10x256", Matmul("dx3", 128, 10, 256, 10, 1, 1, 10)},
      {"forward 512x1024x1024", Matmul("forward4", 512, 1024, 1024, 1024, 1, 1024, 1)},
      {"forward 16x4096x4096", Matmul("forward5", 16, 4096, 4096, 4096, 1, 4096, 1)},
      {"bf16 128x784x256", Matmul("bf16_1", 128, 392, 256, 392, 1, 256, 1, true)},
      {"bf16 512x1024x1024", Matmul("bf16_2", 512, 512, 1024, 512, 1, 1024, 1, true)},
      {"bf16 2048x384x1536", Matmul("bf16_3", 2048, 192, 1536, 192, 1, 1536, 1, true)},
      {"dW 784x128x256 and Adam", kUpdate},
      {"forward 128x784x256, bias, gelu", kLinearGelu},
      {"layer norm 128x256", kLayerNorm},
      {"gelu 128x256", kGelu},
      {"adam 784x256", kAdam},
      {"softmax 128x10", kSoftmax},
      {"column sums 128x256", kColumns},
  };
}

l0::Kernel Parse(const std::string& text) {
  const support::SourceFile source("bench", text);
  support::Diagnostics diagnostics(&source);
  support::ParserBase parser(source, diagnostics);
  std::optional<l0::Kernel> kernel = l0::ParseKernel(parser);
  if (!kernel || !l0::VerifyKernel(*kernel, diagnostics)) {
    std::fprintf(stderr, "%s", diagnostics.Render(false).c_str());
    std::exit(1);
  }
  return std::move(*kernel);
}

struct Buffer {
  explicit Buffer(size_t bytes) : data(bytes / 4 + 32, 0.25f) {}
  void* get() {
    const auto address = reinterpret_cast<uintptr_t>(data.data());
    return reinterpret_cast<void*>((address + 63) / 64 * 64);
  }
  std::vector<float> data;
};

double TimeKernel(const l0::Kernel& kernel, llvm_backend::KernelFn run) {
  std::vector<Buffer> buffers;
  std::vector<void*> params;
  for (const l0::Param& param : kernel.params) {
    buffers.emplace_back(static_cast<size_t>(tensor::NumElements(param.shape)) *
                         tensor::SizeOf(param.dtype));
  }
  for (Buffer& buffer : buffers) params.push_back(buffer.get());
  const int64_t blocks = l0::NumBlocks(kernel);
  return Time([&] {
    if (team) {
      team->Run(run, params.data(), blocks);
    } else {
      run(params.data(), 0, blocks);
    }
  });
}

l0::ScheduleTarget TargetOf(const llvm_backend::Jit& jit, int workers) {
  return {.vector_registers = jit.vector_registers(),
          .lanes = 16,
          .workers = workers,
          .tiles = jit.has_tiles()};
}

// Vector loads and stores of the stack in the emitted code: registers that did not suffice.
int CountSpills(const std::string& assembly) {
  int spills = 0;
  for (size_t at = 0; at < assembly.size();) {
    const size_t end = std::min(assembly.find('\n', at), assembly.size());
    const std::string line = assembly.substr(at, end - at);
    at = end + 1;
    if (line.find("mm") != std::string::npos && line.find("(%rsp)") != std::string::npos) ++spills;
  }
  return spills;
}

struct Best {
  double seconds = 1e9;
  std::string schedule;
};

// The fastest schedule of a kernel, by its time. Nothing and a message when one does not compile.
std::optional<Best> FastestOf(llvm_backend::Jit& jit, const std::string& text, int workers) {
  static int number = 0;
  const l0::Kernel kernel = Parse(text);
  Best best;
  for (const l0::Schedule& schedule : l0::CandidateSchedules(kernel, TargetOf(jit, workers))) {
    if (schedule.name == "plain" && best.seconds < 1e9) continue;  // a thousand times as long
    l0::Kernel scheduled = l0::ApplySchedule(kernel, schedule);
    scheduled.name += "_" + std::to_string(number++);
    if (const absl::Status status = jit.Compile({&scheduled, 1}); !status.ok()) {
      std::fprintf(stderr, "%s: %s\n", schedule.name.c_str(), status.ToString().c_str());
      return std::nullopt;
    }
    const double seconds = TimeKernel(scheduled, jit.Find(scheduled.name));
    if (seconds < best.seconds) best = {seconds, schedule.name};
  }
  return best;
}

std::string Turned(int64_t rows, int64_t columns) {
  return "kernel turned(x: in f32 [" + S(rows * columns) + "], y: out f32 [" + S(rows * columns) +
         "]) {\n  axis i : loop " + S(rows) + "\n  axis j : loop " + S(columns) +
         "\n  %0 = load x[" + S(rows) + "*j + i]\n  store y[" + S(columns) + "*i + j], %0\n}\n";
}

int TimeMatmuls(llvm_backend::Jit& jit, int argc, char** argv) {
  int first = 2;
  int workers = 2;
  if (argc > 3 && std::strcmp(argv[2], "--threads") == 0) {
    workers = std::atoi(argv[3]);
    if (workers < 1 || workers > 64) {
      std::fprintf(stderr, "error: --threads takes 1 to 64\n");
      return 2;
    }
    if (workers > 1) team = std::make_unique<runtime::WorkerTeam>(workers);
    first = 4;
  }
  for (int i = first; i < argc; ++i) {
    long long m = 0, k = 0, n = 0;
    char rest = 0;
    if (std::sscanf(argv[i], "%lldx%lldx%lld%c", &m, &k, &n, &rest) != 3 ||
        std::min({m, k, n}) < 1 || std::max({m, k, n}) > 1 << 14) {
      std::fprintf(stderr, "error: '%s' is not MxKxN with extents from 1 to 16384\n", argv[i]);
      return 2;
    }
    const auto nn = FastestOf(jit, Matmul("nn", m, k, n, k, 1, n, 1), workers);
    auto tn = FastestOf(jit, Matmul("tn", m, k, n, 1, m, n, 1), workers);
    auto nt = FastestOf(jit, Matmul("nt", m, k, n, k, 1, 1, k), workers);
    const auto turned_x = FastestOf(jit, Turned(m, k), workers);
    const auto turned_w = FastestOf(jit, Turned(k, n), workers);
    if (!nn || !tn || !nt || !turned_x || !turned_w) return 1;
    const auto or_turned = [&](Best& own, const Best& turned) {
      const double seconds = nn->seconds + turned.seconds;
      if (seconds < own.seconds) own = {seconds, "turned, " + nn->schedule};
    };
    or_turned(*tn, *turned_x);
    or_turned(*nt, *turned_w);
    const std::pair<const char*, const Best*> forms[] = {
        {"x*w", &*nn}, {"xT*w", &*tn}, {"x*wT", &*nt}};
    for (const auto& [form, best] : forms) {
      std::printf("%s %s %.3f %s\n", form, argv[i], best->seconds * 1e6, best->schedule.c_str());
    }
    std::fflush(stdout);
  }
  return 0;
}

int Main(int argc, char** argv) {
  const std::string filter = argc > 1 ? argv[1] : "";
  auto jit = llvm_backend::Jit::Create({.threads = 1, .keep_text = true});
  if (!jit.ok()) return 1;
  if (filter == "--matmul") return TimeMatmuls(**jit, argc, argv);
  const l0::Kernel peak = Parse(kPeak);
  if (!(*jit)->Compile({&peak, 1}).ok()) return 1;
  const double peak_flops = 2.0 * 384 * 100000 / TimeKernel(peak, (*jit)->Find("peak"));
  std::printf("peak: %.0f GFLOP/s on one core\n", peak_flops / 1e9);
  {
    Buffer from(64 << 20);
    Buffer to(64 << 20);
    const double seconds = Time([&] { std::memcpy(to.get(), from.get(), 64 << 20); });
    std::printf("copy of 64 MiB: %.1f GB/s\n", 2.0 * (64 << 20) / seconds / 1e9);
  }
  for (const Workload& workload : Workloads()) {
    if (std::string(workload.name).find(filter) == std::string::npos) continue;
    const l0::Kernel kernel = Parse(workload.text);
    const l0::KernelWork work = l0::CountWork(kernel);
    const double flops = 2 * work.multiply_adds + 4 * work.bf16_dots + work.simple_flops;
    std::printf("%s\n", workload.name);
    int number = 0;
    for (const l0::Schedule& schedule : l0::CandidateSchedules(kernel, TargetOf(**jit, 2))) {
      if (schedule.name == "plain" && number > 0) continue;  // a thousand times as long
      l0::Kernel scheduled = l0::ApplySchedule(kernel, schedule);
      scheduled.name += "_" + std::to_string(number++);
      const double begin = Seconds();
      const absl::Status status = (*jit)->Compile({&scheduled, 1});
      const double compile = Seconds() - begin;
      if (!status.ok()) {
        std::printf("  %s: %s\n", schedule.name.c_str(), status.ToString().c_str());
        continue;
      }
      const double seconds = TimeKernel(scheduled, (*jit)->Find(scheduled.name));
      std::printf(
          "  %-18s %9.2f us  %7.1f GFLOP/s %5.1f %% of peak  %6.1f GB/s  %4lld blocks  "
          "%3d spills  compiled in %.1f ms\n",
          schedule.name.c_str(), seconds * 1e6, flops / seconds / 1e9,
          100 * flops / seconds / peak_flops,
          (work.bytes_read + work.bytes_written) / seconds / 1e9,
          static_cast<long long>(schedule.blocks), CountSpills((*jit)->Assembly(scheduled.name)),
          compile * 1e3);
    }
  }
  return 0;
}

}  // namespace
}  // namespace l3c

int main(int argc, char** argv) { return l3c::Main(argc, argv); }
