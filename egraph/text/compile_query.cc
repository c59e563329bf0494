// Facts to atoms: variables, equalities, what is bound.
#include "egraph/text/compile.h"

#include <algorithm>

namespace l3c::egraph {

namespace {

// Longer rules are refused: planning and matching recurse once per premise.
constexpr size_t kMaxPremises = 500;

}  // namespace

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
  // `a` stands in the text before `b`, whose place `offset` is.
  if (nodes_[a].sort.valid() && !SetSort(b, nodes_[a].sort, offset)) return false;
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
  if (!CheckNewName(expr)) return std::nullopt;
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
    Error(doc_.node(head).begin, "expected the name of a function or a primitive",
          ErrorKind::kSyntax);
    return std::nullopt;
  }
  if (atoms_.size() + primitives_.size() >= kMaxPremises) {
    Error(list.begin, "more than " + std::to_string(kMaxPremises) + " premises in one query",
          ErrorKind::kResourceBound);
    return std::nullopt;
  }
  const std::string_view name = doc_.Text(head);
  if (name == "unstable-fn") return QueryFn(expr);
  const FunctionId f = graph_.FindFunction(name);
  const auto overloads = graph_.FindPrimitives(name);
  if (!f.valid() && overloads.empty()) {
    Error(doc_.node(head).begin, Unknown(NameKind::kCallable, name));
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
    Error(list.begin, "more than " + std::to_string(EGraph::kMaxArity) + " arguments",
          ErrorKind::kResourceBound);
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
    return Error(offset, "expected a fact: (= a b) or a call", ErrorKind::kSyntax);
  }
  const uint32_t head = doc_.child(expr, 0);
  if (doc_.IsSymbol(head) && doc_.Text(head) == "=") {
    if (doc_.node(expr).child_count < 3)
      return Error(offset, "'=' takes two or more arguments", ErrorKind::kSyntax);
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
      return Error(nodes_[node].offset, "variable " + QuotedName(name) + " is bound by no premise");
    }
  }
  for (const PendingPrimitive& p : primitives_) {
    for (uint32_t arg : p.args) {
      if (!is_bound(arg)) return Error(nodes_[arg].offset, "this value is bound by no premise");
    }
  }
  return true;
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
    const Operand operand = ToOperand(node);
    names_.emplace(name, Typed{operand, nodes_[Root(node)].sort});
    if (operand.is_constant) continue;
    if (query->slot_names.size() <= operand.bits) query->slot_names.resize(operand.bits + 1);
    if (query->slot_names[operand.bits].empty()) query->slot_names[operand.bits] = name;
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

}  // namespace l3c::egraph
