// Random corruptions of valid plans, written by hand and lowered: the verifier catches every one.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "cost/machine.h"
#include "layers/l0/lower/lower.h"
#include "layers/l0/plan_text.h"
#include "layers/l0/plan_verify.h"
#include "layers/l1/text.h"
#include "layers/l1/verify.h"
#include "tests/layers/l0/plan/corrupt.h"
#include "tests/layers/l0/plan/linear.h"

namespace l3c::l0::lower {
namespace {

std::string HandText() {
  std::ifstream file(std::string(L3C_SOURCE_DIR) + "/tests/layers/l1/programs/hand.l1");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// hand.l1 at a depth, as a plan; or with its model's state at rest in another memory.
Plan Lowered(int depth, bool far = false) {
  std::string text = HandText();
  for (const auto& [from, to] :
       {std::pair("    node cpu_0",
                  "    node ram_1 { kind: memory, capacity: 4GB }\n    node cpu_0"),
        std::pair("    edges {", "    edges {\n        ram_1 <-> ram_0 : bandwidth 5GB/s"),
        std::pair("    state {", "    state @ ram_1 {")}) {
    if (far) text.replace(text.find(from), std::string_view(from).size(), to);
  }
  const std::string from = "pipeline_depth: 1";
  text.replace(text.find(from), from.size(), "pipeline_depth: " + std::to_string(depth));
  const support::SourceFile source("hand.l1", text);
  support::Diagnostics diagnostics(&source);
  const auto program = l1::ParseProgram(source, diagnostics);
  if (program) l1::Verify(*program, diagnostics);
  EXPECT_EQ(diagnostics.Render(false), "");
  if (!program) return {};
  const cost::CpuCostModel costs{cost::CpuMachine{}};
  auto result = Lower(*program, costs, {}, diagnostics);
  EXPECT_TRUE(result.ok()) << diagnostics.Render(false);
  return result.ok() ? result.best() : Plan{};
}

// The plan written by hand, with epochs and evaluations long enough that every place of a batch is
// used again before the control unit waits: else a wait for it is not needed.
std::string LongLinearText() {
  std::string text = testing::LinearText();
  for (const auto& [from, to] :
       {std::pair("samples 20", "samples 64"), std::pair("samples 11", "samples 48"),
        std::pair("steps: 15", "steps: 24"), std::pair("steps_per_epoch: 3", "steps_per_epoch: 8"),
        std::pair("eval_batches: 2", "eval_batches: 6"), std::pair("batches: 2", "batches: 6")}) {
    const std::string longer = testing::Replace(text, from, to);
    EXPECT_NE(longer, text) << from;
    text = longer;
  }
  return text;
}

std::vector<Plan> ValidPlans() {
  std::vector<Plan> plans = {testing::Parse(LongLinearText())};
  for (int depth : {1, 2, 3}) plans.push_back(Lowered(depth));
  plans.push_back(Lowered(2, /*far=*/true));
  return plans;
}

TEST(PlanCorruptions, AreCaughtEveryOne) {
  const std::vector<Plan> plans = ValidPlans();
  for (const Plan& plan : plans) {
    support::Diagnostics diagnostics;
    ASSERT_TRUE(VerifyPlan(plan, diagnostics)) << diagnostics.Render(false);
  }
  const auto& corruptions = testing::Corruptions();
  std::set<std::string> applied;
  int count = 0;
  for (uint64_t seed = 0; count < 264 && seed < 4000; ++seed) {
    std::mt19937_64 random(seed);
    const testing::Corruption& corruption = corruptions[seed % corruptions.size()];
    Plan plan = plans[random() % plans.size()];
    const std::string what = corruption.apply(plan, random);
    if (what.empty()) continue;
    ++count;
    applied.insert(corruption.name);
    support::Diagnostics diagnostics;
    EXPECT_FALSE(VerifyPlan(plan, diagnostics))
        << "seed " << seed << ", " << corruption.row << ", " << corruption.name << ": " << what;
  }
  EXPECT_GE(count, 200);
  EXPECT_EQ(applied.size(), corruptions.size()) << "some corruption never applied";
}

// What can be written is caught when it comes back from its text.
TEST(PlanCorruptions, AreCaughtInTheText) {
  const std::vector<Plan> plans = ValidPlans();
  const auto& corruptions = testing::Corruptions();
  for (uint64_t seed = 0; seed < 3 * corruptions.size(); ++seed) {
    std::mt19937_64 random(seed + 977);
    const testing::Corruption& corruption = corruptions[seed % corruptions.size()];
    Plan plan = plans[random() % plans.size()];
    // Text has no ids and needs each command's arguments.
    if (std::string(corruption.row) == "reference" || std::string(corruption.row) == "control") {
      continue;
    }
    const std::string what = corruption.apply(plan, random);
    if (what.empty() || std::string(corruption.name) == "operand that comes later") continue;
    const support::SourceFile source("plan.l0", PrintPlan(plan));
    support::Diagnostics diagnostics(&source);
    const auto parsed = ParsePlan(source, diagnostics);
    EXPECT_FALSE(parsed && VerifyPlan(*parsed, diagnostics)) << what;
    for (const support::Diagnostic& d : diagnostics.all()) EXPECT_NE(d.message, "") << what;
  }
}

}  // namespace
}  // namespace l3c::l0::lower
