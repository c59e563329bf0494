#include "backends/llvm/emit_tiles.h"

#include <algorithm>
#include <cstring>

#include "backends/llvm/emit_bf16.h"
#include "layers/l0/tile_product.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"

namespace l3c::llvm_backend {

using l0::LinearOp;
using l0::Reg;
using l0::RegisterType;
using l0::UOp;

namespace {

constexpr unsigned kEdge = l0::kTileEdge;
constexpr unsigned kWord = 4;

// The memory operand of LDTILECFG: palette 1, the bytes of a row of each register, their rows
// (Intel's Software Developer's Manual, volume 1, section 18.2).
std::array<uint8_t, 64> Configuration(const std::array<RegisterType, l0::kTileRegisters>& shapes) {
  constexpr size_t kRowBytes = 16;
  constexpr size_t kRows = 48;
  std::array<uint8_t, 64> bytes{};
  bytes[0] = 1;
  for (size_t r = 0; r < shapes.size(); ++r) {
    if (shapes[r].rows == 0) continue;
    bytes[kRowBytes + 2 * r] = static_cast<uint8_t>(shapes[r].lanes * kWord);
    bytes[kRows + r] = static_cast<uint8_t>(shapes[r].rows);
  }
  return bytes;
}

}  // namespace

bool TileEmitter::IsTile(Reg reg) const {
  return reg != l0::kNoReg && kernel_.registers[reg].rows > 0;
}

bool TileEmitter::Takes(const LinearOp& op) const {
  return IsTile(op.dst) || (op.op == UOp::kStore && IsTile(op.b));
}

void TileEmitter::AssignRegisters() {
  numbers_.assign(kernel_.registers.size(), -1);
  bool zeroing = false;
  size_t used = 0;
  for (const LinearOp& op : kernel_.ops) {
    if (!Takes(op)) continue;
    if (op.op == UOp::kConst && !zeroing) {
      groups_.emplace_back();
      used = 0;
    }
    zeroing = op.op == UOp::kConst;
    if (op.dst == l0::kNoReg || numbers_[op.dst] >= 0) continue;
    numbers_[op.dst] = static_cast<int>(used);
    groups_.back().at(used++) = kernel_.registers[op.dst];
  }
  one_shape_ = std::all_of(groups_.begin(), groups_.end(), [&](const Shapes& shapes) {
    return Configuration(shapes) == Configuration(groups_.front());
  });
}

void TileEmitter::Begin() {
  AssignRegisters();
  if (groups_.empty()) return;
  if (target_.has_tiles) {
    if (one_shape_) Configure(groups_.front());
    return;
  }
  memory_.assign(kernel_.registers.size(), nullptr);
  std::array<llvm::Value*, l0::kTileRegisters> shared{};
  for (llvm::Value*& memory : shared) {
    llvm::AllocaInst* slot =
        b_.CreateAlloca(llvm::ArrayType::get(b_.getInt32Ty(), uint64_t{kEdge} * kEdge));
    slot->setAlignment(llvm::Align(kEdge * kWord));
    memory = slot;
  }
  for (Reg reg = 0; reg < kernel_.registers.size(); ++reg) {
    if (numbers_[reg] >= 0) memory_[reg] = shared[static_cast<size_t>(numbers_[reg])];
  }
}

void TileEmitter::End() {
  if (target_.has_tiles && !groups_.empty()) {
    b_.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, llvm::ArrayRef<llvm::Value*>());
  }
}

void TileEmitter::Configure(const Shapes& shapes) {
  llvm::Module& module = *b_.GetInsertBlock()->getModule();
  llvm::Constant* bytes = llvm::ConstantDataArray::get(
      module.getContext(), llvm::ArrayRef<uint8_t>(Configuration(shapes)));
  auto* global = new llvm::GlobalVariable(module, bytes->getType(), true,
                                          llvm::GlobalValue::PrivateLinkage, bytes, "tiles");
  global->setAlignment(llvm::Align(64));
  b_.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {global});
}

void TileEmitter::Emit(const LinearOp& op, llvm::Value* address) {
  if (!target_.has_tiles) return EmitInMemory(op, address);
  if (op.op == UOp::kConst && !zeroing_) {
    if (!one_shape_) Configure(groups_[group_]);
    ++group_;
  }
  zeroing_ = op.op == UOp::kConst;
  EmitNative(op, address);
}

void TileEmitter::EmitNative(const LinearOp& op, llvm::Value* address) {
  const auto number = [&](Reg reg) { return b_.getInt8(static_cast<uint8_t>(numbers_[reg])); };
  llvm::Value* stride = b_.getInt64(op.stride * kWord);
  switch (op.op) {
    case UOp::kConst:
      b_.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {number(op.dst)});
      return;
    case UOp::kLoad:
      b_.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64, {}, {number(op.dst), address, stride});
      return;
    case UOp::kStore:
      b_.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64, {}, {number(op.b), address, stride});
      return;
    default:
      b_.CreateIntrinsic(llvm::Intrinsic::x86_tdpbf16ps, {},
                         {number(op.dst), number(op.a), number(op.b)});
  }
}

