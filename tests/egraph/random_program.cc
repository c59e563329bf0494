#include "tests/egraph/random_program.h"

#include <utility>

namespace l3c::egraph {
namespace {

constexpr char kDeclarations[] = R"(
(datatype T (A) (B i64) (F T) (G T T) (H T i64 bool))
(function lowest (T) i64 :merge (min old new))
(function highest (i64 T) i64 :merge (max old new))
(function weight (T) f64 :merge (max old new))
(function some (T) bool :merge (or old new))
(function every (T) bool :merge (and old new))
(function meet (i64) i64 :merge (& old new))
(function join (T i64) i64 :merge (let-it old new))
(function exact (i64) i64 :no-merge)
(relation edge (i64 i64))
(relation mark (T))
(relation label (T i64))
(ruleset start) (ruleset grow) (ruleset prune) (ruleset queries)
(unstable-combined-ruleset both grow prune)
)";

}  // namespace

std::string RandomProgram::Term(Scope* scope) {
  if (!scope->terms.empty() && Chance(65)) {
    return scope->terms[Pick(static_cast<uint32_t>(scope->terms.size()))];
  }
  if (Chance(5)) return "(A)";
  scope->terms.push_back("x" + std::to_string(names_++));
  return scope->terms.back();
}

std::string RandomProgram::Number(Scope* scope) {
  if (!scope->numbers.empty() && Chance(60)) {
    return scope->numbers[Pick(static_cast<uint32_t>(scope->numbers.size()))];
  }
  if (Chance(12)) return std::to_string(Pick(3));
  scope->numbers.push_back("n" + std::to_string(names_++));
  return scope->numbers.back();
}

std::string RandomProgram::Fact(Scope* scope) {
  const auto row = [scope](std::string fact) {
    scope->facts.push_back(fact);
    return fact;
  };
  switch (Pick(16)) {
    case 0: {
      const std::string whole = Term(scope);
      return "(= " + whole + " " + row("(F " + Term(scope) + ")") + ")";
    }
    case 1:
    case 2: {
      const std::string whole = Term(scope);
      const std::string left = Term(scope);
      return "(= " + whole + " " + row("(G " + left + " " + Term(scope) + ")") + ")";
    }
    case 3: {
      const std::string whole = Term(scope);
      return "(= " + whole + " " + row("(B " + Number(scope) + ")") + ")";
    }
    case 4: {
      const std::string whole = Term(scope);
      return "(= " + whole + " (G (F " + Term(scope) + ") " + Term(scope) + "))";
    }
    case 5: {
      const std::string part = Term(scope);
      return row("(H " + part + " " + Number(scope) + " " + (Chance(50) ? "true" : "false") + ")");
    }
    case 6: {
      const std::string from = Number(scope);
      return row("(edge " + from + " " + Number(scope) + ")");
    }
    case 7:
      return row("(mark " + Term(scope) + ")");
    case 8: {
      const std::string part = Term(scope);
      return row("(label " + part + " " + Number(scope) + ")");
    }
    case 9: {
      const std::string value = Number(scope);
      return "(= " + value + " (lowest " + Term(scope) + "))";
    }
    case 10: {
      const std::string value = Number(scope);
      const std::string first = Number(scope);
      return "(= " + value + " (highest " + first + " " + Term(scope) + "))";
    }
    case 11: {
      const std::string value = Number(scope);
      return "(= " + value + " (meet " + Number(scope) + "))";
    }
    case 12: {
      const std::string value = Number(scope);
      return "(= " + value + " (exact " + Number(scope) + "))";
    }
    case 13:
      return "(= " + std::string(Chance(50) ? "true" : "false") + " (some " + Term(scope) + "))";
    case 14: {
      const std::string value = Number(scope);
      const std::string first = Term(scope);
      return "(= " + value + " (join " + first + " " + Number(scope) + "))";
    }
    default:
      return "(= 2.5 (weight " + Term(scope) + "))";
  }
}

