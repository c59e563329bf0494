#include "backends/llvm/transcendental.h"

#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace l3c::llvm_backend {
namespace {

using llvm::Intrinsic::ID;

// (2^f - 1) / f on [-1/2, 1/2].
constexpr std::array<double, 6> kExp2 = {6.931471825e-01, 2.402264774e-01, 5.550332367e-02,
                                         9.618436918e-03, 1.339887502e-03, 1.535336196e-04};
// log2(1 + t) / t on [√½ - 1, √2 - 1].
constexpr std::array<double, 10> kLog2 = {
    1.442695022e+00,  -7.213473320e-01, 4.808982313e-01,  -3.606966436e-01, 2.885673940e-01,
    -2.396174073e-01, 2.046006322e-01,  -1.910627782e-01, 1.861748844e-01,  -1.099494100e-01};
// (sin(r) / r - 1) / r² in r², on [0, π²/4].
constexpr std::array<double, 7> kSin = {-1.66666666666655527e-01, 8.33333333323540287e-03,
                                        -1.98412698130338475e-04, 2.75573152814785442e-06,
                                        -2.50518057548498874e-08, 1.60459772639148790e-10,
                                        -7.34931213108858117e-13};

class Emitter {
 public:
  Emitter(llvm::IRBuilderBase& builder, llvm::Value* x, const TranscendentalTarget& target)
      : b_(builder), type_(x->getType()), target_(target) {}

  llvm::Value* Number(double value) const { return Number(value, type_); }
  static llvm::Value* Number(double value, llvm::Type* type) {
    return llvm::ConstantFP::get(type, value);
  }
  llvm::Type* IntType() const { return Like(b_.getInt32Ty()); }
  llvm::Type* DoubleType() const { return Like(b_.getDoubleTy()); }
  llvm::Value* Int(uint32_t value) const { return llvm::ConstantInt::get(IntType(), value); }
  llvm::Value* Bits(llvm::Value* x) { return b_.CreateBitCast(x, IntType()); }
  llvm::Value* FromBits(llvm::Value* x) { return b_.CreateBitCast(x, type_); }

  llvm::Value* MulAdd(llvm::Value* x, llvm::Value* y, llvm::Value* z) {
    if (!target_.has_fma) return b_.CreateFAdd(b_.CreateFMul(x, y), z);
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
  }

  // Horner's rule, highest coefficient last in `coefficients`.
  llvm::Value* Polynomial(llvm::Value* x, std::span<const double> coefficients) {
    llvm::Value* sum = Number(coefficients.back(), x->getType());
    for (size_t i = coefficients.size() - 1; i-- > 0;) {
      sum = MulAdd(sum, x, Number(coefficients[i], x->getType()));
    }
    return sum;
  }

