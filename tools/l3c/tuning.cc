#include "tools/l3c/tuning.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "nlohmann/json.hpp"
#include "tools/l3c/disk_cache.h"
#include "tools/l3c/evidence_store.h"
#include "tools/l3c/files.h"
#include "tools/l3c/json_lines.h"
#include "tools/l3c/progress.h"
#include "tools/l3c/progress_bar.h"
#ifdef L3C_HAS_LLVM
#include "tools/l3c/jit_kernels.h"
#include "tools/l3c/tune/step_timer.h"
#include "tools/l3c/tune/tuner.h"
#include "tools/l3c/tune/verdict.h"
#endif

namespace l3c::tools {

#ifdef L3C_HAS_LLVM
namespace {

using nlohmann::ordered_json;
using tune::Record;
using tune::Trial;

constexpr char kKind[] = "tuning";

void OnInterrupt(int) {
  static volatile std::sig_atomic_t asked = 0;
  if (asked) _exit(130);
  asked = 1;
  tune::InterruptTiming();
}

// All that the measurements depend on, beside the build of l3c.
std::string KeyOf(const Compilation& compilation, const Options& options) {
  std::ostringstream key;
  const auto add = [&](const std::string& part) { key << part.size() << ":" << part; };
  for (const LayerText& text : compilation.texts()) {
    if (text.layer == Layer::kL1) add(std::string(text.source->text()));
  }
  add(options.numerics);
  add(options.search);
  add(std::to_string(options.memory.value_or(0)));
  add(std::to_string(options.threads));
  add(compilation.costs_rest_on());
  add(Fingerprint(ThisTarget()));
  for (const std::string& name : options.without) add(name);
  for (const auto& [name, count] : options.budget) add(name + "=" + std::to_string(count));
  for (const auto& [id, label] : options.force) add(id + "=" + label);
  for (const std::string& file : options.rule_files) {
    add(ReadFile(file, support::SourceFile::kMaxBytes).value_or(""));
  }
  // The plan itself: what the evidence file says, say, is all in here.
  for (const LayerText& text : compilation.texts()) {
    if (text.layer == Layer::kL0) add(std::string(text.source->text()));
  }
  return key.str();
}

// Those of the pipeline whose steps are timed: of the first phase.
std::vector<search::Decision> DecisionsOf(const Compilation& compilation,
                                          const search::Explanation& explanation) {
  const std::string prefix = "l0/" + compilation.placement().schedule.phases.front().pipeline + "/";
  std::vector<search::Decision> decisions;
  for (const search::Decision& decision : explanation.decisions) {
    if (decision.id.starts_with(prefix)) decisions.push_back(decision);
  }
  return decisions;
}

std::string Percent(double ratio) {
  char text[48];
  std::snprintf(text, sizeof text, "%+.1f %%", (ratio - 1) * 100);
  return text;
}

size_t TurnsOf(const Record& record) {
  size_t turns = 0;
  for (const Trial& trial : record.trials) turns += trial.ratios.size();
  return turns;
}

// What became of a trial, in words.
std::string FateOf(const Record& record, size_t t) {
  const Trial& trial = record.trials[t];
  if (!trial.refused.empty()) return trial.refused;
  if (trial.ratios.empty()) return "not measured";
  if (static_cast<int>(t) == tune::Winner(record)) return "taken";
  if (tune::Faster(trial)) return trial.checked ? "faster, another more so" : "not checked yet";
  return "within the noise, or slower";
}

void TellJson(const Record& record, bool reused, bool losers) {
  for (size_t t = 0; losers && t < record.trials.size(); ++t) {
    const Trial& trial = record.trials[t];
    ordered_json line = {{"event", "trial"},
                         {"label", trial.Label()},
                         {"turns", trial.ratios.size()},
                         {"what", FateOf(record, t)}};
    if (!trial.ratios.empty()) line["ratio"] = tune::MedianRatio(trial);
    PrintJsonLine(line);
  }
  const int winner = tune::Winner(record);
  ordered_json line = {{"event", "tuned"},
                       {"plans", record.trials.size()},
                       {"turns", TurnsOf(record)},
                       {"spent_seconds", record.spent_seconds},
                       {"reused", reused}};
  if (winner >= 0) {
    const Trial& trial = record.trials[static_cast<size_t>(winner)];
    line["taken"] = trial.Label();
    line["force"] = trial.forced;
    line["ratio"] = tune::MedianRatio(trial);
  } else {
    line["taken"] = nullptr;
  }
  PrintJsonLine(line);
}

void Tell(const Record& record, bool reused, bool all) {
  std::ostream& out = std::cerr;
  if (all) {
    out << "tuning: steps beside the predicted best's, medians of turns\n";
    std::vector<size_t> order(record.trials.size());
    for (size_t t = 0; t < order.size(); ++t) order[t] = t;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return tune::MedianRatio(record.trials[a]) < tune::MedianRatio(record.trials[b]);
    });
    for (size_t t : order) {
      const Trial& trial = record.trials[t];
      if (trial.ratios.empty() && trial.refused.empty()) continue;
      out << "  " << (trial.ratios.empty() ? std::string("–") : Percent(tune::MedianRatio(trial)))
          << "  " << trial.ratios.size() << " turns  " << trial.Label() << ": " << FateOf(record, t)
          << "\n";
    }
  }
  out << "tuned in " << Duration(record.spent_seconds) << (reused ? " before" : "") << ", "
      << TurnsOf(record) << " turns of " << record.trials.size() << " plans: ";
  if (TurnsOf(record) == 0) {
    out << "no step was timed, because the time ended while the plans were made; a longer --tune "
           "goes on from here\n";
    return;
  }
  const int winner = tune::Winner(record);
  if (winner < 0) {
    out << "none is faster than the predicted best beyond the noise, which stays\n";
    return;
  }
  const Trial& trial = record.trials[static_cast<size_t>(winner)];
  out << "a step takes " << Percent(tune::MedianRatio(trial)) << " with " << trial.Label() << "\n";
}

}  // namespace

