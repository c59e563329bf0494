// Domains: what a value of the program can be. One example, without a batch axis.
//
//   tensor(dtype, shape)       fixed shape
//   sequence(domain, max_len)  variable length, bounded
//   table(col: domain, ...)    named columns
//   dist(n)                    probability distribution over n classes
//   scalar(dtype)              single value
//
// Shared by L3's data and models, L2's shapes and L1's bound data and actor state.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "layers/support/diagnostics.h"
#include "layers/support/parser.h"
#include "layers/tensor/dtype.h"

namespace l3c::l3 {

// The least that a parser takes for an extent or a count: the verifier says what is wrong with it.
inline constexpr int64_t kAnyInteger = std::numeric_limits<int64_t>::min() + 1;

struct Domain {
  enum class Kind : uint8_t { kTensor, kSequence, kTable, kDist, kScalar };

  Kind kind = Kind::kScalar;
  tensor::DType dtype = tensor::DType::kF32;  // tensor, scalar
  tensor::Shape shape;                        // tensor
  int64_t size = 0;                           // sequence: its bound; dist: number of classes
  std::vector<Domain> parts;                  // sequence: its element; table: a column each
  std::vector<std::string> columns;           // table: the names of `parts`

  static Domain Tensor(tensor::DType dtype, tensor::Shape shape);
  static Domain Sequence(Domain element, int64_t max_len);
  static Domain Table(std::vector<std::string> columns, std::vector<Domain> parts);
  static Domain Dist(int64_t classes);
  static Domain Scalar(tensor::DType dtype);

  bool operator==(const Domain&) const = default;
};

// Bounds that VerifyDomain holds a domain to, so that sizes derived from it cannot overflow.
inline constexpr int64_t kMaxDomainElements = int64_t{1} << 32;
inline constexpr int kMaxDomainDepth = 8;  // sequences and tables inside one another
inline constexpr size_t kMaxColumns = 4096;

// How one example lies in a tensor, padded to its bound:
//   tensor: its shape   dist(n): [n]   scalar: []   sequence: [max_len] + element   table: [k],
//   the k elements of its columns side by side.
tensor::Shape ExampleShape(const Domain& domain);
// The dtype of that tensor: dist is f32; a table is its columns' dtype where they agree, else f32.
tensor::DType ExampleDType(const Domain& domain);
// Elements of ExampleShape. The domain must have passed VerifyDomain.
int64_t NumElements(const Domain& domain);

// At a domain's keyword. Syntax only: extents may still be zero, negative or absurd.
std::optional<Domain> ParseDomain(support::ParserBase& parser);
// "tensor(f32, [28, 28])"
std::string PrintDomain(const Domain& domain);

// Extents positive, ranks, sizes and depth within bounds, column names unique; reports at `span`.
// `what` names the thing ("field 'images'").
bool VerifyDomain(const Domain& domain, const std::string& what, support::Span span,
                  support::Diagnostics& diagnostics);

}  // namespace l3c::l3
