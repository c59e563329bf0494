// A training graph cut into parts that each compute an equal share of a batch's rows.
//
//   cut      the batch's fields, cut into shares; and what depends on the batch alone but mixes its
//            rows (how many count), computed once from all of them
//   part     the graph on one share; what sums over the rows is then a part of the sum
//   reduce   adds the parts up, in their order, and computes what stands behind the sums
//
// No value changes but by the order of sums over rows: random numbers are cut from those of the
// whole batch. A graph whose rows mix on the way from the parameters to the gradients cannot be
// cut (a loss over pairs of samples).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layers/tensor/graph.h"

namespace l3c::l1 {

// A graph and the names of its inputs that are handed to it; the others are state.
struct SharedGraph {
  tensor::Graph graph;
  std::vector<std::string> args;
};

// Named for its text and without what no output needs: as a program that is read back has it.
SharedGraph FinishShared(tensor::Graph graph, std::vector<std::string> args);

// What is handed over goes by the names of outputs. A share of `x` for part 2 is `x_2`, and so is
// the part of a sum `x` that part 2 gives.
struct RowShares {
  SharedGraph cut;
  std::vector<SharedGraph> parts;
  // A sum over the rows, and the outputs of the parts that make it up.
  struct Sum {
    std::string name;
    std::vector<std::string> parts;
  };
  std::vector<Sum> sums;
  SharedGraph reduce;
  SharedGraph rest;  // of `reduce`, what stands behind the sums: they are its arguments
};

// The graph that adds up these sums.
SharedGraph AddUp(const RowShares& shares, const std::vector<RowShares::Sum>& sums);

// `args`: the inputs that have a row for each sample on their first axis, of `rows` samples.
// Nothing where the graph cannot be cut into so many parts, and then `*why` says why.
std::optional<RowShares> ShareRows(const tensor::Graph& graph, const std::vector<std::string>& args,
                                   int64_t rows, int64_t parts, std::string* why);

}  // namespace l3c::l1
