#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iostream>

#include "layers/search/decision.h"
#include "nlohmann/json.hpp"
#include "tools/l3c/commands.h"
#include "tools/l3c/compile.h"
#include "tools/l3c/disk_cache.h"
#include "tools/l3c/json_lines.h"
#include "tools/l3c/memory_needs.h"
#include "tools/l3c/plan_figures.h"
#include "tools/l3c/tuning.h"

namespace l3c::tools {
namespace {

// `unlowered`: why there is no plan of L0; "" where there is one.
void PrintJson(Compilation& compilation, const Options& options, const std::string& unlowered) {
  for (search::Explanation explanation : compilation.explanations()) {
    if (options.brief && explanation.lowering != "l3->l2") explanation.decisions.clear();
    std::cout << search::RenderExplanationJson(explanation);
  }
  nlohmann::ordered_json evidence = {{"event", "evidence"},
                                     {"calibrated", compilation.evidence_revision().has_value()}};
  if (compilation.evidence_revision()) evidence["revision"] = *compilation.evidence_revision();
  PrintJsonLine(evidence);
  if (const auto& searched = compilation.searched_step()) {
    nlohmann::ordered_json cost = {
        {"event", "cost"}, {"step_time", searched->value}, {"evidence", searched->evidence}};
    if (const auto step = compilation.PredictedStep()) cost["predicted_step_time"] = step->seconds;
    PrintJsonLine(cost);
  }
  for (const SequenceFigures& figures :
       unlowered.empty() ? FiguresOf(compilation.plan()) : std::vector<SequenceFigures>()) {
    PrintJsonLine({{"event", "plan"},
                   {"sequence", figures.sequence},
                   {"split", figures.split},
                   {"kernels", figures.kernels},
                   {"bytes_moved", figures.bytes_moved},
                   {"multiply_adds", figures.multiply_adds}});
  }
  if (unlowered.empty()) {
    PrintJsonLine({{"event", "memory"},
                   {"bytes", static_cast<int64_t>(std::min(BytesOf(compilation.plan()), 9e18))}});
  }
  if (options.timings) {
    for (const Timing& timing : compilation.timings()) {
      PrintJsonLine({{"event", "timing"},
                     {"part", timing.part},
                     {"seconds", timing.seconds},
                     {"cpu_seconds", timing.cpu_seconds}});
    }
  }
  nlohmann::ordered_json done = {{"event", "done"}, {"file", options.file}};
  if (!unlowered.empty()) done["not_lowered"] = unlowered;
  PrintJsonLine(done);
}

void PrintText(Compilation& compilation, const Options& options, const std::string& unlowered) {
  for (const LayerText& text : compilation.texts()) {
    if (text.layer == Layer::kL2) std::cout << text.source->text() << "\n";
  }
  for (const search::Explanation& explanation : compilation.explanations()) {
    if (options.explain && (!options.brief || explanation.lowering == "l3->l2")) {
      std::cout << search::RenderExplanation(explanation) << "\n";
    } else {
      std::cout << explanation.lowering << ": " << explanation.decisions.size() << " decisions, "
                << explanation.report.egraph_nodes << " e-nodes, " << explanation.report.stop_reason
                << "\n"
                << search::RenderRuleTraces(explanation);
    }
  }
  if (!unlowered.empty()) std::cout << "l1->l0: not lowered: " << unlowered << "\n";
  if (!compilation.costs_rest_on().empty()) std::cout << compilation.costs_rest_on() << "\n";
  if (const auto step = compilation.PredictedStep(); step && unlowered.empty()) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", step->seconds * 1e3);
    std::cout << "a training step is predicted to take " << text << " ms\n";
  }
  if (options.timings) {
    for (const Timing& timing : compilation.timings()) {
      std::cout << timing.part << ": " << timing.seconds * 1e3 << " ms\n";
    }
  }
  if (const DiskCache* cache = TheCache(); cache != nullptr && options.explain) {
    std::cout << DescribeReuse(*cache);
  }
  if (!options.explain) std::cout << "--explain shows each decision, what it beat, and why\n";
}

}  // namespace

int Optimize(const Options& options) {
  Compilation compilation(options);
  if (!compilation.Load()) return 1;
  // What can be chosen is told where the rest has no backend.
  std::string unlowered;
  if (compilation.layer() < Layer::kL1) {
    if (!compilation.LowerTo(Layer::kL1)) return 1;
    if (const auto missing = compilation.MissingBackend()) unlowered = missing->message;
  }
  if (unlowered.empty() ? !compilation.LowerTo(Layer::kL0)
                        : !compilation.EveryForcedChoiceExists()) {
    return 1;
  }
  if (unlowered.empty()) {
    if (const int code = TuneIfAsked(compilation, options); code != 0) return code;
  }
  if (options.json) {
    PrintJson(compilation, options, unlowered);
  } else {
    PrintText(compilation, options, unlowered);
  }
  return 0;
}

}  // namespace l3c::tools
