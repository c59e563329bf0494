#include <string>

#include "absl/strings/str_cat.h"
#include "layers/l0/custom_op.h"
#include "layers/l0/kernel_text.h"
#include "layers/l0/linearize.h"
#include "layers/support/units.h"

namespace l3c::l0 {
namespace {

std::string Name(Reg reg) { return absl::StrCat("r", reg); }

std::string TypeName(const RegisterType& type) {
  std::string name(tensor::DTypeName(type.dtype));
  if (type.rows > 0) absl::StrAppend(&name, "x", type.rows);
  if (type.lanes > 1 || type.rows > 0) absl::StrAppend(&name, "x", type.lanes);
  return name;
}

// "r4 + 96", "r4", "96"
std::string Offset(std::string text, int64_t offset) {
  if (text.empty()) return absl::StrCat(offset);
  if (offset > 0) absl::StrAppend(&text, " + ", offset);
  if (offset < 0) absl::StrAppend(&text, " - ", -offset);
  return text;
}

std::string IndexText(const LinearOp& op) {
  std::string text;
  if (op.a != kNoReg) text = Name(op.a);
  if (op.divide != 1) absl::StrAppend(&text, "/", op.divide);
  if (op.b != kNoReg) {
    if (!text.empty()) text += " + ";
    if (op.scale != 1) absl::StrAppend(&text, op.scale, "*");
    text += Name(op.b);
  }
  text = Offset(text, op.offset);
  if (op.stride != 0) absl::StrAppend(&text, " + ", op.stride, "*lane");
  return text;
}

std::string AccessText(const LinearKernel& kernel, const LinearOp& op) {
  const std::string name = op.param < kernel.params.size()
                               ? kernel.params[op.param].name
                               : absl::StrCat("local", op.param - kernel.params.size());
  std::string text =
      absl::StrCat(name, "[", Offset(op.a == kNoReg ? "" : Name(op.a), op.offset), "]");
  if (op.op == UOp::kStore) absl::StrAppend(&text, ", ", Name(op.b));
  if (op.stride != 0) absl::StrAppend(&text, " stride ", op.stride);
  if (op.c != kNoReg) absl::StrAppend(&text, " if ", Name(op.c));
  if (op.active != 0) absl::StrAppend(&text, " active ", op.active);
  return text;
}

std::string OpText(const LinearKernel& kernel, const LinearOp& op) {
  std::string text(op.custom != nullptr ? op.custom->name : UopName(op.op));
  switch (op.op) {
    case UOp::kRange: {
      const std::string low = op.a == kNoReg ? absl::StrCat(op.low) : Name(op.a);
      const std::string high = op.b == kNoReg ? absl::StrCat(op.high) : Name(op.b);
      return absl::StrCat(text, " ", low, " .. ", high, " step ", op.step);
    }
    case UOp::kConst:
      return absl::StrCat(text, " ",
                          tensor::IsFloat(kernel.registers[op.dst].dtype)
                              ? support::PrintReal(op.number)
                              : absl::StrCat(op.integer));
    case UOp::kIndex:
      return absl::StrCat(text, " ", IndexText(op));
    case UOp::kLoad:
    case UOp::kStore:
      return absl::StrCat(text, " ", AccessText(kernel, op));
    case UOp::kWhere:
      return absl::StrCat(text, " ",
                          op.a == kNoReg ? absl::StrCat("active ", op.active) : Name(op.a), " ? ",
                          Name(op.b), " : ", Name(op.c));
    case UOp::kGep:
      return absl::StrCat(text, " ", Name(op.a), "..",
                          Name(op.a + kernel.registers[op.dst].lanes - 1), " lane ", op.integer);
    case UOp::kReduce:
      absl::StrAppend(&text, op.fold == Fold::kAdd ? "_add " : "_max ", Name(op.a));
      if (op.b != kNoReg) absl::StrAppend(&text, ", ", Name(op.b));
      if (op.integer > 0) absl::StrAppend(&text, " of ", op.integer);
      return text + (op.across ? " across x" : "");
    default:
      break;
  }
  const char* separator = " ";
  for (Reg operand : {op.a, op.b, op.c}) {
    if (operand == kNoReg) continue;
    absl::StrAppend(&text, separator, Name(operand));
    separator = ", ";
  }
  return text;
}

}  // namespace

std::string PrintLinear(const LinearKernel& kernel) {
  std::string out;
  int depth = 0;
  for (const LinearOp& op : kernel.ops) {
    if (op.op == UOp::kEnd || op.op == UOp::kEndIf) --depth;
    out.append(static_cast<size_t>(2 * depth), ' ');
    if (op.dst != kNoReg) absl::StrAppend(&out, Name(op.dst), " = ");
    absl::StrAppend(&out, OpText(kernel, op));
    if (op.dst != kNoReg) absl::StrAppend(&out, " : ", TypeName(kernel.registers[op.dst]));
    out += '\n';
    if (op.op == UOp::kRange || op.op == UOp::kIf) ++depth;
  }
  return out;
}

}  // namespace l3c::l0
