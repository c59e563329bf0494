// The second pass of stages: their conditions, and copies of state.
#include <algorithm>

#include "layers/l1/program_parser.h"
#include "layers/l1/tensor_body.h"
#include "layers/support/lexer.h"
#include "layers/tensor/shape_rules.h"

namespace l3c::l1 {

void ProgramParser::BuildStages() {
  for (Stage& stage : program_.stages) {
    StageValues values;
    std::set<std::string> buffers;
    for (const BufferParam& param : stage.params) {
      values[param.name] = {param.dtype, param.shape};
      buffers.insert(param.name);
    }
    BuildBody(stage, stage.body, values, buffers);
  }
}

// `values`: what can be seen at the beginning of the body; the same when it ends.
void ProgramParser::BuildBody(const Stage& stage, std::vector<Statement>& body, StageValues& values,
                              std::set<std::string>& buffers) {
  std::vector<std::string> entered;
  for (Statement& s : body) {
    switch (s.kind) {
      case StatementKind::kAlloc:
        values[s.buffer] = {s.dtype, s.shape};
        buffers.insert(s.buffer);
        entered.push_back(s.buffer);
        break;
      case StatementKind::kLet:
        if (!BuildExpression(stage, s, values)) break;
        values[s.buffer] = {s.value.node(s.value.outputs()[0].node).dtype,
                            s.value.node(s.value.outputs()[0].node).shape};
        entered.push_back(s.buffer);
        break;
      case StatementKind::kCopy:
        if (buffers.contains(s.source) || index_->FindWindowField(stage.reads, s.source)) break;
        ErrorUnknown("buffer", {s.source, s.value_span}, {buffers.begin(), buffers.end()},
                     Kind::kSafety);
        break;
      case StatementKind::kIf: {
        if (BuildExpression(stage, s, values)) {
          const tensor::Node& node = s.value.node(s.value.outputs()[0].node);
          if (node.dtype != tensor::DType::kBool || !node.shape.empty()) {
            Error(s.value_span,
                  "a condition is one bool, but this is " +
                      tensor::TypeToString(node.dtype, node.shape),
                  Kind::kConsistency)
                .Fix("compare with tensor_cmplt or tensor_cmpne, or reduce it first");
          }
        }
        BuildBody(stage, s.then_body, values, buffers);
        BuildBody(stage, s.else_body, values, buffers);
        break;
      }
      case StatementKind::kRead:
      case StatementKind::kDecode:
      case StatementKind::kForward:
      case StatementKind::kDrop:
        break;
    }
  }
  for (const std::string& name : entered) {
    values.erase(name);
    buffers.erase(name);
  }
}

// Inputs are the names that occur. A name that is none ends up as an error of the body, which then
// has all there are to choose from.
bool ProgramParser::BuildExpression(const Stage& stage, Statement& s, const StageValues& values) {
  support::Diagnostics ignored(&source());
  support::Lexer lexer(source(), ignored, s.value_span);
  tensor::Graph graph;
  bool strange = false;
  const auto add = [&](const std::string& name, const TensorType& type) {
    if (!graph.Find(name)) graph.AddInput(name, type.dtype, type.shape);
  };
  for (support::Token token = lexer.Next(); token.kind != support::TokenKind::kEnd;
       token = lexer.Next()) {
    if (token.kind != support::TokenKind::kWord) continue;
    const std::string name(token.text);
    const auto value = values.find(name);
    const auto owner = index_->FindWindowField(stage.reads, name);
    if (value != values.end() && owner) {
      Error(token.span,
            "'" + name + "' of stage '" + stage.name + "' hides the state field of that name",
            Kind::kConsistency)
          .With({owner->field->span, "the state field is declared here"});
      return false;
    }
    if (value != values.end()) {
      add(name, value->second);
    } else if (owner) {
      add(name, {owner->field->dtype, owner->field->shape});
    } else if (!tensor::FindOp(name) && !tensor::ParseDType(name)) {
      strange = true;
    }
  }
  if (strange) {
    for (const auto& [name, type] : values) add(name, type);
    for (const auto& [actor_name, window_name] : stage.reads) {
      const Actor* actor = index_->FindActor(actor_name);
      for (const std::string& name : index_->FindWindow(*actor, window_name)->fields) {
        const StateField* field = index_->FindState(*actor, name);
        add(name, {field->dtype, field->shape});
      }
    }
  }
  TensorBody body(source(), diagnostics(), s.value_span, graph);
  const auto node = body.ParseValue();
  if (!node) return false;
  graph.AddOutput("value", *node);
  DropUnusedState(graph, {});
  s.value = std::move(graph);
  return true;
}

}  // namespace l3c::l1
