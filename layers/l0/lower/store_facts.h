// Facts about values from which rewrites/kernel_grouping.egg and layout.egg conclude what may be
// kept in memory. kernel_terms.egg lists them.
#pragma once

#include <functional>
#include <initializer_list>
#include <set>

#include "layers/l0/lower/values.h"

namespace l3c::l0::lower {

using AssertFact = std::function<void(const char* relation, std::initializer_list<int64_t> args)>;

// Seconds that an element of a value takes: to compute by its op alone, and to write and read
// again.
struct ElementCosts {
  std::function<double(tensor::Op op, tensor::DType dtype)> compute;
  std::function<double(const Value& value)> keep;
};

// `kept`: new state that is copied at the end. `fuse` false: every op is to be a kernel.
// Gives the number of values with several users that are cheaper to compute again than to keep.
uint64_t AssertStoreFacts(const ValueTable& table, const Step& step, const std::set<ValueId>& kept,
                          bool fuse, const ElementCosts& costs, const AssertFact& fact);

}  // namespace l3c::l0::lower
