// Which primitive a call means, by the sorts of its arguments and its result.
#include "egraph/text/compile.h"

#include <algorithm>

namespace l3c::egraph {

bool Compiler::Fits(const Primitive& primitive, const std::vector<SortId>& args, SortId output,
                    SortId* any) const {
  if (!primitive.Takes(args.size())) return false;
  *any = SortId{};
  const auto agrees = [&](SortId declared, SortId actual) {
    if (!actual.valid()) return true;
    if (declared != kAnySort) return declared == actual;
    if (!any->valid()) *any = actual;
    return *any == actual;
  };
  for (size_t i = 0; i < args.size(); ++i) {
    if (!agrees(primitive.Input(i), args[i])) return false;
  }
  return agrees(primitive.output, output);
}

bool Compiler::Narrow(PendingPrimitive& p, bool* progress) {
  std::vector<SortId> sorts;
  for (uint32_t arg : p.args) sorts.push_back(nodes_[Root(arg)].sort);
  const SortId output = nodes_[Root(p.output)].sort;
  SortId any;
  std::vector<uint32_t> fitting;
  for (uint32_t c : p.candidates) {
    if (Fits(graph_.primitives()[c], sorts, output, &any)) fitting.push_back(c);
  }
  if (fitting.empty()) {
    return Error(p.offset, "no primitive '" + std::string(p.name) + "' fits " +
                               Signature(p.name, sorts) +
                               (output.valid() ? " -> " + SortName(output) : ""));
  }
  p.candidates = std::move(fitting);
  if (p.candidates.size() > 1) return true;
  const Primitive& primitive = graph_.primitives()[p.candidates[0]];
  Fits(primitive, sorts, output, &any);
  bool complete = true;
  const auto settle = [&](uint32_t node, SortId declared) {
    const SortId sort = declared == kAnySort ? any : declared;
    if (!sort.valid()) {
      complete = false;
      return true;
    }
    if (!nodes_[Root(node)].sort.valid()) *progress = true;
    return SetSort(node, sort, p.offset);
  };
  for (size_t i = 0; i < p.args.size(); ++i) {
    if (!settle(p.args[i], primitive.Input(i))) return false;
  }
  if (!settle(p.output, primitive.output)) return false;
  if (complete) {
    p.resolved = true;
    *progress = true;
  }
  return true;
}

bool Compiler::ResolvePrimitives() {
  // Where nothing else settles which sort of functions a value has, the first that fits is taken.
  for (bool settle : {false, true}) {
    for (bool progress = true; progress;) {
      progress = false;
      for (PendingPrimitive& p : primitives_) {
        if (p.resolved) continue;
        const bool fine = p.fn_name.empty() ? Narrow(p, &progress) : NarrowFn(p, settle, &progress);
        if (!fine) return false;
        if (settle && progress) break;
      }
    }
  }
  for (const PendingPrimitive& p : primitives_) {
    if (!p.resolved) {
      return Error(p.offset, "the sorts of the arguments of '" + std::string(p.name) +
                                 "' are not known; several overloads fit");
    }
    if (p.is_fact && nodes_[Root(p.output)].sort == kBool) {
      return Error(p.offset, "a bool as a premise always holds; write (guard ...) or (= true ...)");
    }
  }
  return true;
}

const std::vector<SortId>& Compiler::PossibleSorts(uint32_t expr) {
  if (auto it = possible_sorts_.find(expr); it != possible_sorts_.end()) return it->second;
  std::vector<SortId> sorts;
  if (const std::optional<Typed> literal = Literal(expr)) {
    sorts.push_back(literal->sort);
  } else if (!doc_.IsList(expr)) {
    const std::string_view name = doc_.Text(expr);
    if (auto it = names_.find(name); it != names_.end()) {
      sorts.push_back(it->second.sort);
    } else if (const EGraph::Global* global = graph_.FindGlobal(name)) {
      sorts.push_back(global->sort);
    }
  } else if (doc_.IsSymbol(doc_.child(expr, 0))) {
    const std::string_view name = doc_.Text(doc_.child(expr, 0));
    const uint32_t given = doc_.node(expr).child_count - 1;
    if (const FunctionId f = graph_.FindFunction(name); f.valid()) {
      sorts.push_back(graph_.function(f).output);
    } else if (name == "unstable-fn") {
      for (uint32_t p : graph_.FindPrimitives(name)) sorts.push_back(graph_.primitives()[p].output);
    } else {
      for (uint32_t p : graph_.FindPrimitives(name)) {
        const Primitive& primitive = graph_.primitives()[p];
        if (!primitive.Takes(given)) continue;
        bool fits = true;
        std::vector<SortId> outputs{primitive.output};
        for (uint32_t i = 0; i < given && fits; ++i) {
          const std::vector<SortId>& arg = PossibleSorts(doc_.child(expr, i + 1));
          if (primitive.Input(i) == kAnySort) {
            if (primitive.output == kAnySort) outputs = arg;
          } else {
            fits = std::find(arg.begin(), arg.end(), primitive.Input(i)) != arg.end();
          }
        }
        if (fits) sorts.insert(sorts.end(), outputs.begin(), outputs.end());
      }
      std::sort(sorts.begin(), sorts.end());
      sorts.erase(std::unique(sorts.begin(), sorts.end()), sorts.end());
    }
  }
  return possible_sorts_.emplace(expr, std::move(sorts)).first->second;
}

std::optional<Compiler::Typed> Compiler::ActionPrimitive(uint32_t expr, SortId wanted) {
  const Document::Node& list = doc_.node(expr);
  const std::string_view name = doc_.Text(doc_.child(expr, 0));
  const uint32_t given = list.child_count - 1;
  if (name == "unstable-fn") return ActionFn(expr, wanted);
  const auto overloads = graph_.FindPrimitives(name);
  if (overloads.empty()) {
    Error(doc_.node(doc_.child(expr, 0)).begin, Unknown(NameKind::kCallable, name));
    return std::nullopt;
  }
  if (given > EGraph::kMaxArity) {
    Error(list.begin, "more than " + std::to_string(EGraph::kMaxArity) + " arguments",
          ErrorKind::kResourceBound);
    return std::nullopt;
  }
  // What the arguments can be settles the overload, or else what the result must be.
  std::vector<uint32_t> candidates;
  for (uint32_t p : overloads) {
    if (graph_.primitives()[p].Takes(given)) candidates.push_back(p);
  }
  const auto keep = [&](auto&& fits) {
    std::vector<uint32_t> kept;
    for (uint32_t p : candidates) {
      if (fits(graph_.primitives()[p])) kept.push_back(p);
    }
    if (!kept.empty()) candidates = std::move(kept);
  };
  if (candidates.size() > 1) {
    keep([&](const Primitive& p) {
      for (uint32_t i = 0; i < given; ++i) {
        if (p.Input(i) == kAnySort) continue;
        const std::vector<SortId>& arg = PossibleSorts(doc_.child(expr, i + 1));
        if (std::find(arg.begin(), arg.end(), p.Input(i)) == arg.end()) return false;
      }
      return true;
    });
  }
  if (candidates.size() > 1 && wanted.valid()) {
    keep([&](const Primitive& p) { return p.output == wanted || p.output == kAnySort; });
  }
  Action action;
  std::vector<SortId> sorts;
  SortId any_sort = wanted;
  for (uint32_t i = 0; i < given; ++i) {
    // The sort wanted of an argument, where the overloads that are left agree.
    SortId of_argument;
    for (size_t c = 0; c < candidates.size(); ++c) {
      const SortId input = graph_.primitives()[candidates[c]].Input(i);
      const SortId sort = input == kAnySort ? any_sort : input;
      if (c != 0 && sort != of_argument) {
        of_argument = SortId{};
        break;
      }
      of_argument = sort;
    }
    const std::optional<Typed> arg = AddExpression(doc_.child(expr, i + 1), of_argument);
    if (!arg) return std::nullopt;
    action.args.push_back(arg->operand);
    sorts.push_back(arg->sort);
    if (!candidates.empty() && graph_.primitives()[candidates[0]].Input(i) == kAnySort) {
      any_sort = arg->sort;
    }
    keep([&](const Primitive& p) { return p.Input(i) == arg->sort || p.Input(i) == kAnySort; });
  }
  SortId any;
  const Primitive* chosen = nullptr;
  for (uint32_t c : candidates) {
    const Primitive& primitive = graph_.primitives()[c];
    if (!Fits(primitive, sorts, SortId{}, &any)) continue;
    const SortId output = primitive.output == kAnySort ? any : primitive.output;
    if (chosen != nullptr && output != wanted) continue;
    chosen = &primitive;
    action.primitive = c;
    if (output == wanted) break;
  }
  if (chosen == nullptr) {
    Error(list.begin, "no primitive '" + std::string(name) + "' fits " + Signature(name, sorts));
    return std::nullopt;
  }
  Fits(*chosen, sorts, SortId{}, &any);
  action.kind = Action::Kind::kPrimitive;
  const Typed result = NewSlot(chosen->output == kAnySort ? any : chosen->output);
  action.result = result.operand.bits;
  actions_.push_back(std::move(action));
  return result;
}

}  // namespace l3c::egraph
