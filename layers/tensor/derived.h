// The derived ops that l3c itself brings: sub, div, exp, tanh, gelu, … One table entry an op, each
// an expansion into other ops; see layers/tensor/op.h for what a derived op is.
#pragma once

#include <span>
#include <string_view>

#include "layers/tensor/op.h"

namespace l3c::tensor {

struct DerivedEntry {
  std::string_view name;
  int arity;
  std::string_view doc;
  NodeId (*expand)(Graph& graph, std::span<const NodeId> inputs, const Attributes& attr);
  OpClass op_class = OpClass::kElementwise;
  AttrForm attr_form = AttrForm::kNone;
};

// In the order in which they are registered, which fixes their Op ids.
std::span<const DerivedEntry> BuiltinDerived();

}  // namespace l3c::tensor
