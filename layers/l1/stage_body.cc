#include "layers/l1/stage_body.h"

#include <utility>

namespace l3c::l1 {

Statement StageBody::Of(StatementKind kind, const std::string& buffer) {
  Statement statement;
  statement.kind = kind;
  statement.buffer = buffer;
  return statement;
}

void StageBody::Alloc(const std::string& buffer, uint32_t region, const TensorType& type) {
  Statement statement = Of(StatementKind::kAlloc, buffer);
  statement.region = region;
  statement.dtype = type.dtype;
  statement.shape = type.shape;
  allocs_.push_back(std::move(statement));
}

void StageBody::Read(const std::string& buffer, const std::string& data, const std::string& field) {
  Statement statement = Of(StatementKind::kRead, buffer);
  statement.data = data;
  statement.field = field;
  fills_.push_back(std::move(statement));
}

void StageBody::Copy(const std::string& to, const std::string& from) {
  Statement statement = Of(StatementKind::kCopy, to);
  statement.source = from;
  fills_.push_back(std::move(statement));
}

void StageBody::Drop(const std::string& buffer) {
  drops_.push_back(Of(StatementKind::kDrop, buffer));
}

void StageBody::Forward(const std::string& target) {
  Statement statement = Of(StatementKind::kForward, "");
  const size_t dot = target.find('.');
  statement.target = target.substr(0, dot);
  if (dot != std::string::npos) statement.handler = target.substr(dot + 1);
  forwards_.push_back(std::move(statement));
}

std::string StageBody::CopyTo(const std::string& from, const std::string& suffix, uint32_t region,
                              const TensorType& type) {
  std::string copy = from + suffix;
  Alloc(copy, region, type);
  Copy(copy, from);
  return copy;
}

std::string StageBody::Carry(const std::string& buffer, uint32_t region, const TensorType& type) {
  std::string copy = CopyTo(buffer, "_resident", region, type);
  Drop(buffer);
  return copy;
}

void StageBody::AppendTo(Stage& stage) const {
  for (const auto* part : {&allocs_, &fills_, &drops_, &forwards_}) {
    stage.body.insert(stage.body.end(), part->begin(), part->end());
  }
}

}  // namespace l3c::l1
