// Facts about values from which rewrites/kernel_grouping.egg and layout.egg conclude what may be
// kept in memory. kernel_terms.egg lists them.
#pragma once

#include <functional>
#include <initializer_list>
#include <set>

#include "layers/l0/lower/values.h"

namespace l3c::l0::lower {

using AssertFact = std::function<void(const char* relation, std::initializer_list<int64_t> args)>;

// `kept`: new state that is copied at the end. `fuse` false: every op is to be a kernel.
void AssertStoreFacts(const ValueTable& table, const Step& step, const std::set<ValueId>& kept,
                      bool fuse, const AssertFact& fact);

}  // namespace l3c::l0::lower
