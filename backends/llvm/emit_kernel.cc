#include "backends/llvm/emit_kernel.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "backends/llvm/emit_bf16.h"
#include "backends/llvm/emit_tiles.h"
#include "layers/l0/custom_op.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

namespace l3c::llvm_backend {
namespace {

using l0::Fold;
using l0::kNoReg;
using l0::LinearKernel;
using l0::LinearOp;
using l0::Reg;
using l0::RegisterType;
using l0::UOp;
using tensor::DType;

bool IsSigned(DType dtype) { return dtype == DType::kI32 || dtype == DType::kI64; }

class KernelEmitter {
 public:
  KernelEmitter(const LinearKernel& kernel, const TranscendentalTarget& target,
                llvm::Module& module)
      : kernel_(kernel),
        target_(target),
        module_(module),
        context_(module.getContext()),
        b_(context_),
        tiles_(kernel, target_, b_) {}

  void Emit() {
    llvm::Type* pointer = llvm::PointerType::getUnqual(context_);
    llvm::Type* i64 = b_.getInt64Ty();
    llvm::Type* none = b_.getVoidTy();

    std::vector<llvm::Type*> types(kernel_.params.size(), pointer);
    types.push_back(i64);
    types.push_back(i64);
    body_ = llvm::Function::Create(llvm::FunctionType::get(none, types, false),
                                   llvm::Function::PrivateLinkage, kernel_.name + ".body", module_);
    body_->setDoesNotThrow();
    for (unsigned i = 0; i < kernel_.params.size(); ++i) {
      body_->addParamAttr(i, llvm::Attribute::NoAlias);
      if (kernel_.params[i].access == l0::Access::kIn) {
        body_->addParamAttr(i, llvm::Attribute::ReadOnly);
      }
    }
    EmitBody();

    auto* entry = llvm::Function::Create(llvm::FunctionType::get(none, {pointer, i64, i64}, false),
                                         llvm::Function::ExternalLinkage, kernel_.name, module_);
    entry->setDoesNotThrow();
    b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", entry));
    std::vector<llvm::Value*> args;
    for (unsigned i = 0; i < kernel_.params.size(); ++i) {
      args.push_back(b_.CreateLoad(pointer, b_.CreateConstGEP1_64(pointer, entry->getArg(0), i)));
    }
    args.push_back(entry->getArg(1));
    args.push_back(entry->getArg(2));
    b_.CreateCall(body_, args);
    b_.CreateRetVoid();
  }

 private:
  struct Bracket {  // an open range or if
    llvm::PHINode* counter = nullptr;
    llvm::BasicBlock* head = nullptr;
    llvm::BasicBlock* after = nullptr;
    llvm::Value* limit = nullptr;
    int64_t step = 1;
  };

  void EmitBody() {
    auto* entry = llvm::BasicBlock::Create(context_, "entry", body_);
    b_.SetInsertPoint(entry);
    values_.assign(kernel_.registers.size(), nullptr);
    slots_.assign(kernel_.registers.size(), nullptr);
    std::vector<llvm::AllocaInst*> slots;
    for (Reg reg = 0; reg < kernel_.registers.size(); ++reg) {
      if (!kernel_.registers[reg].reassigned || kernel_.registers[reg].rows > 0) continue;
      slots_[reg] = b_.CreateAlloca(TypeOf(reg));
      slots.push_back(slots_[reg]);
    }
    constexpr uint64_t kLine = 64;
    for (const l0::LocalBuffer& local : kernel_.locals) {
      llvm::AllocaInst* memory = b_.CreateAlloca(llvm::ArrayType::get(
          StoredType(local.dtype), static_cast<uint64_t>(std::max<int64_t>(local.elements, 1))));
      memory->setAlignment(llvm::Align(kLine));
      locals_.push_back(memory);
    }
    const unsigned params = static_cast<unsigned>(kernel_.params.size());
    values_[kernel_.block_begin] = body_->getArg(params);
    values_[kernel_.block_end] = body_->getArg(params + 1);
    tiles_.Begin();
    for (const LinearOp& op : kernel_.ops) EmitOp(op);
    tiles_.End();
    b_.CreateRetVoid();
    if (!slots.empty()) {
      llvm::DominatorTree dominators(*body_);
      llvm::PromoteMemToReg(slots, dominators);
    }
  }

  // ---- Types and registers ------------------------------------------------------------------

