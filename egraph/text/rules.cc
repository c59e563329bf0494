// Rulesets, rules, rewrites.
#include "egraph/text/loader.h"

#include <utility>

#include "egraph/text/suggest.h"

namespace l3c::egraph {

bool Loader::RulesetCommand(uint32_t n) {
  std::string_view name;
  if (!Takes(n, 1, 1) || !NewName(Child(n, 1), &name)) return false;
  if (graph_.FindRuleset(name).valid()) {
    return Error(Offset(Child(n, 1)), "ruleset " + Quoted(Child(n, 1)) + " is declared already",
                 ErrorKind::kSafety);
  }
  graph_.DeclareRuleset(name);
  return true;
}

bool Loader::CombinedRulesetCommand(uint32_t n) {
  std::string_view name;
  if (Count(n) < 2) return Error(Offset(n), "expected the name of a ruleset");
  if (!NewName(Child(n, 1), &name)) return false;
  if (graph_.FindRuleset(name).valid()) {
    return Error(Offset(Child(n, 1)), "ruleset " + Quoted(Child(n, 1)) + " is declared already",
                 ErrorKind::kSafety);
  }
  std::vector<RulesetId> members;
  for (uint32_t i = 2; i < Count(n); ++i) {
    const std::optional<RulesetId> member = ReadRuleset(Child(n, i));
    if (!member) return false;
    members.push_back(*member);
  }
  graph_.DeclareCombinedRuleset(name, members);
  return true;
}

bool Loader::ReadRuleOptions(uint32_t n, uint32_t i, bool rewrite, RuleOptions* options) {
  for (; i < Count(n); ++i) {
    const uint32_t option = Child(n, i);
    if (!IsOption(option)) return Error(Offset(option), "unexpected " + Quoted(option));
    const std::string_view name = doc_.Text(option);
    if (rewrite && name == ":subsume") {
      options->subsume = true;
      continue;
    }
    if (!rewrite && (name == ":naive" || name == ":unsafe-seminaive")) {
      if (options->reads) {
        return Error(Offset(option), ":naive and :unsafe-seminaive exclude each other");
      }
      options->naive = name == ":naive";
      options->reads = true;
      continue;
    }
    if (name == ":no-decomp") continue;  // a hint for another planner
    uint32_t value = 0;
    if (name == ":ruleset") {
      if (!OptionValue(n, &i, &value)) return false;
      const std::optional<RulesetId> ruleset = ReadRuleset(value);
      if (!ruleset) return false;
      options->ruleset = *ruleset;
      if (graph_.IsCombined(options->ruleset)) {
        return Error(Offset(value), "a combined ruleset has no rules of its own",
                     ErrorKind::kSafety);
      }
    } else if (name == ":name") {
      if (!OptionValue(n, &i, &value)) return false;
      if (doc_.node(value).kind != Document::Kind::kText) {
        return Error(Offset(value), "expected a string");
      }
      options->name = doc_.String(value);
    } else if (name == ":numerics") {
      if (!OptionValue(n, &i, &value)) return false;
      const std::optional<Numerics> numerics =
          doc_.IsSymbol(value) ? ParseNumerics(doc_.Text(value)) : std::nullopt;
      if (!numerics) return Error(Offset(value), "expected exact, reassoc or fast");
      options->numerics = *numerics;
    } else if (rewrite && name == ":when") {
      if (!OptionValue(n, &i, &value)) return false;
      if (!doc_.IsList(value)) return Error(Offset(value), "expected a list of facts");
      options->when = value;
    } else {
      Suggestion suggestion(name);
      for (std::string_view known : {":ruleset", ":name", ":numerics", ":no-decomp"}) {
        suggestion.Offer(known);
      }
      for (std::string_view known : {":when", ":subsume"}) {
        if (rewrite) suggestion.Offer(known);
      }
      for (std::string_view known : {":naive", ":unsafe-seminaive"}) {
        if (!rewrite) suggestion.Offer(known);
      }
      return Error(Offset(option), "unknown option " + Quoted(option) + suggestion.Text());
    }
  }
  return true;
}

void Loader::AddRule(uint32_t n, const RuleOptions& options, std::string name, Query query,
                     Compiler& compiler) {
  Rule rule;
  rule.name = std::move(name);
  rule.file = file_;
  const Document::Position at = doc_.PositionOf(Offset(n));
  rule.line = at.line;
  rule.column = at.column;
  rule.ruleset = options.ruleset;
  rule.numerics = options.numerics;
  rule.naive = options.naive;
  rule.query = std::move(query);
  rule.actions = compiler.TakeActions();
  rule.slot_sorts = compiler.TakeSlotSorts();
  graph_.AddRule(std::move(rule));
}

bool Loader::RuleCommand(uint32_t n) {
  if (Count(n) < 3 || !doc_.IsList(Child(n, 1)) || !doc_.IsList(Child(n, 2))) {
    return Error(Offset(n), "expected (rule (FACT...) (ACTION...))");
  }
  RuleOptions options;
  if (!ReadRuleOptions(n, 3, false, &options)) return false;
  Compiler compiler(graph_, doc_);
  Query query;
  const uint32_t facts = Child(n, 1);
  for (uint32_t i = 0; i < Count(facts); ++i) {
    if (!compiler.AddFact(Child(facts, i))) return Error(compiler.error());
  }
  if (!compiler.FinishQuery(&query)) return Error(compiler.error());
  if (options.reads) compiler.AllowReads();
  const uint32_t actions = Child(n, 2);
  for (uint32_t i = 0; i < Count(actions); ++i) {
    if (!compiler.AddAction(Child(actions, i))) return Error(compiler.error());
  }
  std::string name = options.name.empty() ? OneLine(doc_.Text(facts)) : options.name;
  AddRule(n, options, std::move(name), std::move(query), compiler);
  return true;
}

bool Loader::Rewrite(uint32_t n, bool both_ways) {
  if (Count(n) < 3) return Error(Offset(n), "expected (rewrite LEFT RIGHT)");
  RuleOptions options;
  if (!ReadRuleOptions(n, 3, true, &options)) return false;
  if (both_ways && options.subsume) {
    return Error(Offset(n), "a birewrite cannot subsume");
  }
  const uint32_t left = Child(n, 1);
  const uint32_t right = Child(n, 2);
  const std::string name = options.name.empty()
                               ? OneLine(doc_.Text(left)) + " => " + OneLine(doc_.Text(right))
                               : options.name;
  if (!OneWay(n, left, right, options, name)) return false;
  if (!both_ways) return true;
  const std::string back = options.name.empty()
                               ? OneLine(doc_.Text(right)) + " => " + OneLine(doc_.Text(left))
                               : options.name + " (reversed)";
  return OneWay(n, right, left, options, back);
}

bool Loader::OneWay(uint32_t n, uint32_t from, uint32_t to, const RuleOptions& options,
                    std::string name) {
  Compiler compiler(graph_, doc_);
  Query query;
  if (!compiler.AddPattern(from)) return Error(compiler.error());
  if (options.when != Id<void>::kNone) {
    for (uint32_t i = 0; i < Count(options.when); ++i) {
      if (!compiler.AddFact(Child(options.when, i))) return Error(compiler.error());
    }
  }
  if (!compiler.FinishQuery(&query) || !compiler.AddRewriteTo(to) ||
      (options.subsume && !compiler.AddSubsumePattern())) {
    return Error(compiler.error());
  }
  AddRule(n, options, std::move(name), std::move(query), compiler);
  return true;
}

}  // namespace l3c::egraph
