// Carrying out the commands of a text, one by one.
#include "egraph/program.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

#include "egraph/apply.h"
#include "egraph/compile.h"
#include "egraph/extract/term.h"
#include "egraph/sexp.h"

namespace l3c::egraph {
namespace {

constexpr size_t kMaxRuleName = 120;

// The text of an expression on one line, cut where it gets long.
std::string OneLine(std::string_view text) {
  std::string line;
  bool space = false;
  for (char c : text) {
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      space = !line.empty();
      continue;
    }
    if (space && line.back() != '(' && c != ')') line += ' ';
    space = false;
    if (line.size() >= kMaxRuleName) return line + "…";
    line += c;
  }
  return line;
}

// What all runs so far did, rule by rule.
std::string StatisticsText(const EGraph& graph, const std::vector<RunReport>& reports) {
  std::vector<RuleReport> rules(graph.rule_count());
  uint64_t iterations = 0;
  for (const RunReport& report : reports) {
    iterations += report.iterations;
    for (const RuleReport& rule : report.rules) {
      if (rule.rule.index >= rules.size()) continue;  // of a graph that was popped
      rules[rule.rule.index].matches += rule.matches;
      rules[rule.rule.index].applied += rule.applied;
    }
  }
  std::string text = "Overall statistics:\nsteps " + std::to_string(iterations) + ", rows " +
                     std::to_string(graph.RowCount()) + ", bytes " +
                     std::to_string(graph.Bytes()) + "\n";
  for (uint32_t r = 0; r < rules.size(); ++r) {
    if (rules[r].matches == 0) continue;
    text += "rule " + graph.rule(RuleId{r}).name + ": " + std::to_string(rules[r].matches) +
            " matches, " + std::to_string(rules[r].applied) + " applied\n";
  }
  return text;
}

class Loader {
 public:
  Loader(EGraph& graph, std::string_view file, const ProgramOptions& options)
      : graph_(graph), file_(file), options_(options) {}

  ProgramResult Load(std::string_view text) {
    if (text.size() > options_.max_bytes) {
      result_.status = {false, file_, 1, 1,
                        "the text is larger than " + std::to_string(options_.max_bytes) + " bytes"};
      return std::move(result_);
    }
    if (!doc_.Read(text)) {
      Error(doc_.error_offset(), doc_.error());
      return std::move(result_);
    }
    for (uint32_t command : doc_.top_level()) {
      if (!Command(command)) break;
    }
    return std::move(result_);
  }

 private:
  using Node = Document::Node;

  bool Error(uint32_t offset, std::string message) {
    const Document::Position at = doc_.PositionOf(offset);
    result_.status = {false, file_, at.line, at.column, std::move(message)};
    return false;
  }
  bool Error(const CompileError& error) { return Error(error.offset, error.message); }

  uint32_t Offset(uint32_t n) const { return doc_.node(n).begin; }
  uint32_t Count(uint32_t n) const { return doc_.node(n).child_count; }
  uint32_t Child(uint32_t n, uint32_t i) const { return doc_.child(n, i); }
  bool IsNonEmptyList(uint32_t n) const { return doc_.IsList(n) && Count(n) != 0; }
  std::string Quoted(uint32_t n) const { return "'" + OneLine(doc_.Text(n)) + "'"; }

  bool Command(uint32_t n) {
    if (!IsNonEmptyList(n) || !doc_.IsSymbol(Child(n, 0))) {
      return Error(Offset(n), "expected a command");
    }
    const std::string_view head = doc_.Text(Child(n, 0));
    if (head == "sort") return SortCommand(n);
    if (head == "datatype") return DatatypeCommand(n);
    if (head == "datatype*") return DatatypesCommand(n);
    if (head == "constructor") return ConstructorCommand(n);
    if (head == "function") return FunctionCommand(n);
    if (head == "relation") return RelationCommand(n);
    if (head == "ruleset") return RulesetCommand(n);
    if (head == "unstable-combined-ruleset") return CombinedRulesetCommand(n);
    if (head == "rule") return RuleCommand(n);
    if (head == "rewrite") return RewriteCommand(n, false);
    if (head == "birewrite") return RewriteCommand(n, true);
    if (head == "run") return RunCommand(n);
    if (head == "run-schedule") return RunScheduleCommand(n);
    if (head == "let") return LetCommand(n);
    if (head == "check") return CheckCommand(n);
    if (head == "fail") return FailCommand(n);
    if (head == "extract") return ExtractCommand(n);
    if (head == "print-size") return PrintSizeCommand(n);
    if (head == "print-function") return PrintFunctionCommand(n);
    if (head == "print-stats") return PrintStatsCommand(n);
    if (head == "include") return IncludeCommand(n);
    if (head == "input") return InputCommand(n);
    if (head == "output") return OutputCommand(n);
    if (head == "push") return PushCommand(n);
    if (head == "pop") return PopCommand(n);
    const bool known = head == "set" || head == "union" || head == "delete" || head == "subsume" ||
                       head == "panic" || graph_.FindFunction(head).valid() ||
                       !graph_.FindPrimitives(head).empty();
    if (!known) {
      return Error(Offset(n),
                   "unknown command or function '" + std::string(head.substr(0, 80)) + "'");
    }
    return ActionCommand(n);
  }

  // --- Names and options

