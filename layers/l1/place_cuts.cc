#include "layers/l1/place_cuts.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

namespace l3c::l1 {
namespace {

constexpr double kNoCut = std::numeric_limits<double>::infinity();

// (n over k), or more than kAllCuts where it is that.
double CutsOf(size_t layers, size_t stages) {
  double count = 1;
  for (size_t i = 1; i < stages; ++i) {
    count = count * static_cast<double>(layers - i) / static_cast<double>(i);
    if (count > kAllCuts && 2 * i < layers) return count;
  }
  return count;
}

// Every way to give the layers to so many stages, each at least one.
void ListCuts(size_t layers, size_t stages, Cut& begun, std::vector<Cut>& all) {
  if (stages == 1) {
    begun.push_back(layers);
    all.push_back(begun);
    begun.pop_back();
    return;
  }
  for (size_t first = 1; first + stages - 1 <= layers; ++first) {
    begun.push_back(first);
    ListCuts(layers - first, stages - 1, begun, all);
    begun.pop_back();
  }
}

// Bytes of parameters and gradients of some layers.
double OwnBytes(const StepDemand& demand, size_t first, size_t end) {
  double bytes = 0;
  for (size_t l = first; l < end; ++l) bytes += 2 * demand.layers[l].parameter_bytes;
  return bytes;
}

// The cut whose slowest stage takes least; nothing where none fits.
template <typename Fits>
std::optional<Cut> Balanced(const StepDemand& demand, const PlacementModel& model, const Site& site,
                            int64_t micro_batches, const Fits& fits) {
  const size_t layers = demand.layers.size(), stages = site.parts();
  // By stage, then by the layer behind it: what the slowest so far takes, and where it begins.
  std::vector<std::vector<double>> least(stages, std::vector<double>(layers + 1, kNoCut));
  std::vector<std::vector<size_t>> begin(stages, std::vector<size_t>(layers + 1, 0));
  for (size_t s = 0; s < stages; ++s) {
    for (size_t end = s + 1; end + (stages - 1 - s) <= layers; ++end) {
      for (size_t first = s; first < (s == 0 ? 1 : end); ++first) {
        const double before = s == 0 ? 0 : least[s - 1][first];
        if (before == kNoCut || !fits(s, first, end)) continue;
        const double slowest =
            std::max(before, model.StageTime(site, s, first, end, micro_batches));
        if (slowest >= least[s][end]) continue;
        least[s][end] = slowest;
        begin[s][end] = first;
      }
    }
  }
  if (least[stages - 1][layers] == kNoCut) return std::nullopt;
  Cut cut(stages);
  for (size_t s = stages, end = layers; s-- > 0;) {
    cut[s] = end - begin[s][end];
    end = begin[s][end];
  }
  return cut;
}

}  // namespace

std::string CutLabel(const Cut& cut) {
  std::string label;
  for (size_t layers : cut) label += (label.empty() ? "" : "|") + std::to_string(layers);
  return label;
}

Cut EvenCut(size_t layers, size_t stages) {
  Cut even(stages, layers / stages);
  for (size_t s = 0; s < layers % stages; ++s) ++even[s];
  return even;
}

std::vector<Cut> Shifted(const Cut& cut) {
  std::vector<Cut> all;
  for (size_t s = 0; s + 1 < cut.size(); ++s) {
    for (const bool forwards : {false, true}) {
      Cut moved = cut;
      if (--moved[forwards ? s : s + 1] == 0) continue;
      ++moved[forwards ? s + 1 : s];
      all.push_back(std::move(moved));
    }
  }
  return all;
}

void FindCuts(const StepDemand& demand, const PlacementModel& model, int64_t most_in_flight,
              Site& site) {
  const size_t layers = demand.layers.size(), stages = site.parts();
  const double batches = static_cast<double>(most_in_flight) * demand.batch_bytes;
  const auto fits = [&](size_t stage, size_t first, size_t end) {
    return OwnBytes(demand, first, end) + batches <= model.Capacity(site.memories[stage]);
  };
  std::vector<Cut> all;
  site.all_cuts = CutsOf(layers, stages) <= kAllCuts;
  if (site.all_cuts) {
    Cut begun;
    ListCuts(layers, stages, begun, all);
  } else {
    std::set<Cut> near = {EvenCut(layers, stages)};
    for (int64_t parts : demand.micro_batches) {
      if (const auto best = Balanced(demand, model, site, parts, fits)) near.insert(*best);
    }
    const std::set<Cut> begun = near;
    for (const Cut& cut : begun) {
      for (Cut& moved : Shifted(cut)) near.insert(std::move(moved));
    }
    all.assign(near.begin(), near.end());
  }
  site.most.assign(stages, 0);
  for (Cut& cut : all) {
    std::vector<double> own(stages, 0);
    bool fit = true;
    for (size_t s = 0, first = 0; s < stages; first += cut[s++]) {
      own[s] = OwnBytes(demand, first, first + cut[s]);
      fit = fit && fits(s, first, first + cut[s]);
    }
    if (!fit) continue;
    for (size_t s = 0; s < stages; ++s) site.most[s] = std::max(site.most[s], own[s]);
    site.cuts.push_back(std::move(cut));
  }
}

}  // namespace l3c::l1
