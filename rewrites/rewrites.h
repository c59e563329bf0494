// The rule sets of rewrites/*.egg, compiled into the library as text.
//
//   const rewrites::RuleFile* file = rewrites::Find("lower_l3_l2");
//   egraph::LoadProgram(graph, file->text, file->path);
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace l3c::rewrites {

struct RuleFile {
  std::string_view name;  // "lower_l3_l2"
  std::string_view path;  // "rewrites/lower_l3_l2.egg": how its rules are cited
  std::string_view text;
};

std::span<const RuleFile> All();              // by name, ascending
const RuleFile* Find(std::string_view name);  // nullptr: no such file, or it was left out
// The names that its rules have, in their order.
std::vector<std::string> RuleNames(const RuleFile& file);
// For ablations: from now on Find has no such file, or, of "fusion/hoist", the file without that
// rule. To be called before anything is lowered, from one thread. False when there is none of the
// name.
bool LeaveOut(std::string_view name);

}  // namespace l3c::rewrites
