#include "egraph/compile.h"

#include <algorithm>

namespace l3c::egraph {
namespace {

// Longer rules are refused: planning and matching recurse once per premise.
constexpr size_t kMaxPremises = 500;
constexpr size_t kMaxActions = 1000000;

}  // namespace

bool Compiler::Error(uint32_t offset, std::string message) {
  error_ = {offset, std::move(message)};
  return false;
}

std::string Compiler::SortName(SortId sort) const {
  if (!sort.valid()) return "?";
  return graph_.sort(sort).name;
}

std::string Compiler::Signature(std::string_view name, const std::vector<SortId>& args) const {
  std::string text = "(" + std::string(name);
  for (SortId sort : args) text += " " + SortName(sort);
  return text + ")";
}

std::string Compiler::Unknown(std::string_view what, std::string_view name) const {
  return "unknown " + std::string(what) + " '" + std::string(name.substr(0, 80)) + "'";
}

uint32_t Compiler::NewNode(uint32_t offset, SortId sort) {
  const auto id = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back(Node{id, sort, std::nullopt, std::nullopt, offset});
  return id;
}

uint32_t Compiler::Root(uint32_t node) const {
  while (nodes_[node].parent != node) node = nodes_[node].parent;
  return node;
}

bool Compiler::SetSort(uint32_t node, SortId sort, uint32_t offset) {
  Node& root = nodes_[Root(node)];
  if (!root.sort.valid()) root.sort = sort;
  if (root.sort == sort) return true;
  return Error(offset, "expected " + SortName(sort) + ", found " + SortName(root.sort));
}

bool Compiler::Equate(uint32_t a, uint32_t b, uint32_t offset) {
  a = Root(a);
  b = Root(b);
  if (a == b) return true;
  if (nodes_[b].sort.valid() && !SetSort(a, nodes_[b].sort, offset)) return false;
  const bool a_fixed = nodes_[a].constant || nodes_[a].global;
  const bool b_fixed = nodes_[b].constant || nodes_[b].global;
  if (a_fixed && b_fixed) {
    // Two given values: whether they are equal is seen when the query runs.
    PendingPrimitive equal;
    equal.name = "bool-=";
    equal.offset = offset;
    equal.args = {a, b};
    equal.output = NewNode(offset, kBool);
    nodes_[equal.output].constant = graph_.Bool(true);
    const auto overloads = graph_.FindPrimitives("bool-=");
    equal.candidates.assign(overloads.begin(), overloads.end());
    primitives_.push_back(std::move(equal));
    return true;
  }
  if (b_fixed) std::swap(a, b);
  const SortId sort = nodes_[a].sort.valid() ? nodes_[a].sort : nodes_[b].sort;
  nodes_[b].parent = a;
  nodes_[a].sort = sort;
  return true;
}

std::optional<Compiler::Typed> Compiler::Literal(uint32_t expr) {
  switch (doc_.node(expr).kind) {
    case Document::Kind::kInt:
      return Typed{Operand::Constant(graph_.I64(doc_.Int(expr))), kI64};
    case Document::Kind::kFloat:
      return Typed{Operand::Constant(graph_.F64(doc_.Float(expr))), kF64};
    case Document::Kind::kText:
      return Typed{Operand::Constant(graph_.String(doc_.String(expr))), kString};
    case Document::Kind::kSymbol:
      if (doc_.Text(expr) == "true") return Typed{Operand::Constant(graph_.Bool(true)), kBool};
      if (doc_.Text(expr) == "false") return Typed{Operand::Constant(graph_.Bool(false)), kBool};
      return std::nullopt;
    case Document::Kind::kList:
      if (doc_.node(expr).child_count == 0) return Typed{Operand::Constant(graph_.Unit()), kUnit};
      return std::nullopt;
  }
  return std::nullopt;
}

// --- Queries

std::optional<uint32_t> Compiler::QueryExpr(uint32_t expr) {
  const uint32_t offset = doc_.node(expr).begin;
  if (std::optional<Typed> literal = Literal(expr)) {
    const uint32_t node = NewNode(offset, literal->sort);
    nodes_[node].constant = Value{literal->operand.bits};
    return node;
  }
  if (doc_.IsList(expr)) return QueryCall(expr);
  const std::string_view name = doc_.Text(expr);
  if (name == "_") return NewNode(offset);
  if (auto it = variables_.find(name); it != variables_.end()) return it->second;
  if (const EGraph::Global* global = graph_.FindGlobal(name)) {
    const uint32_t node = NewNode(offset, global->sort);
    if (graph_.sort(global->sort).is_equality || graph_.sort(global->sort).moves) {
      nodes_[node].global = global->value;
    } else {
      nodes_[node].constant = global->value;
    }
    return node;
  }
  const uint32_t node = NewNode(offset);
  variables_.emplace(name, node);
  variable_order_.push_back(name);
  return node;
}

bool Compiler::CheckArity(uint32_t expr, FunctionId f, uint32_t extra) {
  const Function& function = graph_.function(f);
  const uint32_t given = doc_.node(expr).child_count - 1 - extra;
  if (given == function.inputs.size()) return true;
  return Error(doc_.node(expr).begin, "'" + function.name + "' takes " +
                                          std::to_string(function.inputs.size()) + " arguments, " +
                                          std::to_string(given) + " given");
}

std::optional<uint32_t> Compiler::QueryCall(uint32_t expr) {
  const Document::Node& list = doc_.node(expr);
  const uint32_t head = doc_.child(expr, 0);
  if (!doc_.IsSymbol(head)) {
    Error(doc_.node(head).begin, "expected the name of a function or a primitive");
    return std::nullopt;
  }
  if (atoms_.size() + primitives_.size() >= kMaxPremises) {
    Error(list.begin, "more than " + std::to_string(kMaxPremises) + " premises in one query");
    return std::nullopt;
  }
  const std::string_view name = doc_.Text(head);
  if (name == "unstable-fn") return QueryFn(expr);
  const FunctionId f = graph_.FindFunction(name);
  const auto overloads = graph_.FindPrimitives(name);
  if (!f.valid() && overloads.empty()) {
    Error(doc_.node(head).begin, Unknown("function or primitive", name));
    return std::nullopt;
  }
  if (f.valid() && !CheckArity(expr, f, 0)) return std::nullopt;
  std::vector<uint32_t> args;
  for (uint32_t i = 1; i < list.child_count; ++i) {
    const uint32_t child = doc_.child(expr, i);
    const std::optional<uint32_t> arg = QueryExpr(child);
    if (!arg) return std::nullopt;
    if (f.valid() && !SetSort(*arg, graph_.function(f).inputs[i - 1], doc_.node(child).begin)) {
      return std::nullopt;
    }
    args.push_back(*arg);
  }
  if (f.valid()) {
    const uint32_t output = NewNode(list.begin, graph_.function(f).output);
    args.push_back(output);
    atoms_.push_back({f, std::move(args)});
    return output;
  }
  if (args.size() > EGraph::kMaxArity) {
    Error(list.begin, "more than " + std::to_string(EGraph::kMaxArity) + " arguments");
    return std::nullopt;
  }
  PendingPrimitive primitive;
  primitive.name = name;
  primitive.offset = list.begin;
  primitive.args = std::move(args);
  primitive.output = NewNode(list.begin);
  primitive.candidates.assign(overloads.begin(), overloads.end());
  const uint32_t output = primitive.output;
  primitives_.push_back(std::move(primitive));
  return output;
}

bool Compiler::EquateFacts(uint32_t a, uint32_t b, uint32_t offset) {
  const auto relation = [&](uint32_t output) -> const PendingAtom* {
    for (const PendingAtom& atom : atoms_) {
      if (atom.columns.back() == output &&
          graph_.function(atom.function).kind == FunctionKind::kRelation) {
        return &atom;
      }
    }
    return nullptr;
  };
  const PendingAtom* x = relation(a);
  const PendingAtom* y = relation(b);
  if (x == nullptr || y == nullptr) return true;
  if (x->function != y->function) {
    return Error(offset, "facts of two relations are never equal");
  }
  for (size_t i = 0; i + 1 < x->columns.size(); ++i) {
    if (!Equate(x->columns[i], y->columns[i], offset)) return false;
  }
  return true;
}

bool Compiler::AddFact(uint32_t expr) {
  const uint32_t offset = doc_.node(expr).begin;
  if (!doc_.IsList(expr) || doc_.node(expr).child_count == 0) {
    return Error(offset, "expected a fact: (= a b) or a call");
  }
  const uint32_t head = doc_.child(expr, 0);
  if (doc_.IsSymbol(head) && doc_.Text(head) == "=") {
    if (doc_.node(expr).child_count < 3) return Error(offset, "'=' takes two or more arguments");
    const std::optional<uint32_t> first = QueryExpr(doc_.child(expr, 1));
    if (!first) return false;
    for (uint32_t i = 2; i < doc_.node(expr).child_count; ++i) {
      const uint32_t child = doc_.child(expr, i);
      const std::optional<uint32_t> other = QueryExpr(child);
      if (!other || !Equate(*first, *other, doc_.node(child).begin)) return false;
      if (!EquateFacts(*first, *other, doc_.node(child).begin)) return false;
    }
    return true;
  }
  const size_t primitives = primitives_.size();
  if (!QueryCall(expr)) return false;
  // The call itself is added last, after its arguments.
  if (primitives_.size() > primitives && primitives_.back().offset == offset) {
    primitives_.back().is_fact = true;
  }
  return true;
}

bool Compiler::AddPattern(uint32_t expr) {
  const size_t atoms = atoms_.size();
  const std::optional<uint32_t> root = QueryExpr(expr);
  if (!root) return false;
  pattern_root_ = *root;
  pattern_offset_ = doc_.node(expr).begin;
  if (atoms_.size() > atoms && atoms_.back().columns.back() == *root) {
    pattern_atom_ = atoms_.size() - 1;
  }
  return true;
}

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
  for (bool progress = true; progress;) {
    progress = false;
    for (PendingPrimitive& p : primitives_) {
      if (!p.resolved && !Narrow(p, &progress)) return false;
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

bool Compiler::CheckBound() {
  const auto bind = [&](uint32_t node) { nodes_[Root(node)].bound = true; };
  const auto is_bound = [&](uint32_t node) {
    const Node& root = nodes_[Root(node)];
    return root.bound || root.constant || root.global;
  };
  for (const PendingAtom& atom : atoms_) {
    for (uint32_t node : atom.columns) bind(node);
  }
  for (bool progress = true; progress;) {
    progress = false;
    for (const PendingPrimitive& p : primitives_) {
      if (is_bound(p.output)) continue;
      if (!std::all_of(p.args.begin(), p.args.end(), is_bound)) continue;
      bind(p.output);
      progress = true;
    }
  }
  for (std::string_view name : variable_order_) {
    const uint32_t node = variables_.at(name);
    if (!is_bound(node)) {
      return Error(nodes_[node].offset,
                   "variable '" + std::string(name.substr(0, 80)) + "' is bound by no premise");
    }
  }
  for (const PendingPrimitive& p : primitives_) {
    for (uint32_t arg : p.args) {
      if (!is_bound(arg)) return Error(nodes_[arg].offset, "this value is bound by no premise");
    }
  }
  return true;
}

Compiler::Typed Compiler::NewSlot(SortId sort) {
  slot_sorts_.push_back(sort);
  return {Operand::Slot(static_cast<uint32_t>(slot_sorts_.size() - 1)), sort};
}

Operand Compiler::ToOperand(uint32_t node) {
  Node& root = nodes_[Root(node)];
  if (root.constant) return Operand::Constant(*root.constant);
  if (root.slot == Id<void>::kNone) {
    root.slot = NewSlot(root.sort).operand.bits;
    if (root.global) presets_.push_back({root.slot, *root.global});
  }
  return Operand::Slot(root.slot);
}

bool Compiler::FinishQuery(Query* query) {
  if (!ResolvePrimitives() || !CheckBound()) return false;
  for (const PendingAtom& atom : atoms_) {
    Atom a{atom.function, {}};
    for (uint32_t node : atom.columns) a.columns.push_back(ToOperand(node));
    query->atoms.push_back(std::move(a));
  }
  for (const PendingPrimitive& p : primitives_) {
    PrimitiveAtom a{p.candidates[0], {}, {}};
    for (uint32_t node : p.args) a.args.push_back(ToOperand(node));
    a.output = ToOperand(p.output);
    query->primitives.push_back(std::move(a));
  }
  for (std::string_view name : variable_order_) {
    const uint32_t node = variables_.at(name);
    names_.emplace(name, Typed{ToOperand(node), nodes_[Root(node)].sort});
  }
  if (pattern_root_) {
    root_ = {ToOperand(*pattern_root_), nodes_[Root(*pattern_root_)].sort};
    if (!graph_.sort(root_.sort).is_equality) {
      return Error(pattern_offset_, "values of " + SortName(root_.sort) + " cannot be united");
    }
  }
  query->slot_sorts = slot_sorts_;
  query->presets = presets_;
  return true;
}

// --- Actions

std::optional<std::vector<Operand>> Compiler::CallArguments(uint32_t expr, FunctionId f) {
  std::vector<Operand> args;
  const std::vector<SortId>& inputs = graph_.function(f).inputs;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    const uint32_t child = doc_.child(expr, i + 1);
    const std::optional<Typed> arg = AddExpression(child, inputs[i]);
    if (!arg) return std::nullopt;
    if (arg->sort != inputs[i]) {
      Error(doc_.node(child).begin,
            "expected " + SortName(inputs[i]) + ", found " + SortName(arg->sort));
      return std::nullopt;
    }
    args.push_back(arg->operand);
  }
  return args;
}

std::optional<Compiler::Typed> Compiler::ActionCall(uint32_t expr, SortId wanted,
                                                    const Typed* join_class) {
  const Document::Node& list = doc_.node(expr);
  const uint32_t head = doc_.child(expr, 0);
  if (!doc_.IsSymbol(head)) {
    Error(doc_.node(head).begin, "expected the name of a function or a primitive");
    return std::nullopt;
  }
  const std::string_view name = doc_.Text(head);
  Action action;
  if (const FunctionId f = graph_.FindFunction(name); f.valid()) {
    const Function& function = graph_.function(f);
    if (function.kind == FunctionKind::kFunction && !allow_reads_) {
      Error(list.begin, "the value of function '" + function.name +
                            "' cannot be read by an action; read it in a premise");
      return std::nullopt;
    }
    if (!CheckArity(expr, f, 0)) return std::nullopt;
    std::optional<std::vector<Operand>> args = CallArguments(expr, f);
    if (!args) return std::nullopt;
    action.function = f;
    action.args = std::move(*args);
    if (join_class != nullptr && function.kind == FunctionKind::kConstructor) {
      if (function.output != join_class->sort) {
        Error(list.begin,
              "expected " + SortName(join_class->sort) + ", found " + SortName(function.output));
        return std::nullopt;
      }
      action.kind = Action::Kind::kAddAs;
      action.value = join_class->operand;
      actions_.push_back(std::move(action));
      return *join_class;
    }
    action.kind =
        function.kind == FunctionKind::kFunction ? Action::Kind::kLookup : Action::Kind::kAdd;
    const Typed result = NewSlot(function.output);
    action.result = result.operand.bits;
    actions_.push_back(std::move(action));
    return result;
  }
  return ActionPrimitive(expr, wanted);
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

bool Compiler::CheckFnCall(uint32_t expr) {
  const uint32_t given = doc_.node(expr).child_count - 1;
  if (given == 0 || doc_.node(doc_.child(expr, 1)).kind != Document::Kind::kText) {
    return Error(doc_.node(expr).begin, "expected (unstable-fn \"NAME\" ARGUMENT...)");
  }
  const std::string& name = doc_.String(doc_.child(expr, 1));
  if (!graph_.FindFunction(name).valid() && graph_.FindPrimitives(name).empty()) {
    return Error(doc_.node(doc_.child(expr, 1)).begin, Unknown("function or primitive", name));
  }
  if (2 * given > EGraph::kMaxArity) {
    return Error(doc_.node(expr).begin, "more than " + std::to_string(EGraph::kMaxArity / 2) +
                                            " captured arguments");
  }
  return true;
}

std::optional<uint32_t> Compiler::FindFn(uint32_t expr, std::span<const SortId> captured,
                                         SortId wanted) {
  const std::string& name = doc_.String(doc_.child(expr, 1));
  const FunctionId f = graph_.FindFunction(name);
  for (uint32_t p : graph_.FindPrimitives("unstable-fn")) {
    const SortId sort = graph_.primitives()[p].output;
    if (wanted.valid() && graph_.sort(wanted).container == ContainerKind::kFn && sort != wanted) {
      continue;
    }
    std::vector<SortId> sorts(captured.begin(), captured.end());
    const std::vector<SortId>& parameters = graph_.sort(sort).parameters;
    sorts.insert(sorts.end(), parameters.begin(), parameters.end() - 1);
    if (f.valid()) {
      const Function& function = graph_.function(f);
      if (function.output == parameters.back() && function.inputs.size() == sorts.size() &&
          std::equal(sorts.begin(), sorts.end(), function.inputs.begin(),
                     [](SortId a, SortId b) { return !a.valid() || a == b; })) {
        return p;
      }
      continue;
    }
    SortId any;
    for (uint32_t q : graph_.FindPrimitives(name)) {
      if (Fits(graph_.primitives()[q], sorts, parameters.back(), &any)) return p;
    }
  }
  Error(doc_.node(expr).begin, "no sort of functions fits '" + name + "' with " +
                                   std::to_string(captured.size()) + " captured arguments");
  return std::nullopt;
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
  const std::optional<uint32_t> primitive = FindFn(expr, captured, wanted);
  if (!primitive) return std::nullopt;
  action.primitive = *primitive;
  const Typed result = NewSlot(graph_.primitives()[*primitive].output);
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
  made.args.push_back(constant(kString, graph_.String(doc_.String(doc_.child(expr, 1)))));
  std::vector<SortId> captured;
  for (uint32_t i = 2; i < doc_.node(expr).child_count; ++i) {
    const uint32_t child = doc_.child(expr, i);
    const std::optional<uint32_t> arg = QueryExpr(child);
    if (!arg) return std::nullopt;
    if (f.valid() && i - 2 < graph_.function(f).inputs.size() &&
        !SetSort(*arg, graph_.function(f).inputs[i - 2], doc_.node(child).begin)) {
      return std::nullopt;
    }
    captured.push_back(nodes_[Root(*arg)].sort);
    if (!captured.back().valid()) {
      Error(doc_.node(child).begin, "the sort of this captured argument is not known here");
      return std::nullopt;
    }
    made.args.push_back(constant(kUnit, Value{captured.back().index}));
    made.args.push_back(*arg);
  }
  const std::optional<uint32_t> primitive = FindFn(expr, captured, SortId{});
  if (!primitive) return std::nullopt;
  made.output = NewNode(offset, graph_.primitives()[*primitive].output);
  made.candidates = {*primitive};
  made.resolved = true;
  const uint32_t output = made.output;
  primitives_.push_back(std::move(made));
  return output;
}

std::optional<Compiler::Typed> Compiler::ActionPrimitive(uint32_t expr, SortId wanted) {
  const Document::Node& list = doc_.node(expr);
  const std::string_view name = doc_.Text(doc_.child(expr, 0));
  const uint32_t given = list.child_count - 1;
  if (name == "unstable-fn") return ActionFn(expr, wanted);
  const auto overloads = graph_.FindPrimitives(name);
  if (overloads.empty()) {
    Error(doc_.node(doc_.child(expr, 0)).begin, Unknown("function or primitive", name));
    return std::nullopt;
  }
  if (given > EGraph::kMaxArity) {
    Error(list.begin, "more than " + std::to_string(EGraph::kMaxArity) + " arguments");
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

std::optional<Compiler::Typed> Compiler::AddExpression(uint32_t expr, SortId wanted) {
  if (std::optional<Typed> literal = Literal(expr)) return literal;
  if (actions_.size() > kMaxActions) {
    Error(doc_.node(expr).begin, "more than " + std::to_string(kMaxActions) + " actions");
    return std::nullopt;
  }
  if (doc_.IsList(expr)) return ActionCall(expr, wanted, nullptr);
  const std::string_view name = doc_.Text(expr);
  if (auto it = names_.find(name); it != names_.end()) return it->second;
  if (const EGraph::Global* global = graph_.FindGlobal(name)) {
    if (!graph_.sort(global->sort).is_equality && !graph_.sort(global->sort).moves) {
      return Typed{Operand::Constant(global->value), global->sort};
    }
    // A constructor-like constant: the class is found again when the action runs.
    const Typed slot = NewSlot(global->sort);
    Action action;
    action.kind = Action::Kind::kGlobal;
    action.value = Operand::Constant(global->value);
    action.result = slot.operand.bits;
    actions_.push_back(std::move(action));
    names_.emplace(name, slot);
    return slot;
  }
  Error(doc_.node(expr).begin, Unknown("variable", name));
  return std::nullopt;
}

bool Compiler::AddRewriteTo(uint32_t expr) {
  const uint32_t offset = doc_.node(expr).begin;
  if (doc_.IsList(expr) && doc_.node(expr).child_count != 0) {
    const uint32_t head = doc_.child(expr, 0);
    const FunctionId f = doc_.IsSymbol(head) ? graph_.FindFunction(doc_.Text(head)) : FunctionId{};
    if (f.valid() && graph_.function(f).kind == FunctionKind::kConstructor) {
      return ActionCall(expr, root_.sort, &root_).has_value();
    }
  }
  const std::optional<Typed> target = AddExpression(expr, root_.sort);
  if (!target) return false;
  if (target->sort != root_.sort) {
    return Error(offset, "expected " + SortName(root_.sort) + ", found " + SortName(target->sort));
  }
  Action action;
  action.kind = Action::Kind::kUnion;
  action.args = {root_.operand, target->operand};
  actions_.push_back(std::move(action));
  return true;
}

bool Compiler::AddSubsumePattern() {
  if (!pattern_atom_) {
    return Error(pattern_offset_, "only a call of a constructor can be subsumed");
  }
  const PendingAtom& atom = atoms_[*pattern_atom_];
  Action action;
  action.kind = Action::Kind::kSubsume;
  action.function = atom.function;
  for (size_t i = 0; i + 1 < atom.columns.size(); ++i) {
    action.args.push_back(ToOperand(atom.columns[i]));
  }
  actions_.push_back(std::move(action));
  return true;
}

bool Compiler::AddAction(uint32_t expr) {
  const Document::Node& list = doc_.node(expr);
  if (!doc_.IsList(expr) || list.child_count == 0 || !doc_.IsSymbol(doc_.child(expr, 0))) {
    return Error(list.begin, "expected an action");
  }
  const std::string_view head = doc_.Text(doc_.child(expr, 0));
  const uint32_t given = list.child_count - 1;
  const auto takes = [&](uint32_t count) {
    if (given == count) return true;
    return Error(list.begin, "'" + std::string(head) + "' takes " + std::to_string(count) +
                                 " arguments, " + std::to_string(given) + " given");
  };
  // The function called by the first argument of set, delete and subsume.
  const auto called = [&](FunctionId* f) {
    const uint32_t call = doc_.child(expr, 1);
    if (!doc_.IsList(call) || doc_.node(call).child_count == 0 ||
        !doc_.IsSymbol(doc_.child(call, 0))) {
      return Error(doc_.node(call).begin, "expected a call of a function");
    }
    const std::string_view name = doc_.Text(doc_.child(call, 0));
    *f = graph_.FindFunction(name);
    if (!f->valid()) return Error(doc_.node(call).begin, Unknown("function", name));
    return CheckArity(call, *f, 0);
  };

  if (head == "let") {
    if (!takes(2)) return false;
    const uint32_t name = doc_.child(expr, 1);
    if (!doc_.IsSymbol(name)) return Error(doc_.node(name).begin, "expected a name");
    if (names_.contains(doc_.Text(name))) {
      return Error(doc_.node(name).begin,
                   "'" + std::string(doc_.Text(name).substr(0, 80)) + "' is bound already");
    }
    const std::optional<Typed> value = AddExpression(doc_.child(expr, 2));
    if (!value) return false;
    BindName(doc_.Text(name), *value);
    return true;
  }
  Action action;
  if (head == "set") {
    if (!takes(2) || !called(&action.function)) return false;
    const Function& function = graph_.function(action.function);
    if (function.kind != FunctionKind::kFunction) {
      return Error(list.begin, "'" + function.name + "' is no function with values to set");
    }
    std::optional<std::vector<Operand>> args = CallArguments(doc_.child(expr, 1), action.function);
    if (!args) return false;
    const uint32_t value = doc_.child(expr, 2);
    const std::optional<Typed> typed = AddExpression(value, function.output);
    if (!typed) return false;
    if (typed->sort != function.output) {
      return Error(doc_.node(value).begin,
                   "expected " + SortName(function.output) + ", found " + SortName(typed->sort));
    }
    action.kind = Action::Kind::kSet;
    action.args = std::move(*args);
    action.value = typed->operand;
  } else if (head == "union") {
    if (!takes(2)) return false;
    const std::optional<Typed> a = AddExpression(doc_.child(expr, 1));
    if (!a) return false;
    const uint32_t second = doc_.child(expr, 2);
    const std::optional<Typed> b = AddExpression(second, a->sort);
    if (!b) return false;
    if (!graph_.sort(a->sort).is_equality) {
      return Error(list.begin, "values of " + SortName(a->sort) + " cannot be united");
    }
    if (a->sort != b->sort) {
      return Error(doc_.node(second).begin,
                   "expected " + SortName(a->sort) + ", found " + SortName(b->sort));
    }
    action.kind = Action::Kind::kUnion;
    action.args = {a->operand, b->operand};
  } else if (head == "delete" || head == "subsume") {
    if (!takes(1) || !called(&action.function)) return false;
    std::optional<std::vector<Operand>> args = CallArguments(doc_.child(expr, 1), action.function);
    if (!args) return false;
    action.kind = head == "delete" ? Action::Kind::kRemove : Action::Kind::kSubsume;
    action.args = std::move(*args);
  } else if (head == "panic") {
    if (!takes(1)) return false;
    const uint32_t message = doc_.child(expr, 1);
    if (doc_.node(message).kind != Document::Kind::kText) {
      return Error(doc_.node(message).begin, "expected a string");
    }
    action.kind = Action::Kind::kPanic;
    action.message = doc_.String(message);
  } else {
    return AddExpression(expr).has_value();
  }
  actions_.push_back(std::move(action));
  return true;
}

}  // namespace l3c::egraph