  bool Takes(uint32_t n, uint32_t low, uint32_t high) {
    const uint32_t given = Count(n) - 1;
    if (given >= low && given <= high) return true;
    const std::string head(doc_.Text(Child(n, 0)));
    const std::string range =
        low == high ? std::to_string(low) : std::to_string(low) + " to " + std::to_string(high);
    return Error(Offset(n), "'" + head + "' takes " + range + " arguments, " +
                                std::to_string(given) + " given");
  }

  bool NewName(uint32_t n, std::string_view* name) {
    if (!doc_.IsSymbol(n)) return Error(Offset(n), "expected a name");
    *name = doc_.Text(n);
    if ((*name)[0] == ':') return Error(Offset(n), "expected a name, found " + Quoted(n));
    return true;
  }

  bool NewSortName(uint32_t n, std::string_view* name) {
    if (!NewName(n, name)) return false;
    if (graph_.FindSort(*name).valid()) {
      return Error(Offset(n), "sort " + Quoted(n) + " is declared already");
    }
    return true;
  }

  bool NewFunctionName(uint32_t n, std::string_view* name) {
    if (!NewName(n, name)) return false;
    // `select` is a primitive of ours alone; a program may have its own.
    const bool primitive = !graph_.FindPrimitives(*name).empty() && *name != "select";
    if (graph_.FindFunction(*name).valid() || primitive || *name == "=") {
      return Error(Offset(n), Quoted(n) + " is declared already");
    }
    return true;
  }

  bool SortName(uint32_t n, SortId* sort) {
    if (!doc_.IsSymbol(n)) return Error(Offset(n), "expected a sort");
    *sort = graph_.FindSort(doc_.Text(n));
    return sort->valid() || Error(Offset(n), "unknown sort " + Quoted(n));
  }

  bool SortList(uint32_t n, std::vector<SortId>* sorts) {
    if (!doc_.IsList(n)) return Error(Offset(n), "expected a list of sorts");
    if (Count(n) > EGraph::kMaxArity) {
      return Error(Offset(n), "more than " + std::to_string(EGraph::kMaxArity) + " arguments");
    }
    sorts->resize(Count(n));
    for (uint32_t i = 0; i < Count(n); ++i) {
      if (!SortName(Child(n, i), &(*sorts)[i])) return false;
    }
    return true;
  }

  bool IsOption(uint32_t n) const { return doc_.IsSymbol(n) && doc_.Text(n)[0] == ':'; }

  bool OptionValue(uint32_t n, uint32_t* i, uint32_t* value) {
    const uint32_t option = Child(n, *i);
    if (++*i >= Count(n)) return Error(Offset(option), Quoted(option) + " needs a value");
    *value = Child(n, *i);
    return true;
  }

  // --- Declarations

  bool SortCommand(uint32_t n) {
    std::string_view name;
    if (!Takes(n, 1, 2) || !NewSortName(Child(n, 1), &name)) return false;
    if (Count(n) == 3) return ContainerSort(name, Child(n, 2));
    graph_.DeclareSort(name);
    return true;
  }

  // (Vec i64)
  bool ContainerSort(std::string_view name, uint32_t n) {
    if (!IsNonEmptyList(n) || !doc_.IsSymbol(Child(n, 0))) {
      return Error(Offset(n), "expected a container sort, such as (Vec i64)");
    }
    const ContainerKind kind = ParseContainerKind(doc_.Text(Child(n, 0)));
    if (kind == ContainerKind::kNone) {
      return Error(Offset(n), "unknown container " + Quoted(Child(n, 0)) +
                                  "; Vec, Set, MultiSet, Map, Pair and UnstableFn are known");
    }
    if (graph_.sort_count() >= kMaxSorts) {
      return Error(Offset(n), "more than " + std::to_string(kMaxSorts) + " sorts");
    }
    if (kind == ContainerKind::kFn) return FnSort(name, n);
    const auto parameters = static_cast<uint32_t>(ContainerParameters(kind));
    if (!Takes(n, parameters, parameters)) return false;
    std::vector<SortId> sorts(parameters);
    for (uint32_t i = 0; i < parameters; ++i) {
      if (!SortName(Child(n, i + 1), &sorts[i])) return false;
    }
    graph_.DeclareContainer(name, kind, sorts);
    return true;
  }

  // (UnstableFn (i64 i64) String)
  bool FnSort(std::string_view name, uint32_t n) {
    std::vector<SortId> sorts;
    SortId output;
    if (!Takes(n, 2, 2) || !SortList(Child(n, 1), &sorts) || !SortName(Child(n, 2), &output)) {
      return false;
    }
    sorts.push_back(output);
    graph_.DeclareContainer(name, ContainerKind::kFn, sorts);
    return true;
  }

  // Options `:cost N` and `:unextractable` from child `i` on.
  bool ConstructorOptionsFrom(uint32_t n, uint32_t i, ConstructorOptions* options) {
    for (; i < Count(n); ++i) {
      const uint32_t option = Child(n, i);
      if (IsOption(option) && doc_.Text(option) == ":unextractable") {
        options->extractable = false;
        continue;
      }
      if (IsOption(option) && doc_.Text(option) == ":internal-hidden") {
        options->hidden = true;
        continue;
      }
      if (!IsOption(option) || doc_.Text(option) != ":cost") {
        return Error(Offset(option), "unexpected " + Quoted(option));
      }
      uint32_t value = 0;
      if (!OptionValue(n, &i, &value)) return false;
      if (doc_.node(value).kind == Document::Kind::kInt) {
        options->cost = static_cast<double>(doc_.Int(value));
      } else if (doc_.node(value).kind == Document::Kind::kFloat) {
        options->cost = doc_.Float(value);
      } else {
        return Error(Offset(value), "expected a number");
      }
      if (!(options->cost >= 0)) return Error(Offset(value), "a cost is not negative");
    }
    return true;
  }