  llvm::Value* Exp2(llvm::Value* x) {
    // The comparisons are false for NaN, which therefore passes through.
    llvm::Value* clamped = b_.CreateSelect(b_.CreateFCmpOLT(Number(129), x), Number(129), x);
    clamped = b_.CreateSelect(b_.CreateFCmpOGT(Number(-151), clamped), Number(-151), clamped);
    // Adding 1.5·2^23 rounds to an integer, which then stands in the low bits.
    llvm::Value* const magic = Number(12582912.0);
    llvm::Value* shifted = b_.CreateFAdd(clamped, magic);
    llvm::Value* n = b_.CreateFSub(shifted, magic);
    llvm::Value* f = b_.CreateFSub(clamped, n);
    llvm::Value* p = MulAdd(Polynomial(f, kExp2), f, Number(1));
    // What rounds to zero is scaled from zero: many a processor takes a hundred times as long for a
    // result that underflows, and masked scores are all of that kind.
    p = b_.CreateSelect(b_.CreateFCmpUGT(clamped, Number(-150)), p, Number(0));
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type_);
    if (target_.has_scalef && vector != nullptr && vector->getNumElements() == 16) {
      constexpr int kRoundToNearest = 4;  // as the control register says
      return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                                {p, n, p, b_.getInt16(0xffff), b_.getInt32(kRoundToNearest)});
    }
    llvm::Value* power = b_.CreateSub(Bits(shifted), Bits(magic));
    llvm::Value* half = b_.CreateAShr(power, Int(1));
    llvm::Value* rest = b_.CreateSub(power, half);
    return b_.CreateFMul(b_.CreateFMul(p, PowerOfTwo(half)), PowerOfTwo(rest));
  }

  llvm::Value* Log2(llvm::Value* x) {
    llvm::Value* small = b_.CreateFCmpOLT(x, Number(0x1p-126));
    llvm::Value* scaled = b_.CreateSelect(small, b_.CreateFMul(x, Number(0x1p23)), x);
    llvm::Value* bits = Bits(scaled);
    constexpr uint32_t kSqrtHalf = 0x3f3504f3;
    llvm::Value* exponent = b_.CreateAShr(b_.CreateSub(bits, Int(kSqrtHalf)), Int(23));
    llvm::Value* m = FromBits(b_.CreateSub(bits, b_.CreateShl(exponent, Int(23))));
    llvm::Value* e = b_.CreateSIToFP(exponent, type_);
    e = b_.CreateSelect(small, b_.CreateFSub(e, Number(23)), e);
    llvm::Value* t = b_.CreateFSub(m, Number(1));
    llvm::Value* result = MulAdd(Polynomial(t, kLog2), t, e);
    const double infinity = std::numeric_limits<double>::infinity();
    // Not (0 < x < inf): inf and NaN stay, zero gives -inf, the rest NaN.
    llvm::Value* other = b_.CreateSelect(b_.CreateFCmpOLT(x, Number(0)),
                                         Number(std::numeric_limits<double>::quiet_NaN()), x);
    other = b_.CreateSelect(b_.CreateFCmpOEQ(x, Number(0)), Number(-infinity), other);
    llvm::Value* ordinary =
        b_.CreateAnd(b_.CreateFCmpOGT(x, Number(0)), b_.CreateFCmpOLT(x, Number(infinity)));
    return b_.CreateSelect(ordinary, result, other);
  }

  llvm::Value* Sin(llvm::Value* x) {
    llvm::Type* wide = DoubleType();
    llvm::Value* d = b_.CreateFPExt(x, wide);
    // 1.5·2^52: the integer nearest to x/π stands in the low bits.
    llvm::Value* const magic = Number(6755399441055744.0, wide);
    llvm::Value* shifted =
        b_.CreateFAdd(b_.CreateFMul(d, Number(0.31830988618379067154, wide)), magic);
    llvm::Value* n = b_.CreateFSub(shifted, magic);
    // π in parts of 24 and 53 bits: n·high is exact for |n| < 2^29.
    constexpr double kPiHigh = 3.1415927410125732;
    constexpr double kPiLow = -8.742278000372485e-08;
    llvm::Value* r = b_.CreateFSub(d, b_.CreateFMul(n, Number(kPiHigh, wide)));
    r = b_.CreateFSub(r, b_.CreateFMul(n, Number(kPiLow, wide)));
    llvm::Value* z = b_.CreateFMul(r, r);
    llvm::Value* p = b_.CreateFMul(Polynomial(z, kSin), z);
    llvm::Value* sine = MulAdd(p, r, r);
    // sin(r + n·π) = (-1)^n sin(r)
    llvm::Type* bits_type = Like(b_.getInt64Ty());
    llvm::Value* sign =
        b_.CreateShl(b_.CreateBitCast(shifted, bits_type), llvm::ConstantInt::get(bits_type, 63));
    sine = b_.CreateBitCast(b_.CreateXor(b_.CreateBitCast(sine, bits_type), sign), wide);
    llvm::Value* fast = b_.CreateFPTrunc(sine, type_);
    // -0 has lost its sign in x - 0·π.
    fast = b_.CreateSelect(b_.CreateFCmpOEQ(x, Number(0)), x, fast);

    llvm::Value* magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    llvm::Value* large = b_.CreateFCmpOGE(magnitude, Number(0x1p28));
    llvm::Value* any = type_->isVectorTy() ? b_.CreateOrReduce(large) : large;
    llvm::Function* function = b_.GetInsertBlock()->getParent();
    llvm::LLVMContext& context = b_.getContext();
    llvm::BasicBlock* entry = b_.GetInsertBlock();
    auto* slow = llvm::BasicBlock::Create(context, "sin.large", function);
    auto* done = llvm::BasicBlock::Create(context, "sin.done", function);
    b_.CreateCondBr(any, slow, done);
    b_.SetInsertPoint(slow);
    llvm::Value* exact = LargeSin(d, fast, large);
    slow = b_.GetInsertBlock();
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
    llvm::PHINode* result = b_.CreatePHI(type_, 2);
    result->addIncoming(fast, entry);
    result->addIncoming(exact, slow);
    return result;
  }

 private:
  llvm::Type* Like(llvm::Type* element) const {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type_);
    if (vector == nullptr) return element;
    return llvm::FixedVectorType::get(element, vector->getNumElements());
  }

  llvm::Value* PowerOfTwo(llvm::Value* n) {
    return FromBits(b_.CreateShl(b_.CreateAdd(n, Int(127)), Int(23)));
  }

  llvm::Value* LargeSin(llvm::Value* d, llvm::Value* fast, llvm::Value* large) {
    const auto sine = [&](llvm::Value* x) {
      llvm::Value* value = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sin, x);
      return b_.CreateFPTrunc(value, b_.getFloatTy());
    };
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type_);
    if (vector == nullptr) return b_.CreateSelect(large, sine(d), fast);
    llvm::Value* all = fast;
    for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
      all = b_.CreateInsertElement(all, sine(b_.CreateExtractElement(d, lane)), lane);
    }
    return b_.CreateSelect(large, all, fast);
  }

  llvm::IRBuilderBase& b_;
  llvm::Type* type_;
  const TranscendentalTarget target_;
};

}  // namespace

llvm::Value* EmitExp2(llvm::IRBuilderBase& builder, llvm::Value* x,
                      const TranscendentalTarget& target) {
  return Emitter(builder, x, target).Exp2(x);
}

llvm::Value* EmitLog2(llvm::IRBuilderBase& builder, llvm::Value* x,
                      const TranscendentalTarget& target) {
  return Emitter(builder, x, target).Log2(x);
}

llvm::Value* EmitSin(llvm::IRBuilderBase& builder, llvm::Value* x,
                     const TranscendentalTarget& target) {
  return Emitter(builder, x, target).Sin(x);
}

}  // namespace l3c::llvm_backend
