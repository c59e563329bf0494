// Escape hatches: `#[l2::backward(evolution(pop: 50))]`, written before or inside a declaration.
//
// The layer that reads one keeps it, unopened, under the path of what it annotates; the layer that
// it names parses the arguments (from `args_span`, so that errors point into the annotation) and
// verifies them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "layers/support/parser.h"
#include "layers/support/source.h"

namespace l3c::support {

struct EscapeHatch {
  std::string layer;      // "l2", "l1", "l0"
  std::string directive;  // "backward", "on", "kernel"
  bool has_args = false;
  std::string args;  // canonical spelling of what stands between the parentheses
  Span span;         // the whole annotation
  Span args_span;    // between the parentheses
};

// Path ("classify", "classify.infer.3") → annotations in the order written.
using Hints = std::map<std::string, std::vector<EscapeHatch>>;

inline bool AtEscapeHatch(ParserBase& parser) { return parser.At("#["); }
// At `#[`: parses one annotation; only layers below `above` ("l3" allows l2, l1, l0) are accepted.
std::optional<EscapeHatch> ParseEscapeHatch(ParserBase& parser, std::string_view above);
std::string PrintEscapeHatch(const EscapeHatch& hatch);

// The tokens of `text` (a piece of any layer's language) in canonical spacing.
std::string CanonicalSpacing(std::string_view text);

}  // namespace l3c::support
