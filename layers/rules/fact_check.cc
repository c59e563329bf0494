#include "layers/rules/fact_check.h"

#include <map>
#include <stdexcept>

#include "egraph/program.h"
#include "egraph/run.h"
#include "egraph/why_not.h"
#include "layers/rules/meaning.h"

namespace l3c::rules {

using egraph::Function;
using egraph::FunctionId;
using egraph::FunctionKind;
using egraph::SortId;
using egraph::Value;

namespace {

// Simpler ones first. −1 is the version of what is given.
constexpr int64_t kNumbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 32, -1};
constexpr std::string_view kNames[] = {"a",          "b", "c", "d", "load", "forward_backward",
                                       "model_state"};
constexpr int kDeepest = 4;

// "(Load v c (InMem v q))" → "Load" and {"v", "c", "(InMem v q)"}.
std::pair<std::string, std::vector<std::string>> Parts(std::string_view term) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : term.substr(1, term.size() - 2)) {
    if (c == ' ' && depth == 0) {
      parts.emplace_back();
      continue;
    }
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    parts.back() += c;
  }
  std::string head = parts.front();
  parts.erase(parts.begin());
  return {head, parts};
}

// " column0 column1"
std::string Columns(const std::string& name, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += " " + name + std::to_string(i);
  return text;
}

// What stands in each of those columns, as premises: it may be nested or computed.
std::string Equations(const std::string& name, const std::vector<std::string>& patterns) {
  std::string text;
  for (size_t i = 0; i < patterns.size(); ++i) {
    text += " (= " + name + std::to_string(i) + " " + patterns[i] + ")";
  }
  return text;
}

}  // namespace

FactCheck::FactCheck(const RuleFile& file, const RuleInfo& info)
    : lowering_(*file.lowering), graph_(NewGraph(file)) {
  under_test_ = AddRuleset(graph_, "rule-under-test");
  meanings_ = AddRuleset(graph_, "meanings");
  for (uint32_t i = 0; i < graph_.function_count(); ++i) {
    if (graph_.function(FunctionId{i}).name.starts_with(prefix_)) prefix_ += '-';
  }
  std::map<std::string, std::vector<const Meaning*>> lines;
  for (const Meaning& meaning : Meanings(lowering_)) {
    lines[Parts(meaning.term).first].push_back(&meaning);
  }
  // A row of `f` has a meaning where the relation `meaning-f` holds its columns.
  std::string text;
  for (const auto& [name, meanings] : lines) {
    const FunctionId f = graph_.FindFunction(name);
    if (!f.valid()) continue;  // a file that declares the terms anew may lack it
    const bool term = graph_.function(f).kind == FunctionKind::kConstructor;
    std::vector<SortId> columns = graph_.function(f).inputs;
    if (term) columns.push_back(graph_.function(f).output);
    graph_.DeclareRelation(prefix_ + name, columns);
    for (const Meaning* meaning : meanings) {
      const std::string row = Columns("column", Parts(meaning->term).second.size());
      text += "(rule (" + std::string(term ? "(= answer (" : "(") + name + row +
              (term ? "))" : ")") + Equations("column", Parts(meaning->term).second);
      if (!meaning->request.empty()) {
        const auto [request, arguments] = Parts(meaning->request);
        text += " (= answer (" + request + Columns("asked", arguments.size()) + "))" +
                Equations("asked", arguments);
      }
      text += " " + std::string(meaning->facts) + ") ((" + prefix_ + name + row +
              (term ? " answer" : "") + ")) :ruleset " + graph_.ruleset_name(meanings_) + ")\n";
    }
  }
  const egraph::ProgramResult loaded = egraph::LoadProgram(graph_, text, "meaning");
  if (!loaded.ok()) throw std::logic_error(loaded.status.ToString());
  egraph::Rule copy = graph_.rule(info.id);
  copy.ruleset = under_test_;
  rule_ = graph_.AddRule(std::move(copy));
}

FunctionId FactCheck::MeaningOf(FunctionId f) const {
  return graph_.FindFunction(prefix_ + graph_.function(f).name);
}

bool FactCheck::IsRequest(const Function& f) const {
  return f.kind == FunctionKind::kConstructor && !f.extractable;
}

std::optional<Value> FactCheck::DrawValue(SortId sort, Choices& choices, int depth) {
  if (sort == egraph::kI64) {
    return graph_.I64(kNumbers[choices.Draw(std::size(kNumbers))]);
  }
  if (sort == egraph::kString) {
    return graph_.String(kNames[choices.Draw(std::size(kNames))]);
  }
  if (sort == egraph::kF64) return graph_.F64(static_cast<double>(choices.Draw(4)));
  if (sort == egraph::kBool) return graph_.Bool(choices.Draw(2) != 0);
  if (!graph_.sort(sort).is_equality || depth > kDeepest) return std::nullopt;
  // Any term of the sort; names of requests and shallow ones first.
  std::vector<FunctionId> makers;
  for (const bool deep : {false, true}) {
    for (uint32_t i = 0; i < graph_.function_count(); ++i) {
      const Function& f = graph_.function(FunctionId{i});
      if (f.kind != FunctionKind::kConstructor || f.output != sort) continue;
      bool nested = false;
      for (SortId input : f.inputs) nested |= graph_.sort(input).is_equality;
      if (nested == deep) makers.push_back(FunctionId{i});
    }
  }
  if (makers.empty()) return std::nullopt;
  const FunctionId f = makers[choices.Draw(makers.size())];
  std::vector<Value> args;
  for (SortId input : graph_.function(f).inputs) {
    const auto arg = DrawValue(input, choices, depth + 1);
    if (!arg) return std::nullopt;
    args.push_back(*arg);
  }
  return graph_.Add(f, args);
}

