#include "backends/llvm/emit_bf16.h"

#include <cstdint>
#include <vector>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace l3c::llvm_backend {
namespace {

unsigned LanesOf(llvm::Value* value) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector == nullptr ? 1 : vector->getNumElements();
}

// The instruction for so many lanes; not_intrinsic where there is none.
llvm::Intrinsic::ID DotOf(unsigned lanes) {
  switch (lanes) {
    case 4:
      return llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128;
    case 8:
      return llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256;
    case 16:
      return llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512;
    default:
      return llvm::Intrinsic::not_intrinsic;
  }
}

llvm::Intrinsic::ID PairOf(unsigned lanes) {
  switch (lanes) {
    case 4:
      return llvm::Intrinsic::x86_avx512bf16_cvtne2ps2bf16_128;
    case 8:
      return llvm::Intrinsic::x86_avx512bf16_cvtne2ps2bf16_256;
    case 16:
      return llvm::Intrinsic::x86_avx512bf16_cvtne2ps2bf16_512;
    default:
      return llvm::Intrinsic::not_intrinsic;
  }
}

// Op by op, on floats of the type of `like` and integers of as many lanes.
class Bf16Emitter {
 public:
  Bf16Emitter(llvm::IRBuilderBase& builder, llvm::Type* floats, const TranscendentalTarget& target)
      : b_(builder), floats_(floats), target_(target) {}

  // Rounded, in the low half.
  llvm::Value* Round(llvm::Value* x) {
    llvm::Value* bits = b_.CreateBitCast(Flushed(x), Like(b_.getInt32Ty()));
    llvm::Value* high = b_.CreateLShr(bits, Int(16));
    llvm::Value* tie = b_.CreateAnd(high, Int(1));
    llvm::Value* nearest =
        b_.CreateLShr(b_.CreateAdd(b_.CreateAdd(bits, Int(0x7fff)), tie), Int(16));
    return b_.CreateSelect(b_.CreateFCmpUNO(x, x), b_.CreateOr(high, Int(0x40)), nearest);
  }

  llvm::Value* Dot(llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
    return AddLow(AddHigh(Flushed(sum), a, b), a, b);
  }

  llvm::Value* AddLow(llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
    return Flushed(MulAdd(Low(a), Low(b), sum));
  }
  llvm::Value* AddHigh(llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
    return Flushed(MulAdd(High(a), High(b), sum));
  }
  llvm::Value* Sum(llvm::Value* x, llvm::Value* y) {
    return Flushed(b_.CreateFAdd(Flushed(x), Flushed(y)));
  }

  llvm::Value* Int(uint32_t value) { return llvm::ConstantInt::get(Like(b_.getInt32Ty()), value); }

 private:
  llvm::Type* Like(llvm::Type* element) {
    const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(floats_);
    if (vector == nullptr) return element;
    return llvm::FixedVectorType::get(element, vector->getNumElements());
  }

  llvm::Value* Float(llvm::Value* bits) { return Flushed(b_.CreateBitCast(bits, floats_)); }
  llvm::Value* Low(llvm::Value* pair) { return Float(b_.CreateShl(pair, Int(16))); }
  llvm::Value* High(llvm::Value* pair) { return Float(b_.CreateAnd(pair, Int(0xffff0000))); }

  // A denormal is a zero of its sign.
  llvm::Value* Flushed(llvm::Value* x) {
    llvm::Value* bits = b_.CreateBitCast(x, Like(b_.getInt32Ty()));
    llvm::Value* tiny = b_.CreateICmpEQ(b_.CreateAnd(bits, Int(0x7f800000)), Int(0));
    llvm::Value* zero = b_.CreateBitCast(b_.CreateAnd(bits, Int(0x80000000)), floats_);
    return b_.CreateSelect(tiny, zero, x);
  }

  // Rounded once. Without an instruction for it, in f64: the product is exact there, and the sum is
  // a tie of f32 only where it is one exactly, for the product has 16 digits and the other term 24.
  llvm::Value* MulAdd(llvm::Value* x, llvm::Value* y, llvm::Value* z) {
    if (target_.has_fma) return b_.CreateIntrinsic(llvm::Intrinsic::fma, {floats_}, {x, y, z});
    llvm::Type* wide = Like(b_.getDoubleTy());
    llvm::Value* product = b_.CreateFMul(b_.CreateFPExt(x, wide), b_.CreateFPExt(y, wide));
    return b_.CreateFPTrunc(b_.CreateFAdd(product, b_.CreateFPExt(z, wide)), floats_);
  }

  llvm::IRBuilderBase& b_;
  llvm::Type* floats_;
  const TranscendentalTarget& target_;
};

llvm::Type* Halves(llvm::IRBuilderBase& b, unsigned lanes) {
  return llvm::FixedVectorType::get(b.getBFloatTy(), 2 * lanes);
}

}  // namespace

llvm::Value* EmitBf16Pair(llvm::IRBuilderBase& b, llvm::Value* low, llvm::Value* high,
                          const TranscendentalTarget& target) {
  const unsigned lanes = LanesOf(low);
  const llvm::Intrinsic::ID pair = PairOf(lanes);
  if (target.has_bf16 && pair != llvm::Intrinsic::not_intrinsic) {
    // All of one, then all of the other.
    llvm::Value* apart = b.CreateIntrinsic(pair, {}, {high, low});
    std::vector<int> order;
    for (unsigned lane = 0; lane < lanes; ++lane) {
      order.push_back(static_cast<int>(lane));
      order.push_back(static_cast<int>(lanes + lane));
    }
    return b.CreateBitCast(b.CreateShuffleVector(apart, order),
                           llvm::FixedVectorType::get(b.getInt32Ty(), lanes));
  }
  Bf16Emitter emitter(b, low->getType(), target);
  llvm::Value* upper = b.CreateShl(emitter.Round(high), emitter.Int(16));
  return b.CreateOr(emitter.Round(low), upper);
}

llvm::Value* EmitBf16Dot(llvm::IRBuilderBase& b, llvm::Value* sum, llvm::Value* x, llvm::Value* y,
                         const TranscendentalTarget& target) {
  const unsigned lanes = LanesOf(sum);
  const llvm::Intrinsic::ID dot = DotOf(lanes);
  if (target.has_bf16 && dot != llvm::Intrinsic::not_intrinsic) {
    llvm::Type* halves = Halves(b, lanes);
    return b.CreateIntrinsic(dot, {},
                             {sum, b.CreateBitCast(x, halves), b.CreateBitCast(y, halves)});
  }
  return Bf16Emitter(b, sum->getType(), target).Dot(sum, x, y);
}

llvm::Value* EmitBf16LowMulAdd(llvm::IRBuilderBase& b, llvm::Value* sum, llvm::Value* x,
                               llvm::Value* y, const TranscendentalTarget& target) {
  return Bf16Emitter(b, sum->getType(), target).AddLow(sum, x, y);
}

llvm::Value* EmitBf16HighMulAdd(llvm::IRBuilderBase& b, llvm::Value* sum, llvm::Value* x,
                                llvm::Value* y, const TranscendentalTarget& target) {
  return Bf16Emitter(b, sum->getType(), target).AddHigh(sum, x, y);
}

llvm::Value* EmitBf16Sum(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y,
                         const TranscendentalTarget& target) {
  return Bf16Emitter(b, x->getType(), target).Sum(x, y);
}

}  // namespace l3c::llvm_backend
