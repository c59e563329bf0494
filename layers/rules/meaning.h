// What the terms of the lowerings mean, apart from the rules that make them: when a term is an
// answer to a request, and when a fact follows from others.
//
// A lowering's rules unite answers with requests: (Load v c (InMem v q)) with (InReg v c), "the
// value v in registers of context c". Nothing downstream checks them again. So each answer has a
// line here with the request that it answers and the facts under which it does; an answer without a
// line, or whose facts do not hold, is wrong whatever rule made it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "layers/rules/rule_file.h"

namespace l3c::rules {

struct Meaning {
  std::string_view term;     // "(Load v c (InMem v q))", or a fact "(stored v)"
  std::string_view request;  // "(InReg v c)"; "" of a fact, and of a term that nothing asks for
  std::string_view facts;    // "(reads v c q)": premises in the language of rules
};
std::span<const Meaning> Meanings(Lowering lowering);

// Whether facts of the relation may be stated without a line: they only ask for something.
bool IsFree(Lowering lowering, std::string_view relation);

}  // namespace l3c::rules
