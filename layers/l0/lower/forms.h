// Forms: ways to compute a whole construct, chosen for a step as one.
//
// A rule of the algebra that is named TOPIC/FORM ("convolution/im2col", and for the parts of the
// same form "convolution/im2col/weights") writes the definitions that belong to the form. One
// alone rarely pays: patches that are laid side by side for one product are there for all. So the
// search also tries a form everywhere at once, and everywhere without it, and `--explain` has one
// decision for it,
//
//   PREFIX/TOPIC/FORM            "everywhere", "nowhere"; "in part" where the search took it here
//                                and not there
//
// whose losers can be forced. What remains is decided value by value, as ever.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/extract/extract.h"
#include "layers/l0/lower/values.h"

namespace l3c::l0::lower {

struct ValueForm {
  std::string name;  // "convolution/im2col"
  std::vector<egraph::RuleId> rules;
  // Of the values that the form defines in another way than the program does: numbers of its
  // definitions, and of the others. Ascending.
  std::vector<int64_t> own;
  std::vector<int64_t> others;
};

// Those that the table has, in the order of their rules. `number` gives a definition's number.
std::vector<ValueForm> FindForms(const ValueTable& table, const egraph::EGraph& graph,
                                 const std::function<int64_t(ValueId, uint32_t)>& number);

// The definition that an e-node computes a value by; −1 where it does not.
int64_t DefinitionOf(const egraph::EGraphView& view, egraph::ENodeRef node);

// For every class that can be computed by one of the definitions: the cheapest such e-node.
std::vector<std::pair<egraph::ClassRef, egraph::ENodeRef>> NodesOf(
    const egraph::Extractor& extractor, const std::vector<int64_t>& definitions);

// "everywhere", "nowhere" or "in part".
std::string Extent(const ValueForm& form, const egraph::EGraphView& view,
                   const egraph::Extraction& extraction);

}  // namespace l3c::l0::lower
