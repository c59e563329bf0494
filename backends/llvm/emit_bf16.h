// Pairs of bfloat16 and their products (layers/tensor/bf16.h), as instructions of AVX-512 BF16
// where the target has them, else op by op to the same bits.
//
// A value is a scalar or a vector; a pair is an i32.
#pragma once

#include "backends/llvm/transcendental.h"

namespace l3c::llvm_backend {

// Two floats, the first in the low half.
llvm::Value* EmitBf16Pair(llvm::IRBuilderBase& builder, llvm::Value* low, llvm::Value* high,
                          const TranscendentalTarget& target);
// sum + high·high, rounded, + low·low, rounded.
llvm::Value* EmitBf16Dot(llvm::IRBuilderBase& builder, llvm::Value* sum, llvm::Value* a,
                         llvm::Value* b, const TranscendentalTarget& target);

// The steps of a tile product (Bf16TileSum), each rounded: sum + low·low or high·high, and x + y.
llvm::Value* EmitBf16LowMulAdd(llvm::IRBuilderBase& builder, llvm::Value* sum, llvm::Value* a,
                               llvm::Value* b, const TranscendentalTarget& target);
llvm::Value* EmitBf16HighMulAdd(llvm::IRBuilderBase& builder, llvm::Value* sum, llvm::Value* a,
                                llvm::Value* b, const TranscendentalTarget& target);
llvm::Value* EmitBf16Sum(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Value* y,
                         const TranscendentalTarget& target);

}  // namespace l3c::llvm_backend