  llvm::Type* ElementType(DType dtype) {
    switch (dtype) {
      case DType::kBool:
        return b_.getInt1Ty();
      case DType::kU8:
        return b_.getInt8Ty();
      case DType::kI32:
      case DType::kU32:
        return b_.getInt32Ty();
      case DType::kI64:
      case DType::kU64:
        return b_.getInt64Ty();
      case DType::kF32:
        return b_.getFloatTy();
      case DType::kF64:
        return b_.getDoubleTy();
    }
    return nullptr;
  }
  llvm::Type* Widen(llvm::Type* element, unsigned lanes) {
    return lanes == 1 ? element : llvm::FixedVectorType::get(element, lanes);
  }
  llvm::Type* TypeOf(Reg reg) {
    const RegisterType& type = kernel_.registers[reg];
    return Widen(ElementType(type.dtype), type.lanes);
  }
  DType DTypeOf(Reg reg) const { return kernel_.registers[reg].dtype; }
  unsigned LanesOf(Reg reg) const { return kernel_.registers[reg].lanes; }
  bool IsFloat(Reg reg) const { return tensor::IsFloat(DTypeOf(reg)); }

  llvm::Value* Get(Reg reg) {
    if (slots_[reg] != nullptr) return b_.CreateLoad(TypeOf(reg), slots_[reg]);
    return values_[reg];
  }
  void Set(Reg reg, llvm::Value* value) {
    if (slots_[reg] != nullptr) {
      b_.CreateStore(value, slots_[reg]);
    } else {
      values_[reg] = value;
    }
  }

  llvm::Value* Splat(llvm::Value* value, unsigned lanes) {
    if (lanes == 1 || value->getType()->isVectorTy()) return value;
    return b_.CreateVectorSplat(lanes, value);
  }

  // ---- Control ------------------------------------------------------------------------------

  llvm::BasicBlock* NewBlock(const char* name) {
    return llvm::BasicBlock::Create(context_, name, body_);
  }

  void OpenRange(const LinearOp& op) {
    llvm::Value* low = op.a == kNoReg ? b_.getInt64(op.low) : Get(op.a);
    llvm::Value* high = op.b == kNoReg ? b_.getInt64(op.high) : Get(op.b);
    Bracket range;
    range.limit = high;
    range.step = op.step;
    range.head = NewBlock("range");
    range.after = NewBlock("end");
    llvm::BasicBlock* before = b_.GetInsertBlock();
    const bool runs = op.a == kNoReg && op.b == kNoReg && op.low < op.high;
    if (runs) {
      b_.CreateBr(range.head);
    } else {
      b_.CreateCondBr(b_.CreateICmpSLT(low, high), range.head, range.after);
    }
    b_.SetInsertPoint(range.head);
    range.counter = b_.CreatePHI(b_.getInt64Ty(), 2);
    range.counter->addIncoming(low, before);
    Set(op.dst, range.counter);
    brackets_.push_back(range);
  }

  void CloseRange() {
    const Bracket range = brackets_.back();
    brackets_.pop_back();
    llvm::Value* next = b_.CreateAdd(range.counter, b_.getInt64(range.step), "", true, true);
    range.counter->addIncoming(next, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpSLT(next, range.limit), range.head, range.after);
    b_.SetInsertPoint(range.after);
  }

  void OpenIf(llvm::Value* condition) {
    Bracket bracket;
    bracket.head = NewBlock("if");
    bracket.after = NewBlock("endif");
    b_.CreateCondBr(condition, bracket.head, bracket.after);
    b_.SetInsertPoint(bracket.head);
    brackets_.push_back(bracket);
  }

  void CloseIf() {
    llvm::BasicBlock* after = brackets_.back().after;
    brackets_.pop_back();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }

  // ---- Memory -------------------------------------------------------------------------------

  llvm::Constant* LanesBelow(unsigned active, unsigned lanes) {
    std::vector<llvm::Constant*> mask(lanes);
    for (unsigned lane = 0; lane < lanes; ++lane) mask[lane] = b_.getInt1(lane < active);
    return llvm::ConstantVector::get(mask);
  }

  // The mask of an access of `lanes` lanes; nullptr: all.
  llvm::Value* MaskOf(const LinearOp& op, unsigned lanes) {
    llvm::Value* mask = op.c == kNoReg ? nullptr : Splat(Get(op.c), lanes);
    if (op.active == 0) return mask;
    llvm::Value* below = LanesBelow(op.active, lanes);
    return mask == nullptr ? below : b_.CreateAnd(mask, below);
  }

