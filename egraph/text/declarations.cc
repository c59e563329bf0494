// Sorts, datatypes, constructors, functions with their merges, relations.
#include "egraph/text/loader.h"

#include <memory>
#include <span>
#include <utility>

#include "egraph/apply.h"

namespace l3c::egraph {

bool Loader::SortCommand(uint32_t n) {
  std::string_view name;
  if (Count(n) < 2) return Error(Offset(n), "expected (sort NAME)");
  if (!NewSortName(Child(n, 1), &name)) return false;
  if (Count(n) == 4 && IsOption(Child(n, 2)) && doc_.Text(Child(n, 2)) == ":internal-uf" &&
      doc_.IsSymbol(Child(n, 3))) {
    leaders_[graph_.DeclareSort(name)] = doc_.Text(Child(n, 3));
    return true;
  }
  if (!Takes(n, 1, 2)) return false;
  if (Count(n) == 3) return ContainerSort(name, Child(n, 2));
  graph_.DeclareSort(name);
  return true;
}

bool Loader::ContainerSort(std::string_view name, uint32_t n) {
  if (!IsNonEmptyList(n) || !doc_.IsSymbol(Child(n, 0))) {
    return Error(Offset(n), "expected a container sort, such as (Vec i64)");
  }
  const ContainerKind kind = ParseContainerKind(doc_.Text(Child(n, 0)));
  if (kind == ContainerKind::kNone) {
    return Error(Offset(n),
                 "unknown container " + Quoted(Child(n, 0)) +
                     "; Vec, Set, MultiSet, Map, Pair and UnstableFn are known",
                 ErrorKind::kSafety);
  }
  if (graph_.sort_count() >= kMaxSorts || graph_.primitives().size() >= kMaxPrimitives) {
    return Error(Offset(n),
                 "too many sorts: no container can be declared after " + std::to_string(kMaxSorts) +
                     " sorts, or " + std::to_string(kMaxPrimitives) + " primitives of containers",
                 ErrorKind::kResourceBound);
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

bool Loader::FnSort(std::string_view name, uint32_t n) {
  std::vector<SortId> sorts;
  SortId output;
  if (!Takes(n, 2, 2) || !SortList(Child(n, 1), &sorts) || !SortName(Child(n, 2), &output)) {
    return false;
  }
  sorts.push_back(output);
  graph_.DeclareContainer(name, ContainerKind::kFn, sorts);
  return true;
}

bool Loader::ConstructorOptionsFrom(uint32_t n, uint32_t i, ConstructorOptions* options) {
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
    // extract adds whole numbers, exactly.
    constexpr int64_t kMaxCost = int64_t{1} << 53;
    if (doc_.node(value).kind != Document::Kind::kInt || doc_.Int(value) < 0 ||
        doc_.Int(value) > kMaxCost) {
      return Error(Offset(value),
                   "a cost is a whole number from 0 to 2^53; what must never be "
                   "extracted is :unextractable");
    }
    options->cost = static_cast<double>(doc_.Int(value));
  }
  return true;
}

bool Loader::DatatypeCommand(uint32_t n) {
  std::string_view name;
  if (Count(n) < 2) return Error(Offset(n), "expected the name of a sort");
  if (!NewSortName(Child(n, 1), &name)) return false;
  return Variants(n, 2, graph_.DeclareSort(name));
}

bool Loader::Variants(uint32_t n, uint32_t first, SortId sort) {
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
      return Error(Offset(variant), "more than " + std::to_string(EGraph::kMaxArity) + " arguments",
                   ErrorKind::kResourceBound);
    }
    ConstructorOptions options;
    if (!ConstructorOptionsFrom(variant, i, &options)) return false;
    graph_.DeclareConstructor(variant_name, inputs, sort, options);
  }
  return true;
}

bool Loader::DatatypesCommand(uint32_t n) {
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

bool Loader::IsContainerPart(uint32_t part) const {
  return Count(part) == 3 && doc_.Text(Child(part, 0)) == "sort" && doc_.IsSymbol(Child(part, 1));
}

bool Loader::ConstructorCommand(uint32_t n) {
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
    return Error(
        Offset(Child(n, 3)),
        "a constructor makes values of a declared sort, not of " + graph_.sort(output).name,
        ErrorKind::kSafety);
  }
  graph_.DeclareConstructor(name, inputs, output, options);
  return true;
}

bool Loader::FunctionCommand(uint32_t n) {
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

std::optional<Merge> Loader::ReadMerge(uint32_t expr, SortId output) {
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
          "expected " + graph_.sort(output).name + ", found " + graph_.sort(merged->sort).name,
          ErrorKind::kSafety);
    return std::nullopt;
  }
  // The slots of the steps: old, new, then one per call.
  auto steps = std::make_shared<Merge::Steps>();
  steps->actions.actions = compiler.TakeActions();
  steps->actions.slot_sorts = compiler.TakeSlotSorts();
  steps->result = merged->operand;
  for (const Action& action : steps->actions.actions) {
    if (action.kind == Action::Kind::kAdd) graph_.DeferUnions();
  }
  const auto merge = [steps](EGraph& graph, Value old_value,
                             Value new_value) -> std::optional<Value> {
    ActionRunner runner(graph);
    const std::span<uint32_t> slots = runner.Slots(steps->actions);
    slots[0] = old_value.bits;
    slots[1] = new_value.bits;
    if (!runner.Apply(steps->actions)) return std::nullopt;
    const Operand& result = steps->result;
    return result.is_constant
               ? Value{result.bits}
               : graph.Canonical(steps->actions.slot_sorts[result.bits], Value{slots[result.bits]});
  };
  return Merge::Custom(merge, steps);
}

bool Loader::RelationCommand(uint32_t n) {
  std::string_view name;
  std::vector<SortId> inputs;
  if (!Takes(n, 2, 2) || !NewFunctionName(Child(n, 1), &name) || !SortList(Child(n, 2), &inputs)) {
    return false;
  }
  graph_.DeclareRelation(name, inputs);
  return true;
}

}  // namespace l3c::egraph