// Facts that match the rule's premises, as text as well.
bool FactCheck::StateFacts(Choices& choices, std::vector<std::string>& facts) {
  const egraph::Query& query = graph_.rule(rule_).query;
  std::vector<std::optional<Value>> slots(query.slot_sorts.size());
  const auto draw = [&](const egraph::Operand& o, SortId sort) -> std::optional<Value> {
    if (o.is_constant) return Value{o.bits};
    std::optional<Value>& slot = slots[o.bits];
    if (!slot) slot = DrawValue(sort, choices, 0);
    return slot;
  };
  // Terms from the inside out, so that what a premise names is the term it describes.
  std::vector<const egraph::Atom*> left;
  for (const egraph::Atom& atom : query.atoms) left.push_back(&atom);
  const auto is_output_of_another = [&](const egraph::Operand& o, const egraph::Atom* of) {
    for (const egraph::Atom* atom : left) {
      if (atom != of && !o.is_constant && atom->columns.back() == o &&
          graph_.function(atom->function).kind != FunctionKind::kRelation) {
        return true;
      }
    }
    return false;
  };
  while (!left.empty()) {
    size_t next = 0;
    for (size_t i = 0; i < left.size(); ++i) {
      bool waits = false;
      for (size_t c = 0; c + 1 < left[i]->columns.size(); ++c) {
        waits |= is_output_of_another(left[i]->columns[c], left[i]);
      }
      if (!waits) {
        next = i;
        break;
      }
    }
    const egraph::Atom& atom = *left[next];
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(next));
    const Function& f = graph_.function(atom.function);
    std::vector<Value> args;
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      const auto value = draw(atom.columns[i], f.inputs[i]);
      if (!value) return false;
      args.push_back(*value);
    }
    std::string text = "(" + f.name;
    for (size_t i = 0; i < args.size(); ++i) text += " " + ValueText(f.inputs[i], args[i], 0);
    text += ")";
    switch (f.kind) {
      case FunctionKind::kRelation:
        graph_.Insert(atom.function, args);
        break;
      case FunctionKind::kConstructor: {
        const Value made = graph_.Add(atom.function, args);
        const egraph::Operand& out = atom.columns.back();
        if (slots[out.bits]) return false;  // two forms of one class
        slots[out.bits] = made;
        break;
      }
      case FunctionKind::kFunction: {
        const auto value = draw(atom.columns.back(), f.output);
        if (!value) return false;
        const auto known = graph_.Lookup(atom.function, args);
        if (known && *known != *value) return false;
        graph_.Set(atom.function, args, *value);
        text = "(= " + text + " " + ValueText(f.output, *value, 0) + ")";
        break;
      }
    }
    facts.push_back(text);
  }
  graph_.Rebuild();
  return !graph_.failure();
}

FactCheck::Outcome FactCheck::Try(Choices& choices, Counterexample* counterexample,
                                  std::string* nearest) {
  graph_.Push();
  std::vector<std::string> facts;
  Outcome outcome = Outcome::kNoInstance;
  std::optional<Counterexample> found;
  if (StateFacts(choices, facts)) {
    egraph::Budget budget;
    budget.max_nodes = 20'000;
    budget.max_matches = 20'000;
    budget.max_iterations = 1;
    const size_t united = graph_.unions().size();
    const egraph::RunReport run = egraph::RunRuleset(graph_, under_test_, budget);
    outcome = run.matches == 0 ? Outcome::kNoMatch : Outcome::kAgrees;
    if (graph_.failure()) {
      found = Counterexample{*graph_.failure(), {}};
    } else if (run.matches > 0) {
      found = Judge(united);
    } else if (nearest != nullptr) {
      const egraph::WhyNotRule why = egraph::WhyNoMatch(graph_, rule_);
      *nearest = std::to_string(why.matched) + " of " + std::to_string(why.premises) +
                 " premises hold" + (why.nearest.empty() ? "" : " with " + why.nearest) +
                 (why.failed.empty() ? "" : "; fails: " + why.failed);
    }
  }
  graph_.Pop();
  if (!found) return outcome;
  if (counterexample != nullptr) {
    for (std::string& fact : facts) fact = "given  " + fact;
    found->lines.insert(found->lines.begin(), facts.begin(), facts.end());
    *counterexample = *std::move(found);
  }
  return Outcome::kDisagrees;
}

