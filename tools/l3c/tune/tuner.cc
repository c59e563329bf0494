#include "tools/l3c/tune/tuner.h"

#include <algorithm>
#include <utility>

#include "layers/l0/plan_text.h"
#include "runtime/sha256.h"
#include "tools/l3c/tune/plan_check.h"
#include "tools/l3c/tune/step_timer.h"
#include "tools/l3c/tune/verdict.h"

namespace l3c::tools::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kBest = static_cast<size_t>(-1);
constexpr size_t kCodeKept = 6;  // plans whose code is in memory at once

std::string DigestOf(const l0::Plan& plan) { return runtime::Sha256Of(l0::PrintPlan(plan)); }

// What is decided about memory costs no step's time but where it is short.
bool ChangesTheStep(const std::string& id) {
  return id.find(".kept@") == std::string::npos && !id.ends_with("arena.packing");
}

}  // namespace

Tuner::Tuner(const l0::Plan& best, const std::vector<search::Decision>& decisions, bool greedy_too,
             const TuneOptions& options, Compiler compiler, Record record)
    : best_(best),
      options_(options),
      compiler_(std::move(compiler)),
      record_(std::move(record)),
      spent_before_(record_.spent_seconds) {
  if (record_.trials.empty()) Enumerate(decisions, greedy_too);
  plans_[DigestOf(best)] = kBest;
}

double Tuner::Spent() const {
  return spent_before_ + std::chrono::duration<double>(Clock::now() - begun_).count();
}

void Tuner::Enumerate(const std::vector<search::Decision>& decisions, bool greedy_too) {
  if (greedy_too) {
    Trial greedy;
    greedy.greedy = true;
    record_.trials.push_back(std::move(greedy));
  }
  std::vector<Trial> losers;
  for (const search::Decision& decision : decisions) {
    if (!ChangesTheStep(decision.id) || decision.forced || decision.cost.empty()) continue;
    for (const search::Loser& loser : decision.losers) {
      if (loser.cost.empty()) continue;
      const double predicted = loser.cost.front().value;
      if (predicted > kWorthTrying * decision.cost.front().value) continue;
      Trial trial;
      trial.forced[decision.id] = loser.label;
      trial.predicted = predicted;
      losers.push_back(std::move(trial));
    }
  }
  std::stable_sort(losers.begin(), losers.end(),
                   [](const Trial& a, const Trial& b) { return a.predicted < b.predicted; });
  // Some turn out to be the same plan, or none.
  losers.resize(std::min(losers.size(), 2 * kScreened));
  for (Trial& trial : losers) record_.trials.push_back(std::move(trial));
}

Tuner::Code* Tuner::CodeOf(size_t t) {
  if (const auto found = code_.find(t); found != code_.end()) return &found->second;
  Trial& trial = record_.trials[t];
  std::string why;
  std::optional<l0::Plan> plan = compiler_.plan(trial.forced, trial.greedy, why);
  if (!plan) {
    trial.refused = "it has no plan: " + why;
    return nullptr;
  }
  const auto [same, is_new] = plans_.emplace(DigestOf(*plan), t);
  if (!is_new && same->second != t) {
    trial.refused = same->second == kBest
                        ? "it is the predicted best itself"
                        : "it is the same plan as " + record_.trials[same->second].Label();
    return nullptr;
  }
  if (code_.size() >= kCodeKept) code_.erase(code_.begin());
  // The table refers to the plan, which must not move any more.
  Code& code = code_[t];
  code.plan = *std::move(plan);
  code.kernels = compiler_.code(code.plan, why);
  if (code.kernels != nullptr) return &code;
  trial.refused = "it cannot be compiled: " + why;
  code_.erase(t);
  return nullptr;
}

bool Tuner::Turn(size_t t, std::string& why) {
  Code* code = CodeOf(t);
  if (code == nullptr) return true;
  Trial& trial = record_.trials[t];
  // They take turns in going first.
  const bool first = trial.ratios.size() % 2 == 0;
  absl::StatusOr<StepTimes> other, base;
  for (bool now : {first, !first}) {
    auto& times = now ? base : other;
    times = now ? TimeSteps(best_, *best_kernels_, options_.threads, options_.turn_seconds)
                : TimeSteps(code->plan, *code->kernels, options_.threads, options_.turn_seconds);
    if (absl::IsCancelled(times.status())) {
      interrupted_ = true;
      return true;
    }
    if (!times.ok() && now) {
      why = std::string(times.status().message());
      return false;
    }
    if (!times.ok()) {
      trial.refused = "its steps fail: " + std::string(times.status().message());
      return true;
    }
  }
  if (best_sums_.empty()) best_sums_ = base->sums;
  if (std::string gap = CompareSums(base->sums, other->sums, options_.numerics); !gap.empty()) {
    trial.refused = gap;
    return true;
  }
  trial.ratios.push_back(other->median / base->median);
  record_.base.push_back(base->median);
  return true;
}

