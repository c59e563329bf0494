// Kernels of the kinds that plans are made of, over extents that no tile divides.
#pragma once

#include <string>
#include <vector>

#include "layers/l0/kernel.h"
#include "tests/layers/l0/kernel/parse_kernel.h"

namespace l3c::testing {

inline const std::vector<std::string>& ExampleKernels() {
  static const std::vector<std::string> kernels = {
      R"(kernel bias(x: in f32 [37, 70], b: in f32 [70], y: out f32 [37, 70]) {
    axis i : loop 37
    axis j : loop 70
    %0 = load x[70*i + j]
    %1 = load b[j]
    %2 = add %0, %1
    %3 = const f32 0
    %4 = max %2, %3
    store y[70*i + j], %4
})",
      // An update in place.
      R"(kernel step(w: inout f32 [530], m: inout f32 [530], g: in f32 [530]) {
    axis i : loop 530
    %0 = load w[i]
    %1 = load m[i]
    %2 = load g[i]
    %3 = const f32 0.9
    %4 = mul %1, %3
    %5 = add %4, %2
    %6 = mul %5, %5
    %7 = sqrt %6
    %8 = const f32 0.5
    %9 = add %7, %8
    %10 = reciprocal %9
    %11 = mul %5, %10
    %12 = neg %11
    %13 = add %0, %12
    store w[i], %13
    store m[i], %5
})",
      // Padded in front and behind, and transposed.
      R"(kernel shift(x: in f32 [20, 9], y: out f32 [11, 20]) {
    axis i : loop 11
    axis j : loop 20
    %0 = load x[9*j + i - 1] if 0 <= i - 1 < 9
    store y[20*i + j], %0
})",
      R"(kernel embed(t: in f32 [50, 33], r: in i32 [21], y: out f32 [21, 33]) {
    axis i : loop 21
    axis j : loop 33
    %0 = load r[i]
    %1 = load t[33*%0 of 50 + j]
    store y[33*i + j], %1
})",
      R"(kernel softmax(x: in f32 [9, 301], y: out f32 [9, 301]) {
    axis i : loop 9
    axis j : loop 301
    axis k : reduce 301
    axis l : reduce 301
    %0 = load x[301*i + k]
    %1 = reduce_max %0 over k
    %2 = neg %1
    %3 = load x[301*i + l]
    %4 = add %3, %2
    %5 = exp2 %4
    %6 = reduce_add %5 over l
    %7 = reciprocal %6
    %8 = load x[301*i + j]
    %9 = add %8, %2
    %10 = exp2 %9
    %11 = mul %10, %7
    store y[301*i + j], %11
})",
      // Figures of a whole batch.
      R"(kernel total(x: in f32 [31, 17], s: out f32 []) {
    axis k : reduce 31
    axis l : reduce 17
    %0 = load x[17*k + l]
    %1 = mul %0, %0
    %2 = reduce_add %1 over k, l
    store s[0], %2
})",
      R"(kernel columns(x: in f32 [31, 70], s: out f32 [70]) {
    axis j : loop 70
    axis k : reduce 31
    %0 = load x[70*k + j]
    %1 = reduce_add %0 over k
    store s[j], %1
})",
      R"(kernel dense(x: in f32 [19, 45], w: in f32 [45, 70], b: in f32 [70], y: out f32 [19, 70]) {
    axis i : loop 19
    axis j : loop 70
    axis k : reduce 45
    %0 = load x[45*i + k]
    %1 = load w[70*k + j]
    %2 = mul %0, %1
    %3 = reduce_add %2 over k
    %4 = load b[j]
    %5 = add %3, %4
    store y[70*i + j], %5
})",
      // Rows that are added up wherever their numbers say, in their order.
      R"(kernel scatter(g: in f32 [21, 33], r: in i32 [21], t: inout f32 [50, 33]) {
    axis j : loop 33
    axis i : loop 21
    %0 = load r[i]
    %1 = load g[33*i + j]
    store t[33*%0 of 50 + j] += %1
})",
      R"(kernel mask(k: in u64 [], y: out f32 [501]) {
    axis i : loop 501
    %0 = load k[0]
    %1 = range i
    %2 = philox %0, %1
    store y[i], %2
})",
  };
  return kernels;
}

}  // namespace l3c::testing
