#include "layers/l0/lower/values.h"

#include <algorithm>
#include <map>
#include <utility>

namespace l3c::l0::lower {

using egraph::EGraph;
using tensor::NodeId;
using tensor::Op;

int64_t Bytes(const Value& value) {
  return tensor::NumElements(value.shape) * static_cast<int64_t>(tensor::SizeOf(value.dtype));
}

bool IsView(Op op) { return tensor::Definition(op).op_class == tensor::OpClass::kMovement; }
bool IsReduction(Op op) { return op == Op::kReduceSum || op == Op::kReduceMax; }
bool IsElementwise(Op op) {
  return tensor::Definition(op).op_class == tensor::OpClass::kElementwise;
}
bool IsContraction(Op op) {
  return tensor::Definition(op).op_class == tensor::OpClass::kContraction;
}

namespace {

// Adds what a later run of the same rules has done.
void Append(const egraph::RunReport& run, egraph::RunReport& report) {
  const uint64_t iterations = report.iterations + run.iterations;
  const uint64_t matches = report.matches + run.matches;
  const uint64_t applied = report.applied + run.applied;
  const uint64_t work = report.work + run.work;
  std::map<egraph::RuleId, egraph::RuleReport> rules;
  const std::vector<egraph::RuleReport>* lists[] = {&report.rules, &run.rules};
  for (const auto* list : lists) {
    for (const egraph::RuleReport& rule : *list) {
      egraph::RuleReport& sum = rules[rule.rule];
      sum.rule = rule.rule;
      sum.matches += rule.matches;
      sum.applied += rule.applied;
      sum.rows += rule.rows;
      sum.bans += rule.bans;
      sum.work += rule.work;
    }
  }
  report = run;
  report.iterations = iterations;
  report.matches = matches;
  report.applied = applied;
  report.work = work;
  report.rules.clear();
  for (const auto& [id, rule] : rules) report.rules.push_back(rule);
}

struct ClassInfo {
  struct Row {
    Term term;
    egraph::RuleId rule;
  };
  std::vector<Row> rows;  // in order of creation, constructor by constructor
};

// Reads the classes back, operands first.
class Decoder {
 public:
  Decoder(const Step& step, const EGraph& graph, const std::vector<egraph::Value>& classes)
      : step_(step), graph_(graph), classes_(classes) {}

  ValueTable Decode() {
    for (size_t i = 0; i < step_.own.size(); ++i) {
      own_of_[step_.graph.node(step_.own[i].node).name] = static_cast<int32_t>(i);
    }
    Collect();
    for (NodeId id = 0; id < step_.graph.size(); ++id) {
      const egraph::Value c = graph_.Find(classes_[id]);
      if (!first_node_.contains(c.bits)) first_node_[c.bits] = id;
    }
    for (size_t i = 0; i < step_.inputs.size(); ++i) {
      input_of_[step_.graph.node(step_.inputs[i].node).name] = static_cast<int32_t>(i);
    }
    // In the order in which the source makes them: what it makes late, such as a value that is
    // computed again for its gradient, is numbered late.
    const std::vector<bool> needed = FindNeeded();
    for (NodeId id = 0; id < step_.graph.size(); ++id) {
      const egraph::Value c = graph_.Find(classes_[id]);
      if (needed[c.bits]) Visit(c);
    }
    for (const StepOutput& output : step_.outputs) {
      table_.outputs.push_back(number_.at(graph_.Find(classes_[output.node]).bits));
    }
    table_.inputs.assign(step_.inputs.size(), -1);
    for (ValueId v = 0; v < static_cast<ValueId>(table_.values.size()); ++v) {
      if (table_.values[v].input >= 0) table_.inputs[table_.values[v].input] = v;
    }
    for (const egraph::Value c : classes_) {
      const auto it = number_.find(graph_.Find(c).bits);
      table_.of_node.push_back(it == number_.end() ? -1 : it->second);
    }
    return std::move(table_);
  }

 private:
  void Collect() {
    for (const TermForm& form : TermForms()) {
      graph_.ForEachRow(graph_.FindFunction(form.name), [&](const egraph::Row& row) {
        std::string unread;  // InferTypes has read what rules have made
        if (auto term = ReadTerm(graph_, form, row, unread)) {
          if (const auto own = own_of_.find(term->input); own != own_of_.end()) {
            for (NodeId operand : step_.own[own->second].operands) {
              term->operands.push_back(graph_.Find(classes_[operand]));
            }
          }
          info_[graph_.Find(row.output()).bits].rows.push_back({*std::move(term), row.rule()});
        }
      });
    }
  }

  // Classes that the outputs can be computed from, by their number.
  std::vector<bool> FindNeeded() const {
    std::vector<bool> needed;
    std::vector<uint32_t> open;
    auto need = [&](egraph::Value value) {
      const uint32_t c = graph_.Find(value).bits;
      if (c >= needed.size()) needed.resize(c + 1);
      if (needed[c]) return;
      needed[c] = true;
      open.push_back(c);
    };
    for (const egraph::Value c : classes_) {
      if (c.bits >= needed.size()) needed.resize(c.bits + 1);
    }
    for (const StepOutput& output : step_.outputs) need(classes_[output.node]);
    while (!open.empty()) {
      const uint32_t c = open.back();
      open.pop_back();
      const auto info = info_.find(c);
      if (info == info_.end()) continue;
      for (const ClassInfo::Row& row : info->second.rows) {
        for (const egraph::Value operand : row.term.operands) need(operand);
      }
    }
    return needed;
  }

