#include "layers/rules/value_check.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "egraph/run.h"
#include "egraph/why_not.h"
#include "layers/l0/lower/value_terms.h"
#include "layers/rules/agreement.h"
#include "layers/tensor/shape_rules.h"
#include "layers/tensor/text.h"

namespace l3c::rules {

using egraph::Action;
using l0::lower::Term;
using l0::lower::TermForm;
using l0::lower::TermTail;
using tensor::Array;
using tensor::NodeId;
using tensor::Op;

namespace {

constexpr size_t kElementsShown = 24;
constexpr size_t kMaxText = 400;

bool Unites(const egraph::EGraph& graph, const egraph::Rule& rule) {
  return std::any_of(rule.actions.begin(), rule.actions.end(), [&](const Action& action) {
    if (action.kind == Action::Kind::kUnion || action.kind == Action::Kind::kAddAs) return true;
    // Setting what is a class unites it with the one there.
    return action.kind == Action::Kind::kSet &&
           graph.sort(graph.function(action.function).output).is_equality;
  });
}

std::string ArrayText(const Array& array) {
  const size_t n = std::max(array.floats.size(), array.ints.size());
  std::string text = tensor::TypeToString(array.dtype, array.shape) + " = ";
  if (!array.shape.empty()) text += '{';
  for (size_t i = 0; i < std::min(n, kElementsShown); ++i) {
    if (i > 0) text += ", ";
    text += array.floats.empty() ? std::to_string(array.ints[i])
                                 : tensor::FormatNumber(array.floats[i], array.dtype);
  }
  if (n > kElementsShown) text += ", …";
  if (!array.shape.empty()) text += '}';
  return text;
}

std::string Cut(std::string text) {
  if (text.size() <= kMaxText) return text;
  return text.substr(0, kMaxText) + "…";
}

std::string Quoted(const std::string& text) { return "\"" + text + "\""; }

// The literals that follow a term's operands.
std::string TailText(Op op, const tensor::Attributes& attr) {
  const std::string dtype = Quoted(std::string(tensor::DTypeName(attr.dtype)));
  switch (l0::lower::FormOf(op).tail) {
    case TermTail::kInts:
      return " " + Quoted(l0::lower::JoinInts(attr.ints));
    case TermTail::kDType:
      return " " + dtype;
    case TermTail::kNumber:
      return " " + tensor::FormatNumber(attr.scalar, tensor::DType::kF64) + " " + dtype;
    case TermTail::kIota:
      return " " + Quoted(l0::lower::JoinInts(attr.ints)) + " " + std::to_string(attr.axis) + " " +
             dtype;
    default:
      return "";
  }
}

std::string NodeText(const tensor::Graph& program, NodeId id) {
  const tensor::Node& node = program.node(id);
  if (node.op == Op::kInput) return node.name;
  std::string text = std::string("(") + l0::lower::FormOf(node.op).name;
  for (NodeId input : node.inputs) text += " " + NodeText(program, input);
  return text + TailText(node.op, node.attr) + ")";
}

// The value of one op on given operands; nothing, and why, when it has none.
std::optional<Array> Apply(const Term& term, const std::vector<const Array*>& operands,
                           std::string& error) {
  tensor::Graph small;
  std::vector<NodeId> inputs;
  std::vector<Array> arrays;
  try {
    for (const Array* operand : operands) {
      inputs.push_back(
          small.AddInput("p" + std::to_string(inputs.size()), operand->dtype, operand->shape));
      arrays.push_back(*operand);
    }
    const NodeId y = small.Add(term.op, inputs, term.attr);
    constexpr int64_t kMostElements = 1 << 20;
    if (tensor::NumElements(small.node(y).shape) > kMostElements) {
      error = "the right side makes a tensor of more than a million elements";
      return std::nullopt;
    }
    return tensor::EvaluateNodes(small, arrays, std::vector<NodeId>{y},
                                 tensor::Precision::kOwnDType)[0];
  } catch (const tensor::ShapeError& wrong) {
    error = std::string("the right side is no tensor: ") + wrong.what();
    return std::nullopt;
  }
}

}  // namespace

ValueCheck::ValueCheck(const RuleFile& file, const RuleInfo& info) : graph_(NewGraph(file)) {
  under_test_ = AddRuleset(graph_, "rule-under-test");
  facts_ = AddRuleset(graph_, "facts-of-other-rules");
  facts_only_ = !Unites(graph_, graph_.rule(info.id));
  for (const Action& action : graph_.rule(info.id).actions) {
    const bool adds = action.kind == Action::Kind::kAdd || action.kind == Action::Kind::kAddAs;
    rounds_ |= adds && graph_.function(action.function).name == "Bf16Pair";
  }
  for (const RuleInfo& other : file.rules) {
    if (other.id == info.id || Unites(graph_, graph_.rule(other.id))) continue;
    egraph::Rule copy = graph_.rule(other.id);
    copy.ruleset = facts_;
    graph_.AddRule(std::move(copy));
  }
  egraph::Rule copy = graph_.rule(info.id);
  copy.ruleset = under_test_;
  rule_ = graph_.AddRule(std::move(copy));
  left_.emplace(graph_, graph_.rule(rule_));
}

ValueCheck::Outcome ValueCheck::Try(Choices& shapes, Choices& values, egraph::Numerics judged,
                                    Counterexample* counterexample, std::string* nearest) {
  const auto program = left_->Draw(shapes);
  if (!program) return Outcome::kNoInstance;
  const ValueRange range = judged == egraph::Numerics::kExact     ? ValueRange::kExtreme
                           : judged == egraph::Numerics::kReassoc ? ValueRange::kSpecial
                           // What is compared is the rest of the rule: how near rounding stays is
                           // the op's (layers/tensor/bf16.h), and terms that cancel show all of it.
                           : rounds_ ? ValueRange::kShort
                                     : ValueRange::kFinite;
  const std::vector<Array> inputs = DrawValues(*program, range, values);
  graph_.Push();
  const std::vector<egraph::Value> classes =
      l0::lower::EncodeGraph(*program, graph_, /*fold=*/false);
  graph_.Rebuild();
  egraph::Budget budget;
  budget.max_nodes = 20'000;
  budget.max_matches = 20'000;
  budget.max_iterations = 10;
  egraph::RunRuleset(graph_, facts_, budget);
  budget.max_iterations = 1;
  const egraph::RunReport run = egraph::RunRuleset(graph_, under_test_, budget);
  Outcome outcome = Outcome::kAgrees;
  std::optional<Counterexample> found;
  if (graph_.failure()) {
    found = Counterexample{*graph_.failure(), {}};
  } else if (run.matches == 0) {
    outcome = Outcome::kNoMatch;
    if (nearest != nullptr) {
      std::map<uint32_t, std::string> texts;
      for (NodeId id = 0; id < program->size(); ++id) {
        texts.emplace(graph_.Find(classes[id]).bits, NodeText(*program, id));
      }
      const egraph::WhyNotRule why = egraph::WhyNoMatch(
          graph_, rule_, [&](egraph::Value c) { return texts[graph_.Find(c).bits]; });
      *nearest = std::to_string(why.matched) + " of " + std::to_string(why.premises) +
                 " premises hold" + (why.nearest.empty() ? "" : " with " + why.nearest) +
                 (why.failed.empty() ? "" : "; fails: " + why.failed);
    }
  } else {
    found = Compare(*program, classes, inputs, judged);
  }
  graph_.Pop();
  if (found) {
    outcome = Outcome::kDisagrees;
    std::vector<std::string> given;
    for (size_t i = 0; i < inputs.size(); ++i) {
      given.push_back(program->node(program->inputs()[i]).name + " : " + ArrayText(inputs[i]));
    }
    found->lines.insert(found->lines.begin(), given.begin(), given.end());
    if (counterexample != nullptr) *counterexample = *std::move(found);
  }
  return outcome;
}

std::string ValueCheck::Growth(Choices& choices) {
  const auto program = left_->Draw(choices);
  if (!program) return "";
  std::string text;
  graph_.Push();
  l0::lower::EncodeGraph(*program, graph_, /*fold=*/false);
  graph_.Rebuild();
  egraph::Budget budget;
  budget.max_nodes = 10'000;
  budget.max_matches = 1'000'000;
  const egraph::RunReport run = egraph::RunRuleset(graph_, graph_.FindRuleset("algebra"), budget);
  if (run.cut_short() && !graph_.failure()) {
    text = "from " + std::to_string(program->size()) +
           " ops the rules of the file make more than " + std::to_string(budget.max_nodes) +
           " rows";
    if (const auto heaviest = run.Heaviest(1); !heaviest.empty()) {
      text += ", most of them " + graph_.DescribeRule(heaviest[0].rule);
    }
  }
  graph_.Pop();
  return text;
}

std::optional<Counterexample> ValueCheck::Compare(const tensor::Graph& program,
                                                  const std::vector<egraph::Value>& classes,
                                                  const std::vector<Array>& inputs,
                                                  egraph::Numerics judged) {
  std::vector<NodeId> ids(program.size());
  Magnitude magnitude;
  for (NodeId id = 0; id < program.size(); ++id) ids[id] = id;
  const std::vector<Array> values =
      tensor::EvaluateNodes(program, inputs, ids, tensor::Precision::kOwnDType);
  for (const Array& value : values) {
    magnitude.elements = std::max(magnitude.elements, tensor::NumElements(value.shape));
    for (double x : value.floats) {
      if (std::isfinite(x)) magnitude.largest = std::max(magnitude.largest, std::abs(x));
    }
  }
  const auto left_and_right = [&](const std::string& left, const Array& of_left,
                                  const std::string& right, const Array& of_right) {
    return std::vector<std::string>{"left   " + Cut(left) + " : " + ArrayText(of_left),
                                    "right  " + Cut(right) + " : " + ArrayText(of_right)};
  };
  // What the program itself says, and what the rule has joined of it.
  std::map<uint32_t, Array> known;
  std::map<uint32_t, std::string> texts;
  std::map<uint32_t, NodeId> sources;
  for (NodeId id = 0; id < program.size(); ++id) {
    const uint32_t c = graph_.Find(classes[id]).bits;
    const auto [it, fresh] = sources.emplace(c, id);
    if (fresh) {
      known[c] = values[id];
      texts[c] = NodeText(program, id);
      continue;
    }
    if (classes[id] == classes[it->second]) continue;
    if (auto reason = Disagreement(values[id], values[it->second], judged, magnitude)) {
      return Counterexample{
          *reason, left_and_right(NodeText(program, id), values[id], NodeText(program, it->second),
                                  values[it->second])};
    }
  }
  struct Made {
    Term term;
    uint32_t c;
  };
  std::vector<Made> made;
  std::optional<Counterexample> wrong;
  for (const TermForm& form : l0::lower::TermForms()) {
    graph_.ForEachRow(graph_.FindFunction(form.name), [&](const egraph::Row& row) {
      if (wrong || row.rule() == egraph::kInitial) return;
      std::string error;
      const auto term = l0::lower::ReadTerm(graph_, form, row, error);
      if (term && term->op == Op::kInput) error = "a rule may not make an input";
      if (!error.empty()) {
        wrong = Counterexample{error, {}};
        return;
      }
      made.push_back({*term, graph_.Find(row.output()).bits});
    });
  }
  if (wrong) return wrong;
  for (bool progress = true; progress;) {
    progress = false;
    for (auto it = made.begin(); it != made.end();) {
      std::vector<const Array*> operands;
      std::string text = std::string("(") + l0::lower::FormOf(it->term.op).name;
      for (egraph::Value operand : it->term.operands) {
        const auto value = known.find(operand.bits);
        if (value == known.end()) break;
        operands.push_back(&value->second);
        text += " " + texts.at(operand.bits);
      }
      if (operands.size() < it->term.operands.size()) {
        ++it;
        continue;
      }
      text = Cut(text + TailText(it->term.op, it->term.attr) + ")");
      std::string error;
      const auto value = Apply(it->term, operands, error);
      const auto [of_class, fresh] = known.try_emplace(it->c);
      if (!value) {
        std::vector<std::string> lines;
        if (!fresh) {
          lines.push_back("left   " + texts.at(it->c) + " : " + ArrayText(of_class->second));
        }
        lines.push_back("right  " + text);
        return Counterexample{error, lines};
      }
      if (fresh) {
        of_class->second = *value;
        texts[it->c] = text;
      } else if (auto reason = Disagreement(of_class->second, *value, judged, magnitude)) {
        // The left side as the rule has matched it, where it is not that which it made.
        return Counterexample{*reason,
                              left_and_right(texts.at(it->c), of_class->second, text, *value)};
      }
      it = made.erase(it);
      progress = true;
    }
  }
  return std::nullopt;
}

}  // namespace l3c::rules
