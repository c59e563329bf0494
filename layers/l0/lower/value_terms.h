// The tensor algebra as terms of an e-graph, both ways.
//
//   Val terms: (Input name) (Number x dtype) (Iota shape axis dtype) (Random key shape)
//              (Add a b) … (Where c a b) (Cast a dtype) (Bitcast a dtype)
//              (Bf16Pair a b) (Sum a axes) (Maximum a axes) (Matmul a b) (Bf16Matmul a b)
//              (Reshape a shape) (Permute a order) (Expand a shape) (Pad a pairs) (Slice a triples)
//              (Flip a axes) (Gather x index) (ScatterAdd index updates shape)
//   lists of integers are strings, "128,256"
//   facts:     (shape v) → string, (dtype v) → string
//   primitives, for premises and for what rules make (none where an argument is no such list):
//     (compose-orders p q)   the permutation that p, then q amount to
//     (identity-order p)     whether it moves nothing
//     (sum-pads p q)         the padding that p inside of q amounts to
//     (half s axis i)        the slice of the i-th half of an axis of s; of an even extent
//     (slice-before p l)     the slice of what permutation p turns into slice l
//     (inner-axes s axes)    all axes of s but the outermost; only where `axes` are all of them
//     (row-axis s axes) (but-row-axis s axes)   the last axis of s, and `axes` without it; only where it
//                            is one of several of them, and they are not all
//     (part-shape s axes)    s with the longest of `axes` cut in two, of which the outer has at most 16
//     (part-inner s axes)    iterations; all of them but that one; and where it stands when they are
//     (part-outer s axes)    gone. Only where nothing but the last axis is kept
//     (product-parts m k n)  how many parts of the sum of an m×k by k×n product stay near a core each;
//                            2 to 64 of the same length, or none
//     (rank s) (extent s i) (elements s)   of a shape; axis −1 is the last
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "egraph/egraph.h"
#include "layers/tensor/graph.h"

namespace l3c::l0::lower {

// What stands after the operands of a term.
enum class TermTail : uint8_t { kNone, kInts, kDType, kNumber, kIota, kName };

// How an op is spelled as a constructor of Val.
struct TermForm {
  tensor::Op op;
  const char* name;
  int operands;
  TermTail tail;
};
std::span<const TermForm> TermForms();
const TermForm& FormOf(tensor::Op primitive);
const TermForm* FindForm(std::string_view name);  // nullptr: no constructor of Val

// Declares the sort Val, its constructors, facts and primitives, and the ruleset `algebra`.
void DeclareValues(egraph::EGraph& graph);

// Adds the terms of a graph of primitives, with their facts, and gives the class of every node.
// `fold`: an op over constants becomes a constant where its result is the same on every machine.
std::vector<egraph::Value> EncodeGraph(const tensor::Graph& source, egraph::EGraph& graph,
                                       bool fold);

// One e-node of Val.
struct Term {
  tensor::Op op = tensor::Op::kInput;
  tensor::Attributes attr;
  std::vector<egraph::Value> operands;  // classes
  std::string input;                    // kInput: its name
};
// Nothing, and why, where the literals of the row say nothing: a rule may write any string.
std::optional<Term> ReadTerm(const egraph::EGraph& graph, const TermForm& form,
                             const egraph::Row& row, std::string& error);

struct TensorType {
  tensor::DType dtype = tensor::DType::kF32;
  tensor::Shape shape;
  bool operator==(const TensorType&) const = default;
};
// By the op's own rule; nothing, and why, where it has none for such operands. Not for kInput.
std::optional<TensorType> TypeOfTerm(const Term& term, std::span<const TensorType> operands,
                                     std::string& error);

// Gives the facts `shape` and `dtype` to the classes that rules have made. False, and why, where
// what a rule made has no type or another one than the class it joined. `changed`: there were some.
bool InferTypes(egraph::EGraph& graph, bool& changed, std::string& error);

// "128,256" and back; nothing for what is no such list.
std::string JoinInts(const std::vector<int64_t>& ints);
std::optional<std::vector<int64_t>> SplitInts(std::string_view text);

}  // namespace l3c::l0::lower
