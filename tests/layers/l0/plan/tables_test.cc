// Plans as tables: all that the text says but the kernels' bodies, and no reading beyond the bytes.
#include "layers/l0/plan_tables.h"

#include "gtest/gtest.h"
#include "layers/l0/plan_text.h"
#include "tests/layers/l0/plan/linear.h"

namespace l3c::l0 {
namespace {

using testing::LinearText;
using testing::Parse;

// The plan with what tables leave out.
Plan WithBodies(Plan plan, const Plan& whole) {
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    plan.kernels[k].uops = whole.kernels[k].uops;
    plan.kernels[k].origin = whole.kernels[k].origin;
  }
  return plan;
}

TEST(PlanTables, KeepAllButTheBodies) {
  const Plan plan = Parse(LinearText());
  const std::optional<Plan> read = ReadPlanTables(WritePlanTables(plan));
  ASSERT_TRUE(read);
  for (const Kernel& kernel : read->kernels) EXPECT_TRUE(kernel.uops.empty());
  EXPECT_EQ(PrintPlan(WithBodies(*read, plan)), LinearText());
}

TEST(PlanTables, KeepTheRareForms) {
  Plan plan = Parse(LinearText());
  plan.buffers[0].dtype = DType::kI64;
  plan.buffers[4].last_use = kWholeRun;
  plan.buffers[7].shape = {};
  plan.init[0] = {0, InitKind::kUniform, -1e-300, 1.0 / 3, UINT64_MAX, UINT64_MAX - 1, {}};
  plan.init[1] = {1, InitKind::kConstant, -0.0, 0, 0, 0, {}};
  plan.sources[0].fields[1].classes = 3;
  plan.sources[0].fields[1].ignored = -100;
  plan.samplers[0].kind = SampleKind::kReplay;
  plan.samplers[0].buffer = 77;
  plan.samplers[0].recent = true;
  plan.samplers[0].drop_last = true;
  const std::optional<Plan> read = ReadPlanTables(WritePlanTables(plan));
  ASSERT_TRUE(read);
  EXPECT_EQ(PrintPlan(WithBodies(*read, plan)), PrintPlan(plan));
}

TEST(PlanTables, RefuseOtherBytes) {
  const std::string tables = WritePlanTables(Parse(LinearText()));
  EXPECT_FALSE(ReadPlanTables(""));
  EXPECT_FALSE(ReadPlanTables(tables + '\0'));
  for (size_t size = 0; size < tables.size(); size += 61) {
    EXPECT_FALSE(ReadPlanTables(std::string_view(tables).substr(0, size))) << size;
  }
  // A length of which there are not so many bytes.
  std::string wrong = tables;
  wrong.replace(0, 8, 8, '\xff');
  EXPECT_FALSE(ReadPlanTables(wrong));
}

}  // namespace
}  // namespace l3c::l0