  // Whether a row is the term that the source itself wrote for the class.
  bool IsSource(const ClassInfo::Row& row, uint32_t c) const {
    auto it = first_node_.find(c);
    return it != first_node_.end() && step_.graph.node(it->second).op == row.term.op;
  }

  // Post-order over all definitions; a definition that leads back to its own class is left out.
  void Visit(egraph::Value root) {
    struct Frame {
      uint32_t c;
      size_t row = 0;
      size_t operand = 0;
      bool cyclic = false;
      std::vector<const ClassInfo::Row*> kept;
    };
    enum : uint8_t { kOpen = 1, kDone = 2 };
    if (state_[root.bits] != 0) return;
    std::vector<Frame> stack;
    auto open = [&](uint32_t c) {
      state_[c] = kOpen;
      std::vector<ClassInfo::Row>& rows = info_[c].rows;
      std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
        return IsSource(a, c) > IsSource(b, c);
      });
      stack.push_back({c});
    };
    open(root.bits);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      std::vector<ClassInfo::Row>& rows = info_[frame.c].rows;
      if (frame.row == rows.size()) {
        const uint32_t c = frame.c;
        const bool defined = !frame.kept.empty();
        Finish(c, frame.kept);
        stack.pop_back();
        // Without a definition for now: all lead back to what is open. Somebody who needs the class
        // later, when that is done, tries again.
        state_[c] = defined ? kDone : 0;
        if (!defined && !stack.empty()) stack.back().cyclic = true;
        continue;
      }
      const ClassInfo::Row& row = rows[frame.row];
      if (frame.operand == row.term.operands.size() || frame.cyclic) {
        if (!frame.cyclic) frame.kept.push_back(&row);
        ++frame.row;
        frame.operand = 0;
        frame.cyclic = false;
        continue;
      }
      const uint32_t child = row.term.operands[frame.operand].bits;
      if (state_[child] == 0) {
        open(child);
      } else if (state_[child] == kOpen) {
        frame.cyclic = true;
      } else {
        ++frame.operand;
      }
    }
  }

  void Finish(uint32_t c, const std::vector<const ClassInfo::Row*>& rows) {
    if (rows.empty()) return;
    Value value;
    value.class_id = egraph::Value{c};
    for (const ClassInfo::Row* row : rows) {
      Definition definition;
      definition.op = row->term.op;
      definition.attr = row->term.attr;
      definition.rule = row->rule;
      for (egraph::Value operand : row->term.operands) {
        definition.inputs.push_back(number_.at(operand.bits));
      }
      if (definition.op == Op::kInput) {
        const auto own = own_of_.find(row->term.input);
        (own != own_of_.end() ? value.own : value.input) =
            own != own_of_.end() ? own->second : input_of_.at(row->term.input);
      }
      value.definitions.push_back(std::move(definition));
    }
    Infer(value);
    auto it = first_node_.find(c);
    if (it != first_node_.end()) {
      const tensor::Node& node = step_.graph.node(it->second);
      value.name = node.name;
      value.span = node.span;
      value.dtype = node.dtype;
      value.shape = node.shape;
      if (it->second < step_.memory.size()) value.memory = step_.memory[it->second];
    } else {
      // Beside what it is made of, or the step's last value.
      const std::vector<ValueId>& from = value.definitions.front().inputs;
      if (!from.empty()) {
        value.memory = table_.values[from.front()].memory;
      } else if (!step_.memory.empty()) {
        value.memory = step_.memory.back();
      }
      value.name = step_.made + std::to_string(table_.values.size());
    }
    number_[c] = static_cast<ValueId>(table_.values.size());
    table_.values.push_back(std::move(value));
  }

  // Shape and dtype by the op's own rule.
  void Infer(Value& value) {
    const Definition& d = value.definitions.front();
    if (d.op == Op::kInput) return;
    tensor::Graph small;
    std::vector<NodeId> inputs;
    for (ValueId input : d.inputs) {
      const Value& operand = table_.values[input];
      inputs.push_back(
          small.AddInput("p" + std::to_string(inputs.size()), operand.dtype, operand.shape));
    }
    const tensor::Node& node = small.node(small.Add(d.op, inputs, d.attr));
    value.dtype = node.dtype;
    value.shape = node.shape;
  }

  const Step& step_;
  const EGraph& graph_;
  const std::vector<egraph::Value>& classes_;
  std::map<uint32_t, ClassInfo> info_;
  std::map<uint32_t, NodeId> first_node_;
  std::map<std::string, int32_t> input_of_;
  std::map<std::string, int32_t> own_of_;
  std::map<uint32_t, uint8_t> state_;
  std::map<uint32_t, ValueId> number_;
  ValueTable table_;
};

}  // namespace

std::optional<ValueTable> BuildValues(const Step& step, EGraph& graph, const egraph::Budget& budget,
                                      egraph::RunReport& report, std::string& error) {
  const std::vector<egraph::Value> classes = EncodeGraph(step.graph, graph, /*fold=*/true);
  graph.Rebuild();
  // What rules make may match others once its type is known.
  egraph::Budget left = budget;
  for (bool changed = true; changed;) {
    const egraph::RunReport run = egraph::RunRuleset(graph, graph.FindRuleset("algebra"), left);
    left.max_matches -= std::min(left.max_matches, run.matches);
    Append(run, report);
    if (run.stop == egraph::StopReason::kFailed) {
      error = *graph.failure();
      return std::nullopt;
    }
    if (run.cut_short()) return std::nullopt;
    if (!InferTypes(graph, changed, error)) return std::nullopt;
    graph.Rebuild();
  }
  return Decoder(step, graph, classes).Decode();
}

}  // namespace l3c::l0::lower
