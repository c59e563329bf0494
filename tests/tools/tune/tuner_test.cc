#include "tools/l3c/tune/tuner.h"

#include <chrono>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/interpreter_kernels.h"
#include "tests/runtime/linear_plan.h"
#include "tools/l3c/tune/plan_check.h"
#include "tools/l3c/tune/step_timer.h"
#include "tools/l3c/tune/verdict.h"

namespace l3c::tools::tune {
namespace {

Trial Measured(std::vector<double> ratios, bool checked) {
  Trial trial;
  trial.forced["l0/train/x"] = "other";
  trial.ratios = std::move(ratios);
  trial.checked = checked;
  return trial;
}

TEST(Verdict, SignTest) {
  EXPECT_DOUBLE_EQ(SignTestP(12, 12), 1.0 / 4096);
  EXPECT_DOUBLE_EQ(SignTestP(11, 12), 13.0 / 4096);
  EXPECT_DOUBLE_EQ(SignTestP(0, 12), 1);
}

TEST(Verdict, NoiseIsNoGain) {
  EXPECT_TRUE(Faster(Measured(std::vector<double>(12, 0.9), true)));
  // Won all turns, by less than counts.
  EXPECT_FALSE(Faster(Measured(std::vector<double>(12, 0.995), true)));
  // Few turns show nothing, however far apart.
  EXPECT_FALSE(Faster(Measured({0.5, 0.5}, true)));
  EXPECT_FALSE(Faster(Measured({.8, .8, .8, .8, .8, .8, .8, 1.2, 1.2, 1.2, 1.2, 1.2}, true)));
  EXPECT_FALSE(Faster(Measured({}, true)));
}

TEST(Verdict, NothingUncheckedIsTaken) {
  Record record;
  record.trials = {Measured(std::vector<double>(12, 0.5), false),
                   Measured(std::vector<double>(12, 0.9), true)};
  EXPECT_EQ(Winner(record), 1);
  record.trials[0].checked = true;
  EXPECT_EQ(Winner(record), 0);
  record.trials[0].refused = "it computes something else";
  EXPECT_EQ(Winner(record), 1);
  record.trials.pop_back();
  EXPECT_EQ(Winner(record), -1);
}

TEST(Record, ReadsWhatItWrote) {
  Record record;
  record.spent_seconds = 1.5;
  record.base = {0.1, 0.2};
  record.trials = {Measured({0.5}, true), Measured({}, false)};
  record.trials[1].refused = "\xff no plan";
  record.trials[1].greedy = true;
  const auto again = ReadRecord(WriteRecord(record));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(WriteRecord(*again), WriteRecord(record));
  EXPECT_FALSE(ReadRecord("{\"spent_seconds\": 1}").has_value());
  EXPECT_FALSE(ReadRecord("{").has_value());
}

// The interpreter's kernels, slowed down, or with one of them wrong.
class TestKernels : public runtime::KernelTable {
 public:
  TestKernels(const l0::Plan& plan, bool slow, bool wrong)
      : kernels_(plan), slow_(slow), wrong_(wrong ? 2 : 1000) {}

  runtime::KernelFn Find(l0::KernelId kernel) const override {
    if (kernel == wrong_) return Wrong;
    if (kernel == 0 && slow_) return Slow;
    return kernels_.Find(kernel);
  }
  void* Context(l0::KernelId kernel) const override {
    return kernel == wrong_       ? nullptr
           : kernel == 0 && slow_ ? const_cast<runtime::InterpreterKernels*>(&kernels_)
                                  : kernels_.Context(kernel);
  }

 private:
  static void Slow(void* const* params, int64_t begin, int64_t end) {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    std::vector<void*> own(params, params + 4);
    const auto* kernels = static_cast<const runtime::InterpreterKernels*>(params[4]);
    own.push_back(kernels->Context(0));
    kernels->Find(0)(own.data(), begin, end);
  }
  // Of the loss: none at all.
  static void Wrong(void* const* params, int64_t, int64_t) {
    std::memset(params[2], 0, sizeof(float));
    std::memset(params[3], 0, sizeof(float));
  }