std::string RandomProgram::Facts(Scope* scope, uint32_t most) {
  std::string facts;
  for (uint32_t i = 0, n = 1 + Pick(most); i < n; ++i) facts += " " + Fact(scope);
  const auto number = [&] {
    return scope->numbers[Pick(static_cast<uint32_t>(scope->numbers.size()))];
  };
  if (!scope->numbers.empty() && Chance(35)) {
    switch (Pick(4)) {
      case 0:
        facts += " (< " + number() + " " + number() + ")";
        break;
      case 1:
        facts += " (!= " + number() + " " + std::to_string(Pick(3)) + ")";
        break;
      case 2:
        facts += " (= 0 (% " + number() + " 2))";
        break;
      default: {
        const std::string sum = "n" + std::to_string(names_++);
        facts += " (= " + sum + " (+ " + number() + " " + number() + "))";
        scope->numbers.push_back(sum);
        break;
      }
    }
  }
  if (scope->terms.size() > 1 && Chance(20)) {
    facts += " (!= " + scope->terms[0] + " " + scope->terms.back() + ")";
  }
  return facts;
}

std::string RandomProgram::KnownTerm(const Scope& scope, int depth) {
  if (depth > 0 && Chance(30)) return "(F " + KnownTerm(scope, depth - 1) + ")";
  if (depth > 0 && Chance(20)) {
    const std::string left = KnownTerm(scope, depth - 1);
    return "(G " + left + " " + KnownTerm(scope, depth - 1) + ")";
  }
  if (!scope.terms.empty() && Chance(85)) {
    return scope.terms[Pick(static_cast<uint32_t>(scope.terms.size()))];
  }
  return Chance(50) ? "(A)" : "(B " + Expression(scope) + ")";
}

// Values stay below 8, so that every program ends in few rows.
std::string RandomProgram::Expression(const Scope& scope) {
  if (scope.numbers.empty() || Chance(20)) return std::to_string(Pick(3));
  const std::string n = scope.numbers[Pick(static_cast<uint32_t>(scope.numbers.size()))];
  switch (Pick(5)) {
    case 0:
      return "(% (+ " + n + " 1) 6)";
    case 1:
      return "(min " + n + " 3)";
    case 2:
      return "(& 7 (* " + n + " " + n + "))";
    default:
      return n;
  }
}

std::string RandomProgram::Action(const Scope& scope) {
  switch (Pick(unites_ ? 15 : 12)) {
    case 0: {
      const std::string from = Expression(scope);
      return "(edge " + from + " " + Expression(scope) + ")";
    }
    case 1:
      return "(mark " + KnownTerm(scope, 1) + ")";
    case 2: {
      const std::string part = KnownTerm(scope, 1);
      return "(label " + part + " " + Expression(scope) + ")";
    }
    case 3: {
      const std::string part = KnownTerm(scope, 0);
      return "(set (lowest " + part + ") " + Expression(scope) + ")";
    }
    case 4: {
      const std::string first = Expression(scope);
      const std::string part = KnownTerm(scope, 0);
      return "(set (highest " + first + " " + part + ") " + Expression(scope) + ")";
    }
    case 5: {
      const std::string part = KnownTerm(scope, 0);
      return "(set (weight " + part + ") " + std::to_string(Pick(4)) + ".5)";
    }
    case 6: {
      const std::string part = KnownTerm(scope, 0);
      return "(set (" + std::string(Chance(50) ? "some " : "every ") + part + ") " +
             (Chance(50) ? "true" : "false") + ")";
    }
    case 7: {
      const std::string first = Expression(scope);
      return "(set (meet " + first + ") " + Expression(scope) + ")";
    }
    case 8: {
      const std::string part = KnownTerm(scope, 0);
      const std::string first = Expression(scope);
      return "(set (join " + part + " " + first + ") " + Expression(scope) + ")";
    }
    case 9: {
      const std::string first = Expression(scope);
      // Now and then two values for one argument: the run fails.
      return "(set (exact " + first + ") " + (Chance(90) ? first : Expression(scope)) + ")";
    }
    case 10:
    case 11:
      return "(F " + KnownTerm(scope, 1) + ")";
    default: {
      const std::string left = KnownTerm(scope, 1);
      return "(union " + left + " " + KnownTerm(scope, 1) + ")";
    }
  }
}