  bool DatatypeCommand(uint32_t n) {
    std::string_view name;
    if (Count(n) < 2) return Error(Offset(n), "expected the name of a sort");
    if (!NewSortName(Child(n, 1), &name)) return false;
    return Variants(n, 2, graph_.DeclareSort(name));
  }

  // The constructors of a datatype, children of `n` from `first` on.
  bool Variants(uint32_t n, uint32_t first, SortId sort) {
    for (uint32_t v = first; v < Count(n); ++v) {
      const uint32_t variant = Child(n, v);
      std::string_view variant_name;
      if (!IsNonEmptyList(variant)) return Error(Offset(variant), "expected a constructor");
      if (!NewFunctionName(Child(variant, 0), &variant_name)) return false;
      std::vector<SortId> inputs;
      uint32_t i = 1;
      for (; i < Count(variant) && !IsOption(Child(variant, i)); ++i) {
        inputs.emplace_back();
        if (!SortName(Child(variant, i), &inputs.back())) return false;
      }
      if (inputs.size() > EGraph::kMaxArity) {
        return Error(Offset(variant),
                     "more than " + std::to_string(EGraph::kMaxArity) + " arguments");
      }
      ConstructorOptions options;
      if (!ConstructorOptionsFrom(variant, i, &options)) return false;
      graph_.DeclareConstructor(variant_name, inputs, sort, options);
    }
    return true;
  }

  // Sorts that name each other: (datatype* (S (C T)) (sort T (Vec S)) …). All plain sorts are
  // declared first, then containers, then constructors.
  bool DatatypesCommand(uint32_t n) {
    std::vector<SortId> sorts(Count(n));
    for (uint32_t i = 1; i < Count(n); ++i) {
      const uint32_t part = Child(n, i);
      std::string_view name;
      if (!IsNonEmptyList(part)) return Error(Offset(part), "expected (SORT CONSTRUCTOR...)");
      if (IsContainerPart(part)) continue;
      if (!NewSortName(Child(part, 0), &name)) return false;
      sorts[i] = graph_.DeclareSort(name);
    }
    for (uint32_t i = 1; i < Count(n); ++i) {
      if (IsContainerPart(Child(n, i)) && !SortCommand(Child(n, i))) return false;
    }
    for (uint32_t i = 1; i < Count(n); ++i) {
      if (!IsContainerPart(Child(n, i)) && !Variants(Child(n, i), 1, sorts[i])) return false;
    }
    return true;
  }
  bool IsContainerPart(uint32_t part) const {
    return Count(part) == 3 && doc_.Text(Child(part, 0)) == "sort" && doc_.IsSymbol(Child(part, 1));
  }

  bool ConstructorCommand(uint32_t n) {
    std::string_view name;
    std::vector<SortId> inputs;
    SortId output;
    ConstructorOptions options;
    if (Count(n) < 4) return Error(Offset(n), "expected (constructor NAME (SORT...) SORT)");
    if (!NewFunctionName(Child(n, 1), &name) || !SortList(Child(n, 2), &inputs) ||
        !SortName(Child(n, 3), &output) || !ConstructorOptionsFrom(n, 4, &options)) {
      return false;
    }
    if (!graph_.sort(output).is_equality) {
      return Error(Offset(Child(n, 3)), "a constructor makes values of a declared sort, not of " +
                                            graph_.sort(output).name);
    }
    graph_.DeclareConstructor(name, inputs, output, options);
    return true;
  }

  bool FunctionCommand(uint32_t n) {
    std::string_view name;
    std::vector<SortId> inputs;
    SortId output;
    if (Count(n) < 4) {
      return Error(Offset(n), "expected (function NAME (SORT...) SORT :merge EXPR)");
    }
    if (!NewFunctionName(Child(n, 1), &name) || !SortList(Child(n, 2), &inputs) ||
        !SortName(Child(n, 3), &output)) {
      return false;
    }
    std::optional<Merge> merge;
    bool hidden = false;
    for (uint32_t i = 4; i < Count(n); ++i) {
      const uint32_t option = Child(n, i);
      if (IsOption(option) && doc_.Text(option) == ":internal-hidden") {
        hidden = true;
        continue;
      }
      // The values of functions are no e-nodes, so they are never extracted.
      if (IsOption(option) && doc_.Text(option) == ":unextractable") continue;
      if (merge) return Error(Offset(option), "unexpected " + Quoted(option));
      if (IsOption(option) && doc_.Text(option) == ":no-merge") {
        merge = Merge::AssertEqual();
      } else if (IsOption(option) && doc_.Text(option) == ":merge") {
        uint32_t expr = 0;
        if (!OptionValue(n, &i, &expr)) return false;
        merge = ReadMerge(expr, output);
        if (!merge) return false;
      } else {
        return Error(Offset(option), "unexpected " + Quoted(option));
      }
    }
    if (!merge) return Error(Offset(n), "a function needs :merge or :no-merge");
    graph_.SetHidden(graph_.DeclareFunction(name, inputs, output, std::move(*merge)), hidden);
    return true;
  }