int TuneIfAsked(Compilation& compilation, const Options& options) {
  if (!options.tune) return 0;
  DiskCache* cache = TheCache();
  const std::string key = KeyOf(compilation, options);
  Record record;
  if (cache != nullptr) {
    if (const auto kept = cache->Load(kKind, "steps", key)) {
      record = tune::ReadRecord(*kept).value_or(Record());
    }
  }
  const bool reused = record.done || record.spent_seconds >= *options.tune;
  if (!reused) {
    std::string why;
    // What other kernels would cost is searched for by the joint search alone; tiles are known
    // anyway.
    const auto begun = std::chrono::steady_clock::now();
    const bool losers = options.search == "egraph";
    const auto explained = compilation.PlanWith({{}, {}, losers, /*kept=*/true}, why);
    if (!explained) return EnvironmentError("--tune: " + why), 1;
    record.spent_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    tune::Compiler compiler;
    compiler.plan = [&](const auto& forced, bool greedy, std::string& fault) {
      Compilation::AlternativeOptions wanted{{forced.begin(), forced.end()}, {}, false, false};
      if (greedy) wanted.mode = search::Mode::kGreedy;
      auto found = compilation.PlanWith(wanted, fault);
      return found ? std::optional(std::move(found->plan)) : std::nullopt;
    };
    compiler.code = [](const l0::Plan& plan, std::string& fault) {
      auto kernels = CompileKernels(plan);
      if (kernels.ok()) return *std::move(kernels);
      fault = std::string(kernels.status().message());
      return std::unique_ptr<runtime::KernelTable>();
    };
    compiler.keep = [&](const std::string& text) {
      if (cache != nullptr) cache->Store(kKind, key, text);
    };
    const ProgressBar bar(!options.json && isatty(STDERR_FILENO) != 0);
    const auto progress = [&](const tune::TuneProgress& now) {
      const double left = std::max(0.0, *options.tune - now.spent_seconds);
      bar.Show("tuning, " + now.what, now.spent_seconds / std::max(*options.tune, 1e-9), left);
      if (!options.json) return;
      PrintJsonLine({{"event", "tuning"},
                     {"what", now.what},
                     {"spent_seconds", now.spent_seconds},
                     {"left_seconds", left}});
      std::cout.flush();
    };
    tune::Tuner tuner(compilation.plan(), DecisionsOf(compilation, explained->explanation),
                      options.search == "egraph",
                      {*options.tune, options.threads, options.numerics}, std::move(compiler),
                      std::move(record));
    for (int signal : {SIGINT, SIGTERM}) std::signal(signal, OnInterrupt);
    const bool ok = tuner.Run(progress, why);
    for (int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
    bar.Clear();
    if (!ok) {
      EnvironmentError("--tune: the predicted best cannot be timed: " + why,
                       "without --tune it is taken as it is");
      return 1;
    }
    if (tuner.interrupted()) {
      std::cerr << "interrupted while tuning: "
                << (cache != nullptr ? "the same command goes on with what was measured\n"
                                     : "without a cache nothing is kept\n");
      return 130;
    }
    record = tuner.record();
  }
  if (const int winner = tune::Winner(record); winner >= 0) {
    const Trial& trial = record.trials[static_cast<size_t>(winner)];
    Compilation::AlternativeOptions wanted{
        {trial.forced.begin(), trial.forced.end()}, {}, options.explain, /*kept=*/true};
    if (trial.greedy) wanted.mode = search::Mode::kGreedy;
    std::string why;
    auto taken = compilation.PlanWith(wanted, why);
    if (!taken) return EnvironmentError("--tune: " + why), 1;
    if (!compilation.Take(*std::move(taken))) return 1;
  }
  if (options.json) {
    TellJson(record, reused, options.explain);
  } else {
    Tell(record, reused, options.explain);
  }
  return 0;
}
#else
int TuneIfAsked(Compilation&, const Options& options) {
  if (!options.tune) return 0;
  EnvironmentError("this build has no kernel compiler, so nothing can be timed",
                   "without --tune the predicted best is taken");
  return 1;
}
#endif

}  // namespace l3c::tools
