// Actions at the top level, let, fail, push and pop.
#include "egraph/text/loader.h"

#include <span>
#include <utility>

#include "egraph/apply.h"

namespace l3c::egraph {

bool Loader::Perform(uint32_t n, Compiler& compiler, const Operand* operand, Value* value) {
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
  if (!fine)
    return Error(Offset(n), graph_.failure().value_or("the action failed"),
                 ErrorKind::kConsistency);
  if (graph_.Bytes() > options_.budget.max_bytes) {
    return Error(
        Offset(n),
        "the e-graph takes more than " + std::to_string(options_.budget.max_bytes) + " bytes",
        ErrorKind::kResourceBound);
  }
  if (operand != nullptr) {
    *value = Value{operand->is_constant ? operand->bits : slots[operand->bits]};
  }
  return true;
}

bool Loader::ActionCommand(uint32_t n) {
  Compiler compiler(graph_, doc_);
  compiler.AllowReads();
  if (!compiler.AddAction(n)) return Error(compiler.error());
  return Perform(n, compiler, nullptr, nullptr);
}

bool Loader::Evaluate(uint32_t n, uint32_t expr, EGraph::Global* result) {
  Compiler compiler(graph_, doc_);
  compiler.AllowReads();
  const std::optional<Compiler::Typed> typed = compiler.AddExpression(expr);
  if (!typed) return Error(compiler.error());
  result->sort = typed->sort;
  return Perform(n, compiler, &typed->operand, &result->value);
}

bool Loader::LetCommand(uint32_t n) {
  std::string_view name;
  EGraph::Global global;
  if (!Takes(n, 2, 2) || !NewName(Child(n, 1), &name)) return false;
  if (graph_.FindGlobal(name) != nullptr) {
    return Error(Offset(Child(n, 1)), Quoted(Child(n, 1)) + " is bound already",
                 ErrorKind::kSafety);
  }
  if (graph_.FindFunction(name).valid()) {
    return Error(Offset(Child(n, 1)), Quoted(Child(n, 1)) + " is the name of a function",
                 ErrorKind::kSafety);
  }
  if (!Evaluate(n, Child(n, 2), &global)) return false;
  graph_.SetGlobal(name, global);
  return true;
}

bool Loader::FailCommand(uint32_t n) {
  if (!Takes(n, 1, 1)) return false;
  if (Command(Child(n, 1))) {
    return Error(Offset(n), Quoted(Child(n, 1)) + " was expected to fail", ErrorKind::kConsistency);
  }
  // One failure may hide others of the same command.
  do {
    graph_.ClearFailure();
  } while (!graph_.Rebuild());
  result_.status = ProgramStatus{};
  return true;
}

bool Loader::ReadCount(uint32_t n, uint64_t* count) {
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

bool Loader::PushCommand(uint32_t n) {
  uint64_t count;
  if (!ReadCount(n, &count)) return false;
  if (count > kMaxPushed - extracted_at_push_.size()) {
    return Error(Offset(n), "more than " + std::to_string(kMaxPushed) + " pushes",
                 ErrorKind::kResourceBound);
  }
  for (; count != 0; --count) {
    graph_.Push();
    extracted_at_push_.push_back(result_.extracted.size());
  }
  return true;
}

bool Loader::PopCommand(uint32_t n) {
  uint64_t count;
  if (!ReadCount(n, &count)) return false;
  for (; count != 0; --count) {
    if (extracted_at_push_.empty())
      return Error(Offset(n), "pop without a push", ErrorKind::kConsistency);
    graph_.Pop();
    result_.extracted.resize(extracted_at_push_.back());
    extracted_at_push_.pop_back();
    std::erase_if(leaders_, [this](const auto& l) { return l.first.index >= graph_.sort_count(); });
    terms_.reset();
  }
  return true;
}

}  // namespace l3c::egraph