  // A bool is a byte in memory.
  llvm::Type* StoredType(DType dtype) {
    return dtype == DType::kBool ? b_.getInt8Ty() : ElementType(dtype);
  }

  llvm::Value* AddressOf(const LinearOp& op, llvm::Type* element) {
    const size_t params = kernel_.params.size();
    llvm::Value* pointer = op.param < params ? static_cast<llvm::Value*>(body_->getArg(op.param))
                                             : locals_[op.param - params];
    if (op.a != kNoReg) pointer = b_.CreateGEP(element, pointer, Get(op.a));
    if (op.offset != 0) pointer = b_.CreateGEP(element, pointer, b_.getInt64(op.offset));
    return pointer;
  }

  bool IsScattered(const LinearOp& op) const { return op.a != kNoReg && LanesOf(op.a) > 1; }

  llvm::Value* EmitLoad(const LinearOp& op) {
    const unsigned lanes = LanesOf(op.dst);
    const DType dtype = DTypeOf(op.dst);
    llvm::Type* element = StoredType(dtype);
    llvm::Type* type = Widen(element, lanes);
    const llvm::Align align(tensor::SizeOf(dtype));
    llvm::Value* pointer = AddressOf(op, element);
    llvm::Value* mask = MaskOf(op, lanes);
    llvm::Value* zero = llvm::Constant::getNullValue(type);
    llvm::Value* value = nullptr;
    if (IsScattered(op)) {
      value = b_.CreateMaskedGather(type, pointer, align, mask, zero);
    } else if (lanes > 1 && mask != nullptr) {
      value = b_.CreateMaskedLoad(type, pointer, align, mask, zero);
    } else if (mask != nullptr) {
      // A scalar outside its bounds reads the first element instead and drops it.
      pointer = b_.CreateSelect(mask, pointer, body_->getArg(op.param));
      value = b_.CreateSelect(mask, b_.CreateAlignedLoad(type, pointer, align), zero);
    } else {
      value = b_.CreateAlignedLoad(type, pointer, align);
    }
    if (dtype == DType::kBool) value = b_.CreateICmpNE(value, zero);
    return value;
  }

  // Into the first cache, to be read.
  void EmitFetch(const LinearOp& op) {
    constexpr int kRead = 0;
    constexpr int kFirstCache = 3;
    constexpr int kData = 1;
    llvm::Value* pointer = AddressOf(op, StoredType(kernel_.params[op.param].dtype));
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {pointer->getType()},
                       {pointer, b_.getInt32(kRead), b_.getInt32(kFirstCache), b_.getInt32(kData)});
  }

  void EmitStore(const LinearOp& op) {
    const unsigned lanes = LanesOf(op.b);
    const DType dtype = DTypeOf(op.b);
    llvm::Type* element = StoredType(dtype);
    const llvm::Align align(tensor::SizeOf(dtype));
    llvm::Value* value = Get(op.b);
    if (dtype == DType::kBool) value = b_.CreateZExt(value, Widen(element, lanes));
    llvm::Value* mask = MaskOf(op, lanes);
    if (lanes == 1 && mask != nullptr) {
      OpenIf(mask);
      b_.CreateAlignedStore(value, AddressOf(op, element), align);
      CloseIf();
      return;
    }
    llvm::Value* pointer = AddressOf(op, element);
    if (IsScattered(op)) {
      b_.CreateMaskedScatter(value, pointer, align, mask);
    } else if (mask != nullptr) {
      b_.CreateMaskedStore(value, pointer, align, mask);
    } else {
      b_.CreateAlignedStore(value, pointer, align);
    }
  }

