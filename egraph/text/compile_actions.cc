// Actions and the expressions in them.
#include "egraph/text/compile.h"

namespace l3c::egraph {

namespace {

constexpr size_t kMaxActions = 1000000;

}  // namespace

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
    Error(doc_.node(head).begin, "expected the name of a function or a primitive",
          ErrorKind::kSyntax);
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

std::optional<Compiler::Typed> Compiler::AddExpression(uint32_t expr, SortId wanted) {
  if (std::optional<Typed> literal = Literal(expr)) return literal;
  if (actions_.size() > kMaxActions) {
    Error(doc_.node(expr).begin, "more than " + std::to_string(kMaxActions) + " actions",
          ErrorKind::kResourceBound);
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
  Error(doc_.node(expr).begin, Unknown(NameKind::kVariable, name));
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
    return Error(list.begin, "expected an action", ErrorKind::kSyntax);
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
      return Error(doc_.node(call).begin, "expected a call of a function", ErrorKind::kSyntax);
    }
    const std::string_view name = doc_.Text(doc_.child(call, 0));
    *f = graph_.FindFunction(name);
    if (!f->valid()) return Error(doc_.node(call).begin, Unknown(NameKind::kFunction, name));
    return CheckArity(call, *f, 0);
  };

  if (head == "let") {
    if (!takes(2)) return false;
    const uint32_t name = doc_.child(expr, 1);
    if (!doc_.IsSymbol(name))
      return Error(doc_.node(name).begin, "expected a name", ErrorKind::kSyntax);
    if (names_.contains(doc_.Text(name))) {
      return Error(doc_.node(name).begin, QuotedName(doc_.Text(name)) + " is bound already");
    }
    if (!CheckNewName(name)) return false;
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
      return Error(doc_.node(message).begin, "expected a string", ErrorKind::kSyntax);
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