void Tuner::Check(size_t t) {
  Code* code = CodeOf(t);
  if (code == nullptr) return;
  Trial& trial = record_.trials[t];
  const std::string fault =
      CheckKernels(code->plan, *code->kernels, best_, options_.numerics, sound_);
  if (fault.empty()) {
    trial.checked = true;
  } else {
    trial.refused = "it does not hold against the interpreter: " + fault;
  }
}

std::vector<size_t> Tuner::Finalists() const {
  std::vector<size_t> order;
  for (size_t t = 0; t < record_.trials.size(); ++t) {
    const Trial& trial = record_.trials[t];
    if (!trial.refused.empty() || trial.ratios.empty() || MedianRatio(trial) >= 1) continue;
    order.push_back(t);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return MedianRatio(record_.trials[a]) < MedianRatio(record_.trials[b]);
  });
  order.resize(std::min(order.size(), kFinalists));
  return order;
}

void Tuner::Combine() {
  std::vector<size_t> winners;
  for (size_t t = 0; t < record_.trials.size(); ++t) {
    const Trial& trial = record_.trials[t];
    if (trial.forced.size() > 1) return;  // that has been done
    if (trial.refused.empty() && trial.checked && !trial.greedy && Faster(trial)) {
      winners.push_back(t);
    }
  }
  std::stable_sort(winners.begin(), winners.end(), [&](size_t a, size_t b) {
    return MedianRatio(record_.trials[a]) < MedianRatio(record_.trials[b]);
  });
  Trial together;
  for (size_t w : winners) {
    const Trial& winner = record_.trials[w];
    const auto& [id, label] = *winner.forced.begin();
    if (!together.forced.emplace(id, label).second) continue;
    together.predicted = std::max(together.predicted, winner.predicted);
    if (together.forced.size() > 1) record_.trials.push_back(together);
  }
}

std::optional<size_t> Tuner::Next(std::string& what) {
  size_t screened = 0;
  std::optional<size_t> unseen, together;
  for (size_t t = 0; t < record_.trials.size(); ++t) {
    const Trial& trial = record_.trials[t];
    screened += !trial.ratios.empty();
    if (!trial.ratios.empty() || !trial.refused.empty()) continue;
    std::optional<size_t>& first = trial.forced.size() > 1 ? together : unseen;
    if (!first) first = t;
  }
  if (screened >= kScreened) unseen.reset();
  std::optional<size_t> final;
  for (size_t t : Finalists()) {
    const size_t turns = record_.trials[t].ratios.size();
    if (turns < kTurns && (!final || turns < record_.trials[*final].ratios.size())) final = t;
  }
  // Half of the time is for looking around, and all that the finals leave.
  if (unseen && (Spent() < options_.seconds / 2 || (!final && !together))) {
    what = "screening " + std::to_string(screened + 1);
    return unseen;
  }
  if (final) {
    what = "finals, turn " + std::to_string(record_.trials[*final].ratios.size() + 1) + " of " +
           std::to_string(kTurns);
    return final;
  }
  what = "choices together";
  if (together) return together;
  const size_t before = record_.trials.size();
  Combine();
  return record_.trials.size() > before ? std::optional(before) : std::nullopt;
}

bool Tuner::Run(const std::function<void(const TuneProgress&)>& progress, std::string& why) {
  if (record_.done || TimeIsUp()) return true;
  best_kernels_ = compiler_.code(best_, why);
  if (best_kernels_ == nullptr) return false;
  while (!TimeIsUp()) {
    std::string what;
    const std::optional<size_t> next = Next(what);
    if (!next) {
      record_.done = true;
      break;
    }
    progress({what, Spent()});
    Trial& trial = record_.trials[*next];
    // Whoever has had a turn is a finalist now.
    if (!trial.ratios.empty() && !trial.checked) Check(*next);
    if (trial.refused.empty() && !Turn(*next, why)) return false;
    if (interrupted_) return true;
    record_.spent_seconds = Spent();
    compiler_.keep(WriteRecord(record_));
  }
  record_.spent_seconds = std::max(record_.spent_seconds, Spent());
  compiler_.keep(WriteRecord(record_));
  return true;
}

}  // namespace l3c::tools::tune