  std::optional<Merge> ReadMerge(uint32_t expr, SortId output) {
    const std::string text = OneLine(doc_.Text(expr));
    const bool number = output == kI64 || output == kF64;
    if (number && (text == "(min old new)" || text == "(min new old)")) return Merge::Min();
    if (number && (text == "(max old new)" || text == "(max new old)")) return Merge::Max();
    if (output == kBool && (text == "(or old new)" || text == "(or new old)")) return Merge::Or();
    if (output == kBool && (text == "(and old new)" || text == "(and new old)")) {
      return Merge::And();
    }
    Compiler compiler(graph_, doc_);
    compiler.AllowReads();
    compiler.BindName("old", compiler.NewSlot(output));
    compiler.BindName("new", compiler.NewSlot(output));
    const std::optional<Compiler::Typed> merged = compiler.AddExpression(expr, output);
    if (!merged) {
      Error(compiler.error());
      return std::nullopt;
    }
    if (merged->sort != output) {
      Error(Offset(expr),
            "expected " + graph_.sort(output).name + ", found " + graph_.sort(merged->sort).name);
      return std::nullopt;
    }
    // The slots of the step: old, new, then one per call.
    auto step = std::make_shared<Rule>();
    step->actions = compiler.TakeActions();
    step->slot_sorts = compiler.TakeSlotSorts();
    return Merge::Custom([step, result = merged->operand](EGraph& graph, Value old_value,
                                                          Value new_value) -> std::optional<Value> {
      ActionRunner runner(graph);
      const std::span<uint32_t> slots = runner.Slots(*step);
      slots[0] = old_value.bits;
      slots[1] = new_value.bits;
      if (!runner.Apply(*step)) return std::nullopt;
      return result.is_constant ? Value{result.bits}
                                : graph.Canonical(step->slot_sorts[result.bits],
                                                  Value{slots[result.bits]});
    });
  }

  bool RelationCommand(uint32_t n) {
    std::string_view name;
    std::vector<SortId> inputs;
    if (!Takes(n, 2, 2) || !NewFunctionName(Child(n, 1), &name) ||
        !SortList(Child(n, 2), &inputs)) {
      return false;
    }
    graph_.DeclareRelation(name, inputs);
    return true;
  }

  bool RulesetCommand(uint32_t n) {
    std::string_view name;
    if (!Takes(n, 1, 1) || !NewName(Child(n, 1), &name)) return false;
    if (graph_.FindRuleset(name).valid()) {
      return Error(Offset(Child(n, 1)), "ruleset " + Quoted(Child(n, 1)) + " is declared already");
    }
    graph_.DeclareRuleset(name);
    return true;
  }