llvm::Value* TileEmitter::RowOf(Reg tile, llvm::Value* row) {
  return b_.CreateGEP(b_.getInt32Ty(), memory_[tile], b_.CreateMul(row, b_.getInt64(kEdge)));
}

llvm::Value* TileEmitter::LanesBelow(unsigned lanes) {
  std::vector<llvm::Constant*> mask(kEdge);
  for (unsigned lane = 0; lane < kEdge; ++lane) mask[lane] = b_.getInt1(lane < lanes);
  return llvm::ConstantVector::get(mask);
}

template <typename Body>
std::vector<llvm::Value*> TileEmitter::Loop(int64_t count, std::vector<llvm::Value*> carried,
                                            const Body& body) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::Function* function = before->getParent();
  auto* head = llvm::BasicBlock::Create(b_.getContext(), "tile", function);
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "tiled", function);
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* counter = b_.CreatePHI(b_.getInt64Ty(), 2);
  counter->addIncoming(b_.getInt64(0), before);
  std::vector<llvm::PHINode*> phis;
  for (llvm::Value*& value : carried) {
    phis.push_back(b_.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, before);
    value = phis.back();
  }
  const std::vector<llvm::Value*> next = body(counter, carried);
  llvm::Value* following = b_.CreateAdd(counter, b_.getInt64(1));
  counter->addIncoming(following, b_.GetInsertBlock());
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(next[i], b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(following, b_.getInt64(count)), head, after);
  b_.SetInsertPoint(after);
  return next;
}

void TileEmitter::EmitInMemory(const LinearOp& op, llvm::Value* address) {
  if (op.op == UOp::kWmma) return EmitProduct(op);
  const Reg tile = op.op == UOp::kStore ? op.b : op.dst;
  const RegisterType& shape = kernel_.registers[tile];
  llvm::Type* row_type = llvm::FixedVectorType::get(b_.getInt32Ty(), kEdge);
  llvm::Value* zero = llvm::Constant::getNullValue(row_type);
  const llvm::Align align(kWord);
  Loop(shape.rows, {}, [&](llvm::Value* row, const std::vector<llvm::Value*>&) {
    llvm::Value* own = RowOf(tile, row);
    if (op.op == UOp::kConst) {
      b_.CreateAlignedStore(zero, own, align);
      return std::vector<llvm::Value*>{};
    }
    llvm::Value* there =
        b_.CreateGEP(b_.getInt32Ty(), address, b_.CreateMul(row, b_.getInt64(op.stride)));
    llvm::Value* mask = LanesBelow(shape.lanes);
    if (op.op == UOp::kLoad) {
      b_.CreateAlignedStore(b_.CreateMaskedLoad(row_type, there, align, mask, zero), own, align);
    } else {
      b_.CreateMaskedStore(b_.CreateAlignedLoad(row_type, own, align), there, align, mask);
    }
    return std::vector<llvm::Value*>{};
  });
}

void TileEmitter::EmitProduct(const LinearOp& op) {
  const RegisterType& left = kernel_.registers[op.a];
  llvm::Type* words = llvm::FixedVectorType::get(b_.getInt32Ty(), kEdge);
  llvm::Type* floats = llvm::FixedVectorType::get(b_.getFloatTy(), kEdge);
  llvm::Value* zero = llvm::Constant::getNullValue(floats);
  const llvm::Align align(kWord);
  Loop(left.rows, {}, [&](llvm::Value* row, const std::vector<llvm::Value*>&) {
    const std::vector<llvm::Value*> parts =
        Loop(left.lanes, {zero, zero}, [&](llvm::Value* k, const std::vector<llvm::Value*>& sums) {
          llvm::Value* at = b_.CreateGEP(b_.getInt32Ty(), RowOf(op.a, row), k);
          llvm::Value* x =
              b_.CreateVectorSplat(kEdge, b_.CreateAlignedLoad(b_.getInt32Ty(), at, align));
          llvm::Value* y = b_.CreateAlignedLoad(words, RowOf(op.b, k), align);
          return std::vector<llvm::Value*>{EmitBf16LowMulAdd(b_, sums[0], x, y, target_),
                                           EmitBf16HighMulAdd(b_, sums[1], x, y, target_)};
        });
    llvm::Value* own = RowOf(op.dst, row);
    llvm::Value* sum = b_.CreateAlignedLoad(floats, own, align);
    sum = EmitBf16Sum(b_, sum, EmitBf16Sum(b_, parts[0], parts[1], target_), target_);
    b_.CreateAlignedStore(sum, own, align);
    return std::vector<llvm::Value*>{};
  });
}

}  // namespace l3c::llvm_backend
