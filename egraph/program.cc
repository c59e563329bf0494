// Carrying out the commands of a text, one by one.
#include "egraph/program.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "egraph/apply.h"
#include "egraph/compile.h"
#include "egraph/extract/extract.h"
#include "egraph/sexp.h"
#include "egraph/view.h"

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

  // An error that `fail` may expect: the program is well-formed, the graph says no.
  bool RuntimeError(uint32_t offset, std::string message) {
    runtime_error_ = true;
    return Error(offset, std::move(message));
  }

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
    if (head == "constructor") return ConstructorCommand(n);
    if (head == "function") return FunctionCommand(n);
    if (head == "relation") return RelationCommand(n);
    if (head == "ruleset") return RulesetCommand(n);
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
    if (head == "push") return PushCommand(n);
    if (head == "pop") return PopCommand(n);
    const bool known = head == "set" || head == "union" || head == "delete" || head == "subsume" ||
                       head == "panic" || graph_.FindFunction(head).valid();
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
    if (graph_.FindFunction(*name).valid() || !graph_.FindPrimitives(*name).empty() ||
        *name == "=") {
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
    if (Count(n) > 2 && doc_.IsList(Child(n, 2))) {
      return Error(Offset(Child(n, 2)), "container sorts are not supported");
    }
    std::string_view name;
    if (!Takes(n, 1, 1) || !NewSortName(Child(n, 1), &name)) return false;
    graph_.DeclareSort(name);
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
    const SortId sort = graph_.DeclareSort(name);
    for (uint32_t v = 2; v < Count(n); ++v) {
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
    for (uint32_t i = 4; i < Count(n); ++i) {
      const uint32_t option = Child(n, i);
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
    graph_.DeclareFunction(name, inputs, output, std::move(*merge));
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
    compiler.OnlyPrimitives();
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
    // Primitives over slots: old, new, then one per step.
    return Merge::Custom(
        [steps = compiler.TakeActions(), result = merged->operand,
         slots = std::vector<Value>(compiler.TakeSlotSorts().size())](
            EGraph& graph, Value old_value, Value new_value) mutable -> std::optional<Value> {
          slots[0] = old_value;
          slots[1] = new_value;
          const auto resolve = [&](const Operand& o) {
            return o.is_constant ? Value{o.bits} : slots[o.bits];
          };
          for (const Action& step : steps) {
            Value args[EGraph::kMaxArity + 1];
            for (size_t i = 0; i < step.args.size(); ++i) args[i] = resolve(step.args[i]);
            const std::optional<Value> value = graph.primitives()[step.primitive].fn(
                graph, std::span<const Value>(args, step.args.size()));
            if (!value) return std::nullopt;
            slots[step.result] = *value;
          }
          return resolve(result);
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

  // --- Rules

  struct RuleOptions {
    std::string name;
    RulesetId ruleset = kDefaultRuleset;
    Numerics numerics = Numerics::kExact;
    uint32_t when = Id<void>::kNone;  // list of facts
    bool subsume = false;
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
      uint32_t value = 0;
      if (name == ":ruleset") {
        if (!OptionValue(n, &i, &value)) return false;
        options->ruleset =
            doc_.IsSymbol(value) ? graph_.FindRuleset(doc_.Text(value)) : RulesetId{};
        if (!options->ruleset.valid()) {
          return Error(Offset(value), "unknown ruleset " + Quoted(value));
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
    return RuntimeError(Offset(n), graph_.failure().value_or("the run failed"));
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
    const bool fine = runner.Apply(once) && graph_.Rebuild();
    if (!fine) return RuntimeError(Offset(n), graph_.failure().value_or("the action failed"));
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
    if (HasMatch(graph_, query)) return true;
    return RuntimeError(Offset(n), "check failed: no match for " + Quoted(n));
  }

  bool FailCommand(uint32_t n) {
    if (!Takes(n, 1, 1)) return false;
    runtime_error_ = false;
    if (Command(Child(n, 1))) {
      return RuntimeError(Offset(n), Quoted(Child(n, 1)) + " was expected to fail");
    }
    if (!runtime_error_) return false;
    runtime_error_ = false;
    graph_.ClearFailure();
    result_.status = ProgramStatus{};
    return graph_.Rebuild() || RuntimeError(Offset(n), *graph_.failure());
  }

  bool ExtractCommand(uint32_t n) {
    EGraph::Global value;
    if (!Takes(n, 1, 1) || !Evaluate(n, Child(n, 1), &value)) return false;
    const std::string text = FormatValue(graph_, value.sort, value.value);
    if (text.empty()) {
      return RuntimeError(Offset(n), "no term of finite cost to extract");
    }
    result_.output += text + "\n";
    return true;
  }

  bool PrintSizeCommand(uint32_t n) {
    if (!Takes(n, 0, 1)) return false;
    if (Count(n) == 2) {
      const uint32_t name = Child(n, 1);
      const FunctionId f =
          doc_.IsSymbol(name) ? graph_.FindFunction(doc_.Text(name)) : FunctionId{};
      if (!f.valid()) return Error(Offset(name), "unknown function " + Quoted(name));
      result_.output += std::to_string(graph_.LiveRows(f)) + "\n";
      return true;
    }
    std::vector<std::pair<std::string, size_t>> sizes;
    for (uint32_t f = 0; f < graph_.function_count(); ++f) {
      sizes.emplace_back(graph_.function(FunctionId{f}).name, graph_.LiveRows(FunctionId{f}));
    }
    std::sort(sizes.begin(), sizes.end());
    for (const auto& [name, size] : sizes) {
      result_.output += name + ": " + std::to_string(size) + "\n";
    }
    return true;
  }

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
    }
    return true;
  }

  static constexpr size_t kMaxPushed = 100;

  EGraph& graph_;
  const std::string file_;
  const ProgramOptions& options_;
  Document doc_;
  ProgramResult result_;
  bool runtime_error_ = false;
  std::vector<EGraph> saved_;
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

std::string FormatValue(const EGraph& graph, SortId sort, Value value) {
  if (!graph.sort(sort).is_equality) return graph.DescribeValue(sort, value);
  const EGraphView view(graph);
  const ClassRef root = view.ClassOf(value);
  if (!root.valid()) return "";
  const DeclaredCosts costs;
  const Extractor extractor(view, costs, Objective::Single(0));
  const Extraction best = extractor.Tree(std::span(&root, 1));
  return best.feasible ? TermText(view, best, root) : "";
}

}  // namespace l3c::egraph
