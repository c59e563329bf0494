// One case of a rule that gives answers to requests: facts that meet its premises, the rule run on
// them once, and everything that it has stated or united held against meaning.h.
//
// The facts are made from the rule's left side: each variable gets a random number, name or term,
// and each premise is stated as a fact. Other premises (comparisons) are up to the match.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layers/rules/choices.h"
#include "layers/rules/rule_file.h"
#include "layers/rules/value_check.h"

namespace l3c::rules {

class FactCheck {
 public:
  FactCheck(const RuleFile& file, const RuleInfo& rule);
  FactCheck(const FactCheck&) = delete;
  FactCheck& operator=(const FactCheck&) = delete;

  using Outcome = ValueCheck::Outcome;
  Outcome Try(Choices& choices, Counterexample* counterexample, std::string* nearest = nullptr);

 private:
  std::optional<egraph::Value> DrawValue(egraph::SortId sort, Choices& choices, int depth);
  bool StateFacts(Choices& choices, std::vector<std::string>& facts);
  // `united`: unions before the rule ran.
  std::optional<Counterexample> Judge(size_t united);
  bool IsRequest(const egraph::Function& f) const;
  std::string RowText(egraph::FunctionId f, const egraph::Row& row, int depth = 0) const;
  std::string ValueText(egraph::SortId sort, egraph::Value v, int depth) const;
  // The relation of the rows of `f` that have a meaning; invalid where there is none.
  egraph::FunctionId MeaningOf(egraph::FunctionId f) const;

  const Lowering lowering_;
  egraph::EGraph graph_;
  egraph::RuleId rule_;
  egraph::RulesetId under_test_, meanings_;
  std::string prefix_ = "meaning-";  // of relations that no file has taken
};

}  // namespace l3c::rules