  bool CombinedRulesetCommand(uint32_t n) {
    std::string_view name;
    if (Count(n) < 2) return Error(Offset(n), "expected the name of a ruleset");
    if (!NewName(Child(n, 1), &name)) return false;
    if (graph_.FindRuleset(name).valid()) {
      return Error(Offset(Child(n, 1)), "ruleset " + Quoted(Child(n, 1)) + " is declared already");
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

  // --- Rules

  struct RuleOptions {
    std::string name;
    RulesetId ruleset = kDefaultRuleset;
    Numerics numerics = Numerics::kExact;
    uint32_t when = Id<void>::kNone;  // list of facts
    bool subsume = false;
    bool naive = false;
    bool reads = false;  // actions may read the values of functions
  };

  bool ReadRuleOptions(uint32_t n, uint32_t i, bool rewrite, RuleOptions* options) {
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
        options->ruleset =
            doc_.IsSymbol(value) ? graph_.FindRuleset(doc_.Text(value)) : RulesetId{};
        if (!options->ruleset.valid()) {
          return Error(Offset(value), "unknown ruleset " + Quoted(value));
        }
        if (graph_.IsCombined(options->ruleset)) {
          return Error(Offset(value), "a combined ruleset has no rules of its own");
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
        return Error(Offset(option), "unknown option " + Quoted(option));
      }
    }
    return true;
  }

  void AddRule(uint32_t n, const RuleOptions& options, std::string name, Query query,
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

  bool RuleCommand(uint32_t n) {
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

  bool RewriteCommand(uint32_t n, bool both_ways) {
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

  bool OneWay(uint32_t n, uint32_t from, uint32_t to, const RuleOptions& options,
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

  // --- Running

  bool FinishRun(uint32_t n, const Schedule& schedule) {
    result_.reports.push_back(RunSchedule(graph_, schedule, options_.budget));
    if (result_.reports.back().stop != StopReason::kFailed) return true;
    return Error(Offset(n), graph_.failure().value_or("the run failed"));
  }

  bool ReadQuery(uint32_t n, uint32_t first, Query* query) {
    Compiler compiler(graph_, doc_);
    for (uint32_t i = first; i < Count(n); ++i) {
      if (!compiler.AddFact(Child(n, i))) return Error(compiler.error());
    }
    return compiler.FinishQuery(query) || Error(compiler.error());
  }

  // (run [RULESET] [N] [:until FACT...])
  std::optional<Schedule> ReadRun(uint32_t n) {
    RulesetId ruleset = kDefaultRuleset;
    uint64_t times = 1;
    uint32_t i = 1;
    if (i < Count(n) && doc_.IsSymbol(Child(n, i)) && !IsOption(Child(n, i))) {
      const std::optional<RulesetId> named = ReadRuleset(Child(n, i++));
      if (!named) return std::nullopt;
      ruleset = *named;
    }
    if (i < Count(n) && doc_.node(Child(n, i)).kind == Document::Kind::kInt) {
      if (doc_.Int(Child(n, i)) < 0) {
        Error(Offset(Child(n, i)), "a count is not negative");
        return std::nullopt;
      }
      times = static_cast<uint64_t>(doc_.Int(Child(n, i++)));
    }
    Schedule step = Schedule::Run(ruleset);
    if (i < Count(n)) {
      if (!IsOption(Child(n, i)) || doc_.Text(Child(n, i)) != ":until") {
        Error(Offset(Child(n, i)), "unexpected " + Quoted(Child(n, i)));
        return std::nullopt;
      }
      Query until;
      if (!ReadQuery(n, i + 1, &until)) return std::nullopt;
      step = std::move(step).Until(std::move(until));
    }
    return times == 1 ? std::move(step) : Schedule::Repeat(times, std::move(step));
  }

  std::optional<RulesetId> ReadRuleset(uint32_t n) {
    const RulesetId ruleset = graph_.FindRuleset(doc_.Text(n));
    if (ruleset.valid()) return ruleset;
    Error(Offset(n), "unknown ruleset " + Quoted(n));
    return std::nullopt;
  }

  std::optional<Schedule> ReadSchedule(uint32_t n) {
    if (doc_.IsSymbol(n)) {
      const std::optional<RulesetId> ruleset = ReadRuleset(n);
      if (!ruleset) return std::nullopt;
      return Schedule::Run(*ruleset);
    }
    if (!IsNonEmptyList(n) || !doc_.IsSymbol(Child(n, 0))) {
      Error(Offset(n), "expected a schedule");
      return std::nullopt;
    }
    const std::string_view head = doc_.Text(Child(n, 0));
    if (head == "run") return ReadRun(n);
    uint32_t first = 1;
    uint64_t times = 0;
    if (head == "repeat") {
      if (Count(n) < 2 || doc_.node(Child(n, 1)).kind != Document::Kind::kInt ||
          doc_.Int(Child(n, 1)) < 0) {
        Error(Offset(n), "expected (repeat N SCHEDULE...)");
        return std::nullopt;
      }
      times = static_cast<uint64_t>(doc_.Int(Child(n, 1)));
      first = 2;
    } else if (head != "saturate" && head != "seq") {
      Error(Offset(n), "unknown schedule " + Quoted(Child(n, 0)) +
                           "; run, repeat, saturate and seq are known");
      return std::nullopt;
    }
    std::vector<Schedule> parts;
    for (uint32_t i = first; i < Count(n); ++i) {
      std::optional<Schedule> part = ReadSchedule(Child(n, i));
      if (!part) return std::nullopt;
      parts.push_back(std::move(*part));
    }
    Schedule body = Schedule::Sequence(std::move(parts));
    if (head == "repeat") return Schedule::Repeat(times, std::move(body));
    if (head == "saturate") return Schedule::Saturate(std::move(body));
    return body;
  }

  bool RunCommand(uint32_t n) {
    const std::optional<Schedule> schedule = ReadRun(n);
    return schedule && FinishRun(n, *schedule);
  }

  bool RunScheduleCommand(uint32_t n) {
    std::vector<Schedule> parts;
    for (uint32_t i = 1; i < Count(n); ++i) {
      std::optional<Schedule> part = ReadSchedule(Child(n, i));
      if (!part) return false;
      parts.push_back(std::move(*part));
    }
    return FinishRun(n, Schedule::Sequence(std::move(parts)));
  }

  // --- Actions at the top level

  // Runs what `compiler` has gathered; `value`, if any, is read from `operand` afterwards.
  bool Perform(uint32_t n, Compiler& compiler, const Operand* operand, Value* value) {
    Rule once;
    once.actions = compiler.TakeActions();
    once.slot_sorts = compiler.TakeSlotSorts();
    ActionRunner runner(graph_);
    std::span<uint32_t> slots = runner.Slots(once);
    ProofLog* log = graph_.proof_log();
    if (log != nullptr) {
      once.name = OneLine(doc_.Text(n));
      once.file = file_;
      const Document::Position at = doc_.PositionOf(Offset(n));
      once.line = at.line;
      once.column = at.column;
      log->BeginStatement(std::make_shared<const Rule>(once));
    }
    bool fine = runner.Apply(once);
    if (log != nullptr) log->End();
    fine = fine && graph_.Rebuild();
    if (!fine) return Error(Offset(n), graph_.failure().value_or("the action failed"));
    if (operand != nullptr) {
      *value = Value{operand->is_constant ? operand->bits : slots[operand->bits]};
    }
    return true;
  }

  bool ActionCommand(uint32_t n) {
    Compiler compiler(graph_, doc_);
    compiler.AllowReads();
    if (!compiler.AddAction(n)) return Error(compiler.error());
    return Perform(n, compiler, nullptr, nullptr);
  }

  bool Evaluate(uint32_t n, uint32_t expr, EGraph::Global* result) {
    Compiler compiler(graph_, doc_);
    compiler.AllowReads();
    const std::optional<Compiler::Typed> typed = compiler.AddExpression(expr);
    if (!typed) return Error(compiler.error());
    result->sort = typed->sort;
    return Perform(n, compiler, &typed->operand, &result->value);
  }

  bool LetCommand(uint32_t n) {
    std::string_view name;
    EGraph::Global global;
    if (!Takes(n, 2, 2) || !NewName(Child(n, 1), &name)) return false;
    if (graph_.FindGlobal(name) != nullptr) {
      return Error(Offset(Child(n, 1)), Quoted(Child(n, 1)) + " is bound already");
    }
    if (!Evaluate(n, Child(n, 2), &global)) return false;
    graph_.SetGlobal(name, global);
    return true;
  }

  // --- Asking

  bool CheckCommand(uint32_t n) {
    Query query;
    if (!ReadQuery(n, 1, &query)) return false;
    if (HasMatch(graph_, query, /*subsumed_too=*/true)) return true;
    return Error(Offset(n), "check failed: no match for " + Quoted(n));
  }

  bool FailCommand(uint32_t n) {
    if (!Takes(n, 1, 1)) return false;
    if (Command(Child(n, 1))) {
      return Error(Offset(n), Quoted(Child(n, 1)) + " was expected to fail");
    }
    graph_.ClearFailure();
    result_.status = ProgramStatus{};
    return graph_.Rebuild() || Error(Offset(n), *graph_.failure());
  }

  // Costs of the graph as it is; kept while it stays the same.
  const TermExtractor& Terms() {
    if (!terms_ || terms_version_ != graph_.version()) {
      terms_.emplace(graph_);
      terms_version_ = graph_.version();
    }
    return *terms_;
  }

  bool ExtractCommand(uint32_t n) {
    EGraph::Global value;
    EGraph::Global count{kI64, graph_.I64(0)};
    if (!Takes(n, 1, 2) || !Evaluate(n, Child(n, 1), &value)) return false;
    if (Count(n) == 3 && !Evaluate(n, Child(n, 2), &count)) return false;
    if (count.sort != kI64 || graph_.AsI64(count.value) < 0) {
      return Error(Offset(Child(n, 2)), "expected a number of variants");
    }
    value.value = graph_.Canonical(value.sort, value.value);
    const std::optional<uint64_t> cost = Terms().Cost(value.sort, value.value);
    if (!cost) return Error(Offset(n), "no term of finite cost to extract");
    Printed printed;
    if (const int64_t variants = graph_.AsI64(count.value); variants != 0) {
      printed.kind = Printed::Kind::kVariants;
      printed.text = "(\n";
      for (const TermExtractor::Variant& v :
           Terms().Variants(value.sort, value.value, static_cast<size_t>(variants))) {
        printed.text += "   " + v.text + "\n";
      }
      printed.text += ")\n";
    } else {
      const std::optional<std::string> text = Terms().Text(value.sort, value.value);
      printed.kind = Printed::Kind::kTerm;
      printed.cost = *cost;
      printed.text = *text + "\n";
    }
    result_.printed.push_back(std::move(printed));
    return true;
  }

  // --- Printing

  bool FunctionName(uint32_t n, FunctionId* f) {
    *f = doc_.IsSymbol(n) ? graph_.FindFunction(doc_.Text(n)) : FunctionId{};
    return f->valid() || Error(Offset(n), "unknown function " + Quoted(n));
  }

  bool PrintSizeCommand(uint32_t n) {
    if (!Takes(n, 0, 1)) return false;
    Printed printed;
    if (Count(n) == 2) {
      FunctionId f;
      if (!FunctionName(Child(n, 1), &f)) return false;
      printed.sizes.emplace_back(graph_.function(f).name, graph_.LiveRows(f));
      printed.text = std::to_string(graph_.LiveRows(f)) + "\n";
      result_.printed.push_back(std::move(printed));
      return true;
    }
    printed.kind = Printed::Kind::kSizes;
    for (uint32_t f = 0; f < graph_.function_count(); ++f) {
      const Function& function = graph_.function(FunctionId{f});
      if (!function.hidden) {
        printed.sizes.emplace_back(function.name, graph_.LiveRows(FunctionId{f}));
      }
    }
    std::sort(printed.sizes.begin(), printed.sizes.end());
    printed.text = "(";
    for (const auto& [name, size] : printed.sizes) {
      printed.text += printed.text.size() == 1 ? "(" : "\n (";
      printed.text += name + " " + std::to_string(size) + ")";
    }
    printed.text += ")\n";
    result_.printed.push_back(std::move(printed));
    return true;
  }

  static std::string CsvField(const std::string& text) {
    if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
    std::string quoted = "\"";
    for (char c : text) {
      if (c == '"') quoted += '"';
      quoted += c;
    }
    return quoted + '"';
  }

  // (print-function f [N] [:mode default|csv] [:file "name"])
  bool PrintFunctionCommand(uint32_t n) {
    FunctionId f;
    if (Count(n) < 2) return Error(Offset(n), "expected the name of a function");
    if (!FunctionName(Child(n, 1), &f)) return false;
    uint32_t i = 2;
    auto most = std::numeric_limits<int64_t>::max();
    if (i < Count(n) && doc_.node(Child(n, i)).kind == Document::Kind::kInt) {
      most = doc_.Int(Child(n, i++));
      if (most < 0) return Error(Offset(Child(n, 2)), "expected a count");
    }
    bool csv = false;
    uint32_t file = Id<void>::kNone;
    for (; i < Count(n); ++i) {
      const uint32_t option = Child(n, i);
      uint32_t value = 0;
      if (!IsOption(option)) return Error(Offset(option), "unexpected " + Quoted(option));
      if (!OptionValue(n, &i, &value)) return false;
      if (doc_.Text(option) == ":file") {
        file = value;
      } else if (doc_.Text(option) == ":mode" &&
                 (doc_.Text(value) == "csv" || doc_.Text(value) == "default")) {
        csv = doc_.Text(value) == "csv";
      } else {
        return Error(Offset(option), "expected :mode default, :mode csv or :file");
      }
    }
    const Function& function = graph_.function(f);
    const TermExtractor& terms = Terms();
    const auto text_of = [&](SortId sort, Value v) {
      return terms.Text(sort, v).value_or("Unextractable");
    };
    Printed printed;
    printed.kind = Printed::Kind::kFunction;
    if (!csv) printed.text = "(\n";
    graph_.ForEachRow(f, [&](const Row& row) {
      if (most-- <= 0) return;
      const std::string output =
          function.output == kUnit ? "" : text_of(function.output, row.output());
      if (csv) {
        printed.text += CsvField(function.name);
        for (uint32_t a = 0; a < row.size(); ++a) {
          printed.text += ',' + CsvField(text_of(function.inputs[a], row.arg(a)));
        }
        if (function.output != kUnit) printed.text += ',' + CsvField(output);
        printed.text += '\n';
        return;
      }
      printed.text += "   " + terms.RowText(f, row);
      if (function.output != kUnit) printed.text += " -> " + output;
      printed.text += '\n';
    });
    if (!csv) printed.text += ")\n";
    if (file != Id<void>::kNone) return WriteFile(file, printed.text, std::ios::trunc);
    result_.printed.push_back(std::move(printed));
    return true;
  }

  bool PrintStatsCommand(uint32_t n) {
    uint32_t file = Id<void>::kNone;
    if (Count(n) == 3 && IsOption(Child(n, 1)) && doc_.Text(Child(n, 1)) == ":file") {
      file = Child(n, 2);
    } else if (!Takes(n, 0, 0)) {
      return false;
    }
    Printed printed;
    printed.kind = Printed::Kind::kStatistics;
    printed.text = StatisticsText(graph_, result_.reports);
    if (file != Id<void>::kNone) return WriteFile(file, printed.text, std::ios::trunc);
    result_.printed.push_back(std::move(printed));
    return true;
  }

  // --- Files

  bool FileName(uint32_t n, std::filesystem::path* path) {
    if (doc_.node(n).kind != Document::Kind::kText) return Error(Offset(n), "expected a string");
    if (options_.directory.empty()) {
      return Error(Offset(n), "this program may not read or write files");
    }
    *path = std::filesystem::path(options_.directory) / doc_.String(n);
    return true;
  }

  bool ReadFile(uint32_t n, std::filesystem::path* path, std::string* text) {
    if (!FileName(n, path)) return false;
    std::error_code error;
    if (std::filesystem::is_directory(*path, error)) {
      return Error(Offset(n), "'" + path->string() + "' is a folder");
    }
    std::ifstream in(*path, std::ios::binary);
    text->clear();
    char buffer[1 << 14];
    while (in.read(buffer, sizeof buffer) || in.gcount() > 0) {
      text->append(buffer, static_cast<size_t>(in.gcount()));
      if (text->size() > options_.max_bytes) {
        return Error(Offset(n), "'" + path->string() + "' is larger than " +
                                    std::to_string(options_.max_bytes) + " bytes");
      }
    }
    return in.eof() || Error(Offset(n), "cannot read '" + path->string() + "'");
  }

  bool WriteFile(uint32_t n, const std::string& text, std::ios::openmode mode) {
    std::filesystem::path path;
    if (!FileName(n, &path)) return false;
    std::ofstream out(path, std::ios::binary | std::ios::out | mode);
    out << text;
    return out.flush() ? true : Error(Offset(n), "cannot write '" + path.string() + "'");
  }

  bool IncludeCommand(uint32_t n) {
    std::filesystem::path path;
    std::string text;
    if (!Takes(n, 1, 1) || !ReadFile(Child(n, 1), &path, &text)) return false;
    if (depth_ == kMaxIncludes) {
      return Error(Offset(n), "files include each other deeper than " +
                                  std::to_string(kMaxIncludes));
    }
    Loader inner(graph_, path.string(), options_);
    inner.depth_ = depth_ + 1;
    inner.saved_ = std::move(saved_);
    ProgramResult loaded = inner.Load(text);
    saved_ = std::move(inner.saved_);
    terms_.reset();
    for (Printed& p : loaded.printed) result_.printed.push_back(std::move(p));
    for (RunReport& r : loaded.reports) result_.reports.push_back(std::move(r));
    result_.status = std::move(loaded.status);
    return result_.status.ok;
  }

  // A fact of a tab-separated file in a column of a table.
  bool ReadField(SortId sort, std::string_view field, Value* value) {
    const char* last = field.data() + field.size();
    if (sort == kI64) {
      int64_t i = 0;
      const auto read = std::from_chars(field.data(), last, i);
      *value = graph_.I64(i);
      return read.ptr == last && read.ec == std::errc();
    }
    if (sort == kF64) {
      double d = 0;
      const auto read = std::from_chars(field.data(), last, d);
      *value = graph_.F64(d);
      return read.ptr == last && read.ec == std::errc();
    }
    *value = sort == kUnit ? graph_.Unit() : graph_.String(field);
    return true;
  }

  bool InputCommand(uint32_t n) {
    FunctionId f;
    std::filesystem::path path;
    std::string text;
    if (!Takes(n, 2, 2) || !FunctionName(Child(n, 1), &f) || !ReadFile(Child(n, 2), &path, &text)) {
      return false;
    }
    const Function& function = graph_.function(f);
    std::vector<SortId> columns = function.inputs;
    if (function.kind == FunctionKind::kFunction) columns.push_back(function.output);
    for (SortId sort : columns) {
      if (sort != kI64 && sort != kF64 && sort != kString && sort != kUnit) {
        return Error(Offset(Child(n, 1)), "values of " + graph_.sort(sort).name +
                                              " cannot be read from a file");
      }
    }
    size_t line_number = 0;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = std::string_view(text).substr(at, end - at);
      at = end + 1;
      ++line_number;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      std::vector<Value> row(columns.size());
      size_t from = 0;
      for (size_t c = 0; c < columns.size(); ++c) {
        const size_t tab = std::min(line.find('\t', from), line.size());
        if (from > line.size() ||
            !ReadField(columns[c], Trimmed(line.substr(from, tab - from)), &row[c]) ||
            (c + 1 == columns.size() && tab != line.size())) {
          return Error(Offset(Child(n, 2)), "'" + path.string() + "' line " +
                                                std::to_string(line_number) + ": expected " +
                                                std::to_string(columns.size()) + " columns of '" +
                                                function.name + "'");
        }
        from = tab + 1;
      }
      if (function.kind == FunctionKind::kFunction) {
        const Value value = row.back();
        row.pop_back();
        graph_.Set(f, row, value);
      } else if (function.kind == FunctionKind::kRelation) {
        graph_.Insert(f, row);
      } else {
        graph_.Add(f, row);
      }
      if (graph_.failure()) return Error(Offset(n), *graph_.failure());
    }
    return graph_.Rebuild() || Error(Offset(n), graph_.failure().value_or("the input failed"));
  }

  static std::string_view Trimmed(std::string_view text) {
    const size_t first = text.find_first_not_of(" \r");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \r") - first + 1);
  }

  bool OutputCommand(uint32_t n) {
    if (Count(n) < 3) return Error(Offset(n), "expected (output \"FILE\" EXPR...)");
    std::string text;
    for (uint32_t i = 2; i < Count(n); ++i) {
      EGraph::Global value;
      if (!Evaluate(n, Child(n, i), &value)) return false;
      const std::optional<std::string> term =
          Terms().Text(value.sort, graph_.Canonical(value.sort, value.value));
      if (!term) return Error(Offset(Child(n, i)), "no term of finite cost to extract");
      text += *term + "\n";
    }
    return WriteFile(Child(n, 1), text, std::ios::app);
  }

  // --- Saving

  bool ReadCount(uint32_t n, uint64_t* count) {
    *count = 1;
    if (!Takes(n, 0, 1)) return false;
    if (Count(n) == 1) return true;
    const uint32_t value = Child(n, 1);
    if (doc_.node(value).kind != Document::Kind::kInt || doc_.Int(value) < 0) {
      return Error(Offset(value), "expected a count");
    }
    *count = static_cast<uint64_t>(doc_.Int(value));
    return true;
  }

  bool PushCommand(uint32_t n) {
    uint64_t count;
    if (!ReadCount(n, &count)) return false;
    for (; count != 0; --count) {
      if (saved_.size() == kMaxPushed) {
        return Error(Offset(n), "more than " + std::to_string(kMaxPushed) + " pushes");
      }
      saved_.push_back(graph_);
    }
    return true;
  }

  bool PopCommand(uint32_t n) {
    uint64_t count;
    if (!ReadCount(n, &count)) return false;
    for (; count != 0; --count) {
      if (saved_.empty()) return Error(Offset(n), "pop without a push");
      graph_ = std::move(saved_.back());
      saved_.pop_back();
      terms_.reset();
    }
    return true;
  }

  static constexpr size_t kMaxPushed = 100;
  static constexpr size_t kMaxIncludes = 50;
  // Values nest as deep as container sorts do, and reading them recurses.
  static constexpr size_t kMaxSorts = 10000;

  EGraph& graph_;
  const std::string file_;
  const ProgramOptions& options_;
  Document doc_;
  ProgramResult result_;
  std::vector<EGraph> saved_;
  size_t depth_ = 0;  // files that include this one
  std::optional<TermExtractor> terms_;
  uint64_t terms_version_ = 0;
};

}  // namespace

std::string ProgramStatus::ToString() const {
  if (ok) return "ok";
  return file + ":" + std::to_string(line) + ":" + std::to_string(column) + ": error: " + message;
}

ProgramResult LoadProgram(EGraph& graph, std::string_view text, std::string_view file,
                          const ProgramOptions& options) {
  return Loader(graph, file, options).Load(text);
}

std::string ProgramResult::output() const {
  std::string text;
  for (const Printed& p : printed) text += p.text;
  return text;
}

std::string FormatValue(const EGraph& graph, SortId sort, Value value) {
  return TermExtractor(graph).Text(sort, value).value_or("");
}

}  // namespace l3c::egraph
