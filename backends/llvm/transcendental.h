// EXP2, LOG2 and SIN of f32 scalars and vectors as inline arithmetic.
//
// Each is the same sequence of IEEE operations for every number of lanes, so a value does not
// depend on the schedule. Largest error against the exact value, measured by tests/backends/llvm:
// exp2 1 ulp, log2 2 ulp, sin 1 ulp.
//   exp2  x = n + f, |f| <= 1/2; 2^f by a polynomial of degree 6; 2^n by two exact factors, so that
//         the one rounding into the denormals is the last. Overflows to inf from 128, to 0 below
//         -150.
//   log2  x = 2^e·m, m in [√½, √2); log2(m) = t·p(t), t = m - 1, p of degree 9. Denormals are
//   scaled
//         first; ±0 → -inf, x < 0 → NaN.
//   sin   x - n·π in f64 with π in two parts, odd polynomial of degree 15; from |x| >= 2^28 on (and
//         for inf) libm's f64 sine, lane by lane.
// The polynomials are minimax fits (weighted least squares on Chebyshev nodes, reweighted until the
// error levels out), relative error below 1/16 ulp of f32.
#pragma once

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace l3c::llvm_backend {

// `has_fma`: multiply-adds are one instruction. `has_scalef`: AVX-512's scaling by a power of two,
// used for 16 lanes; its result is the same. `has_bf16`: AVX-512 BF16 (emit_bf16.h). `has_tiles`:
// AMX of bfloat16 (emit_tiles.h).
struct TranscendentalTarget {
  bool has_fma = true;
  bool has_scalef = false;
  bool has_bf16 = false;
  bool has_tiles = false;
};

llvm::Value* EmitExp2(llvm::IRBuilderBase& builder, llvm::Value* x,
                      const TranscendentalTarget& target);
llvm::Value* EmitLog2(llvm::IRBuilderBase& builder, llvm::Value* x,
                      const TranscendentalTarget& target);
// May append basic blocks; the builder is left where the value is available.
llvm::Value* EmitSin(llvm::IRBuilderBase& builder, llvm::Value* x,
                     const TranscendentalTarget& target);

}  // namespace l3c::llvm_backend