  const runtime::InterpreterKernels kernels_;
  const bool slow_;
  const l0::KernelId wrong_;
};

class TunerTest : public testing::Test {
 protected:
  void SetUp() override {
    runtime::testing::LinearOptions options;
    options.steps = 3000;
    options.steps_per_epoch = 3000;
    plan_ = runtime::testing::LinearPlan("nowhere", options);
    for (const char* label : {"fast", "wrong", "none"}) {
      search::Loser loser;
      loser.label = label;
      loser.cost = {{"time", 1.1, "s", "analytical"}};
      decision_.losers.push_back(loser);
    }
    decision_.id = "l0/train/x";
    decision_.cost = {{"time", 1, "s", "analytical"}};
    compiler_.plan = [this](const auto& forced, bool, std::string& why) -> std::optional<l0::Plan> {
      const std::string label = forced.begin()->second;
      if (label == "none") {
        why = "it does not fit";
        return std::nullopt;
      }
      l0::Plan plan = plan_;
      plan.name = label;
      return plan;
    };
    compiler_.code = [](const l0::Plan& plan, std::string&) {
      return std::make_unique<TestKernels>(plan, plan.name == "linear", plan.name == "wrong");
    };
    compiler_.keep = [this](const std::string& text) { kept_.push_back(text); };
  }

  Record Tune(double seconds, Record record) {
    Tuner tuner(plan_, {decision_}, /*greedy_too=*/false, {seconds, 1, "reassoc", 0.01}, compiler_,
                std::move(record));
    std::string why;
    EXPECT_TRUE(tuner.Run([](const TuneProgress&) {}, why)) << why;
    return tuner.record();
  }

  l0::Plan plan_;
  search::Decision decision_;
  Compiler compiler_;
  std::vector<std::string> kept_;
};

TEST_F(TunerTest, TakesWhatIsFasterAndRefusesWhatIsWrong) {
  const Record record = Tune(60, {});
  EXPECT_TRUE(record.done);
  ASSERT_EQ(record.trials.size(), 3u);
  EXPECT_EQ(Winner(record), 0);
  EXPECT_EQ(record.trials[0].ratios.size(), kTurns);
  EXPECT_LT(MedianRatio(record.trials[0]), 0.9);
  EXPECT_NE(record.trials[1].refused.find("where the predicted best's report"), std::string::npos);
  EXPECT_NE(record.trials[2].refused.find("it does not fit"), std::string::npos);
  // Killed after any turn, it goes on from what was kept and ends alike.
  const auto half = ReadRecord(kept_[kept_.size() / 2]);
  ASSERT_TRUE(half.has_value());
  EXPECT_LT(half->trials[0].ratios.size(), kTurns);
  const Record again = Tune(60, *half);
  EXPECT_EQ(Winner(again), 0);
  EXPECT_EQ(again.trials[0].ratios.size(), kTurns);
  EXPECT_EQ(again.trials[0].ratios.front(), half->trials[0].ratios.front());
  EXPECT_GT(again.spent_seconds, half->spent_seconds);
  // Nothing is measured any more once it is done.
  kept_.clear();
  Tune(1000, again);
  EXPECT_TRUE(kept_.empty());
}

TEST_F(TunerTest, CodeIsHeldAgainstTheInterpreter) {
  std::set<std::string> known;
  EXPECT_EQ(CheckKernels(plan_, TestKernels(plan_, false, false), plan_, "reassoc", known), "");
  EXPECT_EQ(known.size(), plan_.kernels.size());
  known.clear();
  const std::string fault =
      CheckKernels(plan_, TestKernels(plan_, false, true), plan_, "reassoc", known);
  EXPECT_NE(fault.find("'loss'"), std::string::npos) << fault;
  EXPECT_LT(known.size(), plan_.kernels.size());
}

TEST(CompareSums, FollowsTheNumericsClass) {
  EXPECT_EQ(CompareSums({1, 2}, {1, 2, 3}, "exact"), "");
  EXPECT_NE(CompareSums({1.5}, {1.5000001}, "exact"), "");
  EXPECT_EQ(CompareSums({1.5}, {1.501}, "reassoc"), "");
  EXPECT_NE(CompareSums({1.5}, {1.51}, "reassoc"), "");
  EXPECT_EQ(CompareSums({1.5}, {1.51}, "fast"), "");
  // A count of right answers turns over at a rounding.
  EXPECT_EQ(CompareSums({13}, {14}, "reassoc"), "");
  EXPECT_NE(CompareSums({13}, {14}, "exact"), "");
}

}  // namespace
}  // namespace l3c::tools::tune
