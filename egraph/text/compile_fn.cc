// Function values: (unstable-fn "name" captured…).
#include "egraph/text/compile.h"

#include <algorithm>

namespace l3c::egraph {

bool Compiler::CheckFnCall(uint32_t expr) {
  const uint32_t given = doc_.node(expr).child_count - 1;
  if (given == 0 || doc_.node(doc_.child(expr, 1)).kind != Document::Kind::kText) {
    return Error(doc_.node(expr).begin, "expected (unstable-fn \"NAME\" ARGUMENT...)",
                 ErrorKind::kSyntax);
  }
  const std::string& name = doc_.String(doc_.child(expr, 1));
  if (!graph_.FindFunction(name).valid() && graph_.FindPrimitives(name).empty()) {
    return Error(doc_.node(doc_.child(expr, 1)).begin, Unknown(NameKind::kCallable, name));
  }
  if (2 * given > EGraph::kMaxArity) {
    return Error(doc_.node(expr).begin,
                 "more than " + std::to_string(EGraph::kMaxArity / 2) + " captured arguments",
                 ErrorKind::kResourceBound);
  }
  return true;
}

std::vector<uint32_t> Compiler::FnCandidates(const std::string& name,
                                             std::span<const SortId> captured,
                                             SortId wanted) const {
  const FunctionId f = graph_.FindFunction(name);
  const auto agree = [](SortId a, SortId b) { return !a.valid() || a == b; };
  std::vector<uint32_t> candidates;
  for (uint32_t p : graph_.FindPrimitives("unstable-fn")) {
    const SortId sort = graph_.primitives()[p].output;
    if (wanted.valid() && graph_.sort(wanted).container == ContainerKind::kFn && sort != wanted) {
      continue;
    }
    std::vector<SortId> sorts(captured.begin(), captured.end());
    const std::vector<SortId>& parameters = graph_.sort(sort).parameters;
    sorts.insert(sorts.end(), parameters.begin(), parameters.end() - 1);
    bool fits = false;
    if (f.valid()) {
      const Function& function = graph_.function(f);
      fits = function.output == parameters.back() && function.inputs.size() == sorts.size() &&
             std::equal(sorts.begin(), sorts.end(), function.inputs.begin(), agree);
    } else {
      SortId any;
      for (uint32_t q : graph_.FindPrimitives(name)) {
        fits |= Fits(graph_.primitives()[q], sorts, parameters.back(), &any);
      }
    }
    if (fits) candidates.push_back(p);
  }
  return candidates;
}

bool Compiler::NoFnFits(uint32_t offset, const std::string& name, size_t captured) {
  return Error(offset, "no sort of functions fits '" + name + "' with " + std::to_string(captured) +
                           " captured arguments");
}

std::optional<Compiler::Typed> Compiler::ActionFn(uint32_t expr, SortId wanted) {
  if (!CheckFnCall(expr)) return std::nullopt;
  const FunctionId f = graph_.FindFunction(doc_.String(doc_.child(expr, 1)));
  Action action;
  action.kind = Action::Kind::kPrimitive;
  action.args.push_back(Operand::Constant(graph_.String(doc_.String(doc_.child(expr, 1)))));
  std::vector<SortId> captured;
  for (uint32_t i = 2; i < doc_.node(expr).child_count; ++i) {
    SortId input;
    if (f.valid() && i - 2 < graph_.function(f).inputs.size()) {
      input = graph_.function(f).inputs[i - 2];
    }
    const std::optional<Typed> arg = AddExpression(doc_.child(expr, i), input);
    if (!arg) return std::nullopt;
    captured.push_back(arg->sort);
    action.args.push_back(Operand::Constant(Value{arg->sort.index}));
    action.args.push_back(arg->operand);
  }
  const std::string& name = doc_.String(doc_.child(expr, 1));
  const std::vector<uint32_t> candidates = FnCandidates(name, captured, wanted);
  if (candidates.empty()) {
    NoFnFits(doc_.node(expr).begin, name, captured.size());
    return std::nullopt;
  }
  action.primitive = candidates[0];
  const Typed result = NewSlot(graph_.primitives()[candidates[0]].output);
  action.result = result.operand.bits;
  actions_.push_back(std::move(action));
  return result;
}

std::optional<uint32_t> Compiler::QueryFn(uint32_t expr) {
  if (!CheckFnCall(expr)) return std::nullopt;
  const uint32_t offset = doc_.node(expr).begin;
  const FunctionId f = graph_.FindFunction(doc_.String(doc_.child(expr, 1)));
  const auto constant = [&](SortId sort, Value v) {
    const uint32_t node = NewNode(offset, sort);
    nodes_[node].constant = v;
    return node;
  };
  PendingPrimitive made;
  made.name = "unstable-fn";
  made.offset = offset;
  made.fn_name = doc_.String(doc_.child(expr, 1));
  made.args.push_back(constant(kString, graph_.String(made.fn_name)));
  for (uint32_t i = 2; i < doc_.node(expr).child_count; ++i) {
    const uint32_t child = doc_.child(expr, i);
    const std::optional<uint32_t> arg = QueryExpr(child);
    if (!arg) return std::nullopt;
    if (f.valid() && i - 2 < graph_.function(f).inputs.size() &&
        !SetSort(*arg, graph_.function(f).inputs[i - 2], doc_.node(child).begin)) {
      return std::nullopt;
    }
    // The index of its sort, which NarrowFn() fills in.
    made.args.push_back(constant(kUnit, Value{0}));
    made.args.push_back(*arg);
  }
  made.output = NewNode(offset);
  const uint32_t output = made.output;
  primitives_.push_back(std::move(made));
  return output;
}

bool Compiler::NarrowFn(PendingPrimitive& p, bool settle, bool* progress) {
  std::vector<SortId> captured;
  bool known = true;
  for (size_t i = 2; i < p.args.size(); i += 2) {
    captured.push_back(nodes_[Root(p.args[i])].sort);
    known &= captured.back().valid();
  }
  p.candidates = FnCandidates(p.fn_name, captured, nodes_[Root(p.output)].sort);
  if (p.candidates.empty()) return NoFnFits(p.offset, p.fn_name, captured.size());
  if (p.candidates.size() > 1 && !settle) return true;
  if (!nodes_[Root(p.output)].sort.valid()) *progress = true;
  if (!SetSort(p.output, graph_.primitives()[p.candidates[0]].output, p.offset)) return false;
  if (!known) return true;
  for (size_t i = 2; i < p.args.size(); i += 2) {
    nodes_[p.args[i - 1]].constant = Value{captured[(i - 2) / 2].index};
  }
  p.resolved = true;
  *progress = true;
  return true;
}

}  // namespace l3c::egraph