  llvm::Value* EmitIndex(const LinearOp& op) {
    const unsigned lanes = LanesOf(op.dst);
    llvm::Type* type = TypeOf(op.dst);
    const auto constant = [&](int64_t value) { return llvm::ConstantInt::getSigned(type, value); };
    llvm::Value* sum = nullptr;
    const auto add = [&](llvm::Value* value) {
      sum = sum == nullptr ? value : b_.CreateAdd(sum, value);
    };
    if (op.a != kNoReg) {
      llvm::Value* a = Splat(Get(op.a), lanes);
      add(op.divide == 1 ? a : b_.CreateSDiv(a, constant(op.divide)));
    }
    if (op.b != kNoReg) {
      llvm::Value* b = Splat(Get(op.b), lanes);
      add(op.scale == 1 ? b : b_.CreateMul(b, constant(op.scale)));
    }
    if (op.stride != 0) {
      std::vector<llvm::Constant*> steps(lanes);
      for (unsigned lane = 0; lane < lanes; ++lane) {
        steps[lane] = llvm::ConstantInt::getSigned(b_.getInt64Ty(), op.offset + op.stride * lane);
      }
      add(llvm::ConstantVector::get(steps));
    } else if (op.offset != 0 || sum == nullptr) {
      add(constant(op.offset));
    }
    return sum;
  }

  // ---- Arithmetic ---------------------------------------------------------------------------

  llvm::Value* EmitConst(Reg dst, double number, int64_t integer) {
    llvm::Type* type = TypeOf(dst);
    switch (DTypeOf(dst)) {
      case DType::kF32:
        return llvm::ConstantFP::get(type, static_cast<float>(number));
      case DType::kF64:
        return llvm::ConstantFP::get(type, number);
      case DType::kBool:
        return llvm::ConstantInt::get(type, integer != 0 ? 1 : 0);
      default:
        return llvm::ConstantInt::get(type, static_cast<uint64_t>(integer), true, true);
    }
  }

  llvm::Value* Maximum(Reg dst, llvm::Value* x, llvm::Value* y) {
    if (IsFloat(dst)) return b_.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, x, y);
    if (DTypeOf(dst) == DType::kBool) return b_.CreateOr(x, y);
    return b_.CreateBinaryIntrinsic(
        IsSigned(DTypeOf(dst)) ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, x, y);
  }

  llvm::Value* Sum(Reg dst, llvm::Value* x, llvm::Value* y) {
    if (IsFloat(dst)) return b_.CreateFAdd(x, y);
    if (DTypeOf(dst) == DType::kBool) return b_.CreateOr(x, y);
    return b_.CreateAdd(x, y);
  }

  llvm::Value* Modulo(Reg dst, llvm::Value* x, llvm::Value* y) {
    if (IsFloat(dst)) return b_.CreateFRem(x, y);
    llvm::Value* zero = llvm::Constant::getNullValue(x->getType());
    llvm::Value* one = llvm::ConstantInt::get(x->getType(), 1);
    // x mod 0 is 0; x mod -1 is too, and would trap for the lowest x.
    llvm::Value* unsafe = b_.CreateICmpEQ(y, zero);
    if (IsSigned(DTypeOf(dst))) {
      llvm::Value* minus_one = llvm::Constant::getAllOnesValue(x->getType());
      unsafe = b_.CreateOr(unsafe, b_.CreateICmpEQ(y, minus_one));
      return b_.CreateSRem(x, b_.CreateSelect(unsafe, one, y));
    }
    return b_.CreateURem(x, b_.CreateSelect(unsafe, one, y));
  }

