#include "egraph/apply.h"

#include <utility>

namespace l3c::egraph {

bool ActionRunner::Apply(const Rule& rule) {
  for (const Action& action : rule.actions) {
    if (!Act(rule, action) || graph_.failure()) return false;
  }
  return true;
}

bool ActionRunner::Act(const Rule& rule, const Action& action) {
  uint32_t args[EGraph::kMaxArity + 1];
  for (size_t i = 0; i < action.args.size(); ++i) args[i] = Resolve(rule, action.args[i]);
  switch (action.kind) {
    case Action::Kind::kAdd:
      slots_[action.result] = graph_.AddCanonical(action.function, args).bits;
      return true;
    case Action::Kind::kAddAs:
    case Action::Kind::kSet:
      graph_.SetCanonical(action.function, args, Value{Raw(action.value)}, graph_.current_rule_);
      return true;
    case Action::Kind::kLookup: {
      const Table& table = graph_.tables_[action.function.index];
      const uint32_t row = table.Find(args);
      if (row == Table::kNoRow) {
        graph_.Fail("function '" + graph_.function(action.function).name +
                    "' has no value for these arguments, read by " +
                    graph_.DescribeRule(graph_.current_rule_));
        return false;
      }
      slots_[action.result] = table.Output(row);
      if (ProofLog* log = graph_.proof_log()) log->AddRead(Value{table.Output(row)});
      return true;
    }
    case Action::Kind::kPrimitive: {
      Value values[EGraph::kMaxArity + 1];
      for (size_t i = 0; i < action.args.size(); ++i) values[i] = Value{args[i]};
      const Primitive& primitive = graph_.primitives()[action.primitive];
      const bool nested = std::exchange(graph_.in_action_, true);
      const std::optional<Value> result =
          primitive.fn(graph_, std::span<const Value>(values, action.args.size()));
      graph_.in_action_ = nested;
      if (!result) {
        graph_.Fail("primitive '" + primitive.name + "' gives nothing in an action of " +
                    graph_.DescribeRule(graph_.current_rule_));
        return false;
      }
      slots_[action.result] = result->bits;
      return true;
    }
    case Action::Kind::kUnion:
      graph_.Union(Value{Raw(action.args[0])}, Value{Raw(action.args[1])});
      return true;
    case Action::Kind::kGlobal:
      slots_[action.result] = action.value.bits;
      return true;
    case Action::Kind::kRemove:
    case Action::Kind::kSubsume: {
      // Unions of this step leave the row under the arguments that it was matched with.
      uint32_t matched[EGraph::kMaxArity + 1];
      for (size_t i = 0; i < action.args.size(); ++i) {
        const Operand& operand = action.args[i];
        matched[i] = operand.is_constant ? operand.bits : slots_[operand.bits];
      }
      const Table& table = graph_.tables_[action.function.index];
      uint32_t row = table.Find(matched);
      if (row == Table::kNoRow) row = table.Find(args);
      if (row == Table::kNoRow) return true;
      if (action.kind == Action::Kind::kRemove) {
        graph_.RemoveRow(action.function, row);
      } else {
        graph_.SubsumeRow(action.function, row);
      }
      return true;
    }
    case Action::Kind::kPanic:
      graph_.Fail("panic by " + graph_.DescribeRule(graph_.current_rule_) + ": " + action.message);
      return false;
  }
  return true;
}

}  // namespace l3c::egraph
