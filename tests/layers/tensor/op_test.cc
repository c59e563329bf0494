#include "layers/tensor/op.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "layers/tensor/dtype.h"

namespace l3c::tensor {
namespace {

TEST(OpTable, EntriesAreIndexedByOpAndNamedOnce) {
  std::set<std::string> names;
  for (Op op : AllOps()) {
    const OpDef& def = Definition(op);
    EXPECT_EQ(def.op, op);
    EXPECT_TRUE(names.insert(def.name).second) << def.name;
    EXPECT_FALSE(def.doc.empty()) << def.name;
    EXPECT_EQ(FindOp(def.name), op);
    EXPECT_EQ(FindOp(def.l1_name), op);
    EXPECT_EQ(static_cast<bool>(def.expand), IsDerived(op)) << def.name;
  }
}

TEST(OpTable, HasTheSpellingsOfTheSpecification) {
  for (const char* name : {"tensor_matmul", "tensor_add", "tensor_sub", "tensor_mul",
                           "tensor_scale", "tensor_broadcast", "tensor_transpose",
                           "tensor_reduce_mean", "tensor_reduce_sum", "tensor_const"}) {
    EXPECT_TRUE(FindOp(name).has_value()) << name;
  }
  EXPECT_EQ(FindOp("tensor_broadcast"), Op::kExpand);
  EXPECT_FALSE(FindOp("tensor_nothing").has_value());
}

TEST(OpTable, RefusesANameTwice) {
  EXPECT_THROW(RegisterDerived("add", 2, "again", nullptr), std::invalid_argument);
  EXPECT_THROW(RegisterDerived("sub", 2, "again", nullptr), std::invalid_argument);
}

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i < 8; ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(ParseDType(DTypeName(dtype)), dtype);
  }
  EXPECT_EQ(ParseDType("f16"), std::nullopt);
  EXPECT_EQ(SizeOf(DType::kBool), 1u);
  EXPECT_EQ(SizeOf(DType::kF64), 8u);
  EXPECT_EQ(ShapeToString({128, 784}), "[128, 784]");
  EXPECT_EQ(NumElements({}), 1);
  EXPECT_EQ(NumElements({3, 0, 2}), 0);
}

}  // namespace
}  // namespace l3c::tensor