  llvm::Value* Cast(Reg from_reg, Reg dst, llvm::Value* x) {
    const DType from = DTypeOf(from_reg);
    const DType to = DTypeOf(dst);
    llvm::Type* type = TypeOf(dst);
    if (from == to) return x;
    llvm::Value* zero = llvm::Constant::getNullValue(x->getType());
    if (to == DType::kBool) {
      return tensor::IsFloat(from) ? b_.CreateFCmpUNE(x, zero) : b_.CreateICmpNE(x, zero);
    }
    if (tensor::IsFloat(to)) {
      if (tensor::IsFloat(from)) return b_.CreateFPCast(x, type);
      return IsSigned(from) ? b_.CreateSIToFP(x, type) : b_.CreateUIToFP(x, type);
    }
    if (tensor::IsFloat(from)) {
      return b_.CreateIntrinsic(
          IsSigned(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
          {type, x->getType()}, {x});
    }
    return CastInteger(from, to, type, x);
  }

  // Saturates: clamps in the source type, then changes the width.
  llvm::Value* CastInteger(DType from, DType to, llvm::Type* type, llvm::Value* x) {
    if (from == DType::kBool) return b_.CreateZExt(x, type);
    const unsigned from_bits = 8 * static_cast<unsigned>(tensor::SizeOf(from));
    const unsigned to_bits = 8 * static_cast<unsigned>(tensor::SizeOf(to));
    const auto constant = [&](const llvm::APInt& value) {
      return llvm::ConstantInt::get(x->getType(), value);
    };
    if (IsSigned(from)) {
      if (!IsSigned(to)) {
        x = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x,
                                     llvm::Constant::getNullValue(x->getType()));
        if (to_bits < from_bits) {
          const auto limit = llvm::APInt::getMaxValue(to_bits).zext(from_bits);
          x = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, constant(limit));
        }
        return b_.CreateZExtOrTrunc(x, type);
      }
      if (to_bits < from_bits) {
        const auto low = llvm::APInt::getSignedMinValue(to_bits).sext(from_bits);
        const auto high = llvm::APInt::getSignedMaxValue(to_bits).sext(from_bits);
        x = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, constant(low));
        x = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, constant(high));
      }
      return b_.CreateSExtOrTrunc(x, type);
    }
    const auto limit =
        IsSigned(to) ? llvm::APInt::getSignedMaxValue(to_bits) : llvm::APInt::getMaxValue(to_bits);
    if (limit.getActiveBits() < from_bits) {
      x = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, x,
                                   constant(limit.zextOrTrunc(from_bits)));
    }
    return b_.CreateZExtOrTrunc(x, type);
  }

  llvm::Value* Bitcast(Reg from, Reg dst, llvm::Value* x) {
    if (DTypeOf(from) == DTypeOf(dst)) return x;
    if (DTypeOf(from) == DType::kBool) return b_.CreateZExt(x, TypeOf(dst));
    return b_.CreateBitCast(x, TypeOf(dst));
  }

  llvm::Value* Less(Reg operand, llvm::Value* x, llvm::Value* y) {
    if (IsFloat(operand)) return b_.CreateFCmpOLT(x, y);
    return IsSigned(DTypeOf(operand)) ? b_.CreateICmpSLT(x, y) : b_.CreateICmpULT(x, y);
  }

  llvm::Value* Transcendental(UOp op, Reg dst, llvm::Value* x) {
    if (DTypeOf(dst) == DType::kF32) {
      if (op == UOp::kExp2) return EmitExp2(b_, x, target_);
      if (op == UOp::kLog2) return EmitLog2(b_, x, target_);
      return EmitSin(b_, x, target_);
    }
    const auto id = op == UOp::kExp2   ? llvm::Intrinsic::exp2
                    : op == UOp::kLog2 ? llvm::Intrinsic::log2
                                       : llvm::Intrinsic::sin;
    return b_.CreateUnaryIntrinsic(id, x);
  }

  // Word index mod 4 of Philox4x32-10 at counter (index / 4, 0, 0) under the key's two halves, its
  // top 24 bits as a number in [0, 1). Words live in the low halves of 64-bit lanes.
  llvm::Value* Philox(Reg dst, llvm::Value* key, llvm::Value* index) {
    llvm::Type* wide = index->getType();
    const auto number = [&](uint64_t value) { return llvm::ConstantInt::get(wide, value); };
    const auto low = [&](llvm::Value* x) { return b_.CreateAnd(x, number(0xffffffff)); };
    const auto high = [&](llvm::Value* x) { return b_.CreateLShr(x, number(32)); };
    llvm::Value* block = b_.CreateLShr(index, number(2));
    llvm::Value* x[4] = {low(block), high(block), number(0), number(0)};
    llvm::Value* k[2] = {low(key), high(key)};
    for (int round = 0; round < 10; ++round) {
      llvm::Value* first = b_.CreateMul(x[0], number(0xD2511F53));
      llvm::Value* second = b_.CreateMul(x[2], number(0xCD9E8D57));
      llvm::Value* next[4] = {b_.CreateXor(b_.CreateXor(high(second), x[1]), k[0]), low(second),
                              b_.CreateXor(b_.CreateXor(high(first), x[3]), k[1]), low(first)};
      std::copy(std::begin(next), std::end(next), std::begin(x));
      k[0] = low(b_.CreateAdd(k[0], number(0x9E3779B9)));
      k[1] = low(b_.CreateAdd(k[1], number(0xBB67AE85)));
    }
    llvm::Value* lane = b_.CreateAnd(index, number(3));
    llvm::Value* word = x[3];
    for (uint64_t i = 3; i-- > 0;) {
      word = b_.CreateSelect(b_.CreateICmpEQ(lane, number(i)), x[i], word);
    }
    llvm::Value* uniform = b_.CreateUIToFP(b_.CreateLShr(word, number(8)), TypeOf(dst));
    return b_.CreateFMul(uniform, llvm::ConstantFP::get(TypeOf(dst), 1.0 / 16777216.0));
  }

  llvm::Value* Custom(const LinearOp& op, llvm::Value* x, llvm::Value* y) {
    if (op.custom->name == l0::kBf16Pair) return EmitBf16Pair(b_, x, y, target_);
    if (op.custom->name == l0::kBf16Dot) {
      return EmitBf16Dot(b_, llvm::Constant::getNullValue(TypeOf(op.dst)), x, y, target_);
    }
    return Philox(op.dst, x, y);
  }

  llvm::Value* FoldLanes(const LinearOp& op) {
    llvm::Value* value = Get(op.a);
    if (op.integer > 0) return FoldGroups(op, value);
    for (unsigned lanes = LanesOf(op.a); lanes > 1; lanes /= 2) {
      if (lanes == 2) {
        llvm::Value* x = b_.CreateExtractElement(value, uint64_t{0});
        llvm::Value* y = b_.CreateExtractElement(value, uint64_t{1});
        return op.fold == Fold::kAdd ? Sum(op.dst, x, y) : Maximum(op.dst, x, y);
      }
      std::vector<int> low(lanes / 2);
      std::vector<int> high(lanes / 2);
      for (unsigned lane = 0; lane < lanes / 2; ++lane) {
        low[lane] = static_cast<int>(lane);
        high[lane] = static_cast<int>(lane + lanes / 2);
      }
      llvm::Value* x = b_.CreateShuffleVector(value, low);
      llvm::Value* y = b_.CreateShuffleVector(value, high);
      value = op.fold == Fold::kAdd ? Sum(op.dst, x, y) : Maximum(op.dst, x, y);
    }
    return value;
  }

  // Each `op.integer` neighbours of a, then of b, to half as many.
  llvm::Value* FoldGroups(const LinearOp& op, llvm::Value* a) {
    llvm::Value* b = op.b == kNoReg ? a : Get(op.b);
    const auto half = static_cast<unsigned>(op.integer / 2);
    std::vector<int> low;
    std::vector<int> high;
    for (unsigned lane = 0; lane < LanesOf(op.dst); ++lane) {
      low.push_back(static_cast<int>(lane / half * 2 * half + lane % half));
      high.push_back(low.back() + static_cast<int>(half));
    }
    llvm::Value* x = b_.CreateShuffleVector(a, b, low);
    llvm::Value* y = b_.CreateShuffleVector(a, b, high);
    return op.fold == Fold::kAdd ? Sum(op.dst, x, y) : Maximum(op.dst, x, y);
  }

  // Column `op.integer` of a block of registers. The whole block is transposed at its first column,
  // in log2(lanes) stages: at distance h, rows i and i + h exchange the lanes that differ in bit h.
  llvm::Value* Column(const LinearOp& op) {
    const unsigned lanes = LanesOf(op.dst);
    if (op.a != block_ || columns_.size() != lanes) {
      block_ = op.a;
      columns_.clear();
      for (unsigned row = 0; row < lanes; ++row) columns_.push_back(Get(op.a + row));
      for (unsigned h = lanes / 2; h > 0; h /= 2) {
        std::vector<int> low(lanes);
        std::vector<int> high(lanes);
        for (unsigned lane = 0; lane < lanes; ++lane) {
          low[lane] = static_cast<int>((lane & h) ? lanes + lane - h : lane);
          high[lane] = static_cast<int>((lane & h) ? lanes + lane : lane + h);
        }
        for (unsigned row = 0; row < lanes; ++row) {
          if (row & h) continue;
          llvm::Value* x = columns_[row];
          llvm::Value* y = columns_[row + h];
          columns_[row] = b_.CreateShuffleVector(x, y, low);
          columns_[row + h] = b_.CreateShuffleVector(x, y, high);
        }
      }
    }
    return columns_[static_cast<size_t>(op.integer)];
  }

  llvm::Value* Select(const LinearOp& op) {
    llvm::Value* condition = op.a == kNoReg ? LanesBelow(op.active, LanesOf(op.dst)) : Get(op.a);
    return b_.CreateSelect(condition, Get(op.b), Get(op.c));
  }

  void EmitOp(const LinearOp& op) {
    const auto a = [&] { return Get(op.a); };
    const auto b = [&] { return Get(op.b); };
    const auto one = [&] { return llvm::ConstantFP::get(TypeOf(op.dst), 1.0); };
    if (tiles_.Takes(op)) {
      const bool accesses = op.op == UOp::kLoad || op.op == UOp::kStore;
      return tiles_.Emit(op, accesses ? AddressOf(op, b_.getInt32Ty()) : nullptr);
    }
    switch (op.op) {
      case UOp::kRange:
        return OpenRange(op);
      case UOp::kEnd:
        return CloseRange();
      case UOp::kIf:
        return OpenIf(a());
      case UOp::kEndIf:
        return CloseIf();
      case UOp::kStore:
        return EmitStore(op);
      case UOp::kLoad:
        if (op.dst == kNoReg) return EmitFetch(op);
        return Set(op.dst, EmitLoad(op));
      case UOp::kIndex:
        return Set(op.dst, EmitIndex(op));
      case UOp::kConst:
        return Set(op.dst, EmitConst(op.dst, op.number, op.integer));
      case UOp::kVectorize:
        return Set(op.dst, Splat(a(), LanesOf(op.dst)));
      case UOp::kReduce:
        return Set(op.dst, FoldLanes(op));
      case UOp::kAdd:
        return Set(op.dst, Sum(op.dst, a(), b()));
      case UOp::kMax:
        return Set(op.dst, Maximum(op.dst, a(), b()));
      case UOp::kMod:
        return Set(op.dst, Modulo(op.dst, a(), b()));
      case UOp::kMul:
        if (IsFloat(op.dst)) return Set(op.dst, b_.CreateFMul(a(), b()));
        return Set(op.dst, DTypeOf(op.dst) == DType::kBool ? b_.CreateAnd(a(), b())
                                                           : b_.CreateMul(a(), b()));
      case UOp::kMulAcc: {
        llvm::Value* x = a();
        llvm::Value* y = b();
        llvm::Value* z = Get(op.c);
        if (!IsFloat(op.a)) return Set(op.dst, EmitBf16Dot(b_, z, x, y, target_));
        if (!target_.has_fma) return Set(op.dst, b_.CreateFAdd(b_.CreateFMul(x, y), z));
        return Set(op.dst, b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z}));
      }
      case UOp::kNeg:
        return Set(op.dst, IsFloat(op.dst) ? b_.CreateFNeg(a()) : b_.CreateNeg(a()));
      case UOp::kReciprocal:
        return Set(op.dst, b_.CreateFDiv(one(), a()));
      case UOp::kSqrt:
        return Set(op.dst, b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a()));
      case UOp::kExp2:
      case UOp::kLog2:
      case UOp::kSin:
        return Set(op.dst, Transcendental(op.op, op.dst, a()));
      case UOp::kCmpLt:
        return Set(op.dst, Less(op.a, a(), b()));
      case UOp::kCmpNe:
        return Set(op.dst, IsFloat(op.a) ? b_.CreateFCmpUNE(a(), b()) : b_.CreateICmpNE(a(), b()));
      case UOp::kWhere:
        return Set(op.dst, Select(op));
      case UOp::kCast:
        return Set(op.dst, Cast(op.a, op.dst, a()));
      case UOp::kBitcast:
        return Set(op.dst, Bitcast(op.a, op.dst, a()));
      case UOp::kGep:
        return Set(op.dst, Column(op));
      case UOp::kCustom:
        return Set(op.dst, Custom(op, a(), b()));
      case UOp::kBarrier:  // one thread runs a block
        return;            // the lineariser makes none of these
      case UOp::kWmma:
        return;  // the tiles'
    }
  }

  const LinearKernel& kernel_;
  const TranscendentalTarget target_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  llvm::Function* body_ = nullptr;
  std::vector<llvm::Value*> values_;
  std::vector<llvm::AllocaInst*> slots_;
  std::vector<llvm::AllocaInst*> locals_;
  TileEmitter tiles_;
  std::vector<Bracket> brackets_;
  Reg block_ = kNoReg;                 // the block of registers transposed last
  std::vector<llvm::Value*> columns_;  // and its columns
};

}  // namespace

void EmitKernel(const LinearKernel& kernel, const TranscendentalTarget& target,
                llvm::Module& module) {
  KernelEmitter(kernel, target, module).Emit();
}

}  // namespace l3c::llvm_backend