RandomProgram::RandomProgram(uint64_t seed) : random_(seed) {
  unites_ = Chance(70);
  deletes_ = Chance(50);
  // A merge of several calls; (max old new), written so that the engine has to work it out.
  text_ = kDeclarations;
  const std::string placeholder = "(let-it old new)";
  text_.replace(text_.find(placeholder), placeholder.size(),
                "(select (bool-< old new) (max new old) (+ old 0))");

  text_ += "(rule () (";
  for (int i = 0, n = 8 + static_cast<int>(Pick(12)); i < n; ++i) text_ += "\n  " + Action({});
  text_ += ") :ruleset start :name \"start\")\n";

  const std::string naive = unites_ && deletes_ ? " :naive" : "";
  for (int r = 0, n = 2 + static_cast<int>(Pick(4)); r < n; ++r) {
    Scope scope;
    const std::string facts = Facts(&scope, 3);
    text_ += "(rule (" + facts + ")\n      (";
    for (int i = 0, m = 1 + static_cast<int>(Pick(3)); i < m; ++i) text_ += Action(scope) + " ";
    text_ += ") :ruleset grow :name \"grow-" + std::to_string(r) + "\"" + naive + ")\n";
  }
  for (int r = 0, n = static_cast<int>(Pick(3)); r < n; ++r) {
    Scope scope;
    const std::string facts = Facts(&scope, 2);
    if (scope.facts.empty()) continue;
    const std::string& fact = scope.facts[Pick(static_cast<uint32_t>(scope.facts.size()))];
    const bool deletes = deletes_ && Chance(60);
    text_ += "(rule (" + facts + ")\n      ((" + (deletes ? "delete " : "subsume ") + fact +
             ")) :ruleset prune :name \"prune-" + std::to_string(r) + "\"" + naive + ")\n";
  }
  for (int r = 0; r < 3; ++r) {
    Scope scope;
    const std::string facts = Facts(&scope, 2);
    text_ +=
        "(rule (" + facts + ") () :ruleset queries :name \"query-" + std::to_string(r) + "\")\n";
  }
}

Schedule RandomProgram::SomeSchedule(const EGraph& graph, int depth) {
  const uint32_t kind = depth == 0 ? 0 : Pick(5);
  if (kind == 1) return Schedule::Repeat(1 + Pick(3), SomeSchedule(graph, depth - 1));
  if (kind == 2) return Schedule::Saturate(SomeSchedule(graph, depth - 1));
  if (kind >= 3) {
    std::vector<Schedule> parts;
    for (uint32_t i = 0; i < 2; ++i) parts.push_back(SomeSchedule(graph, depth - 1));
    return Schedule::Sequence(std::move(parts));
  }
  // Uniting and pruning share no step: see above.
  const char* const rulesets[] = {"grow", "grow", "prune", unites_ ? "grow" : "both"};
  Schedule run = Schedule::Run(graph.FindRuleset(rulesets[Pick(4)]));
  if (!Chance(25)) return run;
  std::vector<const Query*> queries;
  for (uint32_t r = 0; r < graph.rule_count(); ++r) {
    const Rule& rule = graph.rule(RuleId{r});
    if (rule.ruleset == graph.FindRuleset("queries")) queries.push_back(&rule.query);
  }
  return std::move(run).Until(*queries[Pick(static_cast<uint32_t>(queries.size()))]);
}

Schedule RandomProgram::NextSchedule(const EGraph& graph) { return SomeSchedule(graph, 2); }

}  // namespace l3c::egraph