std::optional<Counterexample> FactCheck::Judge(size_t united) {
  egraph::Budget budget;
  budget.max_iterations = 1;
  egraph::RunRuleset(graph_, meanings_, budget);
  std::optional<Counterexample> wrong;
  // What nothing asks for is the program's own.
  for (size_t u = united; u < graph_.unions().size() && !wrong; ++u) {
    const egraph::UnionRecord& record = graph_.unions()[u];
    if (record.rule != rule_) continue;
    const SortId sort = graph_.ClassSort(record.a);
    bool asked = false;
    for (uint32_t i = 0; i < graph_.function_count(); ++i) {
      const Function& f = graph_.function(FunctionId{i});
      asked |= f.output == sort && IsRequest(f);
    }
    if (!asked) {
      wrong = Counterexample{
          "it makes two terms of '" + graph_.sort(sort).name + "' one, which are the program's own",
          {"joined " + ValueText(sort, record.a, 0)}};
    }
  }
  // A class answers one request.
  std::map<uint32_t, std::string> requests;
  for (uint32_t i = 0; i < graph_.function_count() && !wrong; ++i) {
    const Function& f = graph_.function(FunctionId{i});
    if (!IsRequest(f)) continue;
    graph_.ForEachRow(FunctionId{i}, [&](const egraph::Row& row) {
      const std::string text = RowText(FunctionId{i}, row);
      const auto [it, fresh] = requests.emplace(graph_.Find(row.output()).bits, text);
      if (!fresh && !wrong) {
        wrong =
            Counterexample{"it makes two requests one", {"joins  " + it->second, "with   " + text}};
      }
    });
  }
  for (uint32_t i = 0; i < graph_.function_count() && !wrong; ++i) {
    const Function& f = graph_.function(FunctionId{i});
    if (IsRequest(f) || f.name.starts_with(prefix_)) continue;
    const FunctionId meaning = MeaningOf(FunctionId{i});
    graph_.ForEachRow(FunctionId{i}, [&](const egraph::Row& row) {
      if (wrong || row.rule() != rule_) return;
      if (!meaning.valid()) {
        // A file's own facts are between its rules; its own terms nobody can read, and the facts
        // that a lowering states are not for rules to add.
        bool of_file = true;
        for (const Meaning& m : Meanings(lowering_)) {
          of_file &= m.facts.find("(" + f.name + " ") == std::string_view::npos;
        }
        if (IsFree(lowering_, f.name)) return;
        if (f.kind == FunctionKind::kConstructor) {
          // Terms of the program itself, of which requests speak, are the input's business.
          if (!requests.contains(graph_.Find(row.output()).bits)) return;
          wrong = Counterexample{"no lowering knows what '" + f.name + "' means", {}};
        } else if (!of_file) {
          wrong = Counterexample{"'" + f.name + "' is what the lowering states, not for rules", {}};
        } else {
          return;
        }
        wrong->lines.push_back("states " + RowText(FunctionId{i}, row));
        return;
      }
      std::vector<Value> columns;
      for (uint32_t c = 0; c < row.size(); ++c) {
        columns.push_back(graph_.Canonical(f.inputs[c], row.arg(c)));
      }
      if (f.kind == FunctionKind::kConstructor) columns.push_back(graph_.Find(row.output()));
      if (graph_.Lookup(meaning, columns)) return;
      const auto request = f.kind == FunctionKind::kConstructor
                               ? requests.find(graph_.Find(row.output()).bits)
                               : requests.end();
      const bool answer = request != requests.end();
      wrong = Counterexample{answer ? "under these facts the term does not answer the request"
                                    : "it does not follow from these facts",
                             {}};
      if (answer) wrong->lines.push_back("asked  " + request->second);
      wrong->lines.push_back((answer ? "made   " : "states ") + RowText(FunctionId{i}, row));
    });
  }
  return wrong;
}

std::string FactCheck::ValueText(SortId sort, Value v, int depth) const {
  if (!graph_.sort(sort).is_equality) return graph_.DescribeValue(sort, v);
  std::string text;
  for (const bool requests : {true, false}) {
    for (uint32_t i = 0; i < graph_.function_count() && text.empty() && depth < kDeepest; ++i) {
      const Function& f = graph_.function(FunctionId{i});
      if (f.kind != FunctionKind::kConstructor || f.output != sort || IsRequest(f) != requests) {
        continue;
      }
      graph_.ForEachRow(FunctionId{i}, [&](const egraph::Row& row) {
        if (text.empty() && graph_.Find(row.output()) == graph_.Find(v)) {
          text = RowText(FunctionId{i}, row, depth + 1);
        }
      });
    }
  }
  return text.empty() ? "…" : text;
}

std::string FactCheck::RowText(FunctionId f, const egraph::Row& row, int depth) const {
  const Function& function = graph_.function(f);
  std::string text = "(" + function.name;
  for (uint32_t i = 0; i < row.size(); ++i) {
    text += " " + ValueText(function.inputs[i], row.arg(i), depth);
  }
  return text + ")";
}

}  // namespace l3c::rules
