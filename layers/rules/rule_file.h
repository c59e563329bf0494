// Files of rules: which lowering they belong to, and what each of their rules says of itself.
//
// Every ruleset that a lowering runs has a name; a file belongs to the lowering whose rulesets its
// rules are in. Beside rules it may hold declarations, and nothing that runs, reads or writes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "egraph/egraph.h"
#include "layers/support/diagnostics.h"

namespace l3c::rules {

enum class Lowering : uint8_t { kMethod, kPlacement, kKernels };
std::string_view LoweringName(Lowering lowering);  // "l3->l2", "l2->l1", "l1->l0"

struct Ruleset {
  std::string_view name;
  Lowering lowering;
  std::string_view meaning;  // of what its rules unite; one line
};
std::span<const Ruleset> Rulesets();
const Ruleset* FindRuleset(std::string_view name);

struct RuleInfo {
  std::string name;
  std::string ruleset;
  egraph::Numerics numerics = egraph::Numerics::kExact;
  support::Span span;  // of its text
  egraph::RuleId id;   // in the graph of NewGraph()
};

struct RuleFile {
  std::string name;  // as it is cited
  std::string text;
  // Nothing for a file of declarations alone.
  std::optional<Lowering> lowering;
  std::vector<RuleInfo> rules;  // in the order of the file
  // It declares the terms of its lowering itself: an edited copy of the built-in file that does,
  // in whose place it is read.
  bool stands_in = false;
};

// Reads a file and tries it on a graph of its lowering. Nothing after an error.
std::optional<RuleFile> ReadRuleFile(const support::SourceFile& source,
                                     support::Diagnostics& diagnostics);

// A graph with the terms of the lowering and the file's rules.
egraph::EGraph NewGraph(const RuleFile& file);
// A ruleset beside the file's, whatever names that has taken.
egraph::RulesetId AddRuleset(egraph::EGraph& graph, std::string name);

}  // namespace l3c::rules
