// Text → L3 module, with every reference resolved.
//
//   module   = { data | model | loss | goal }                 in any order; exactly one goal
//   data     = "data" NAME "{" { NAME ":" domain | "env" "(" STRING ")" } "}"
//   model    = "model" NAME "{" "in" ":" inputs  "out" ":" domain
//                               [ "properties" ":" "[" property {"," property} "]" ] "}"
//   inputs   = ref | "[" ref {"," ref} "]"
//   property = depth(n) | width(n) | causal | autoregressive | equivariant(group)
//            | param_budget(n) | latency_budget(time)        a plain number is milliseconds
//   loss     = "loss" NAME "{" { NAME ":" kind "(" args ")" ["," "weight" ":" real] }
//                              [ "combine" ":" "weighted_sum" ] "}"
//   kind     = divergence(predicted, target) | norm(target, p=x) | constraint(expr)
//            | reconstruction(input, decoded) | contrastive(anchor, positive, negative)
//            | custom(NAME | FILE, reads: [ref …] [, value: expr])
//   goal     = "goal" ":" aim
//   aim      = "minimize" "(" ref [, "models" ":" "[" NAME … "]"] ")" | "maximize" (the same)
//            | "pareto" "(" "[" ref … "]" ")" | "alternate" "(" "[" aim … "]" ")"
//   ref      = NAME ["." NAME] | NAME "(" ref {"," ref} ")"
//
// Arguments may be labelled (`target: x` or `target=x`). An escape hatch `#[layer::directive(…)]`
// may stand before a declaration or a line of one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "layers/l3/ir.h"
#include "layers/support/diagnostics.h"
#include "layers/support/parser.h"
#include "layers/support/source.h"

namespace l3c::l3 {

// A whole .l3 file. Nothing when anything was reported.
std::optional<Module> Parse(const support::SourceFile& source, support::Diagnostics& diagnostics);

// The declarations that another layer adds to a file of L3 declarations.
struct Extension {
  std::vector<std::string> keywords;  // the words that begin them, e.g. {"methods"}
  // At one of those words: parses the declaration, past its end. Returns false after it reported
  // an error; the parser then skips to the next declaration. The module holds what was declared so
  // far, unresolved.
  std::function<bool(support::ParserBase& parser, const Module& module)> parse;
};

// Parses declarations to the end of the text, then resolves every reference. The caller has checked
// the header. False when anything was reported.
bool ParseDeclarations(support::ParserBase& parser, Module& module,
                       const Extension& extension = {});

// Parses one reference to a field or a model's output; it is not resolved.
std::optional<Ref> ParseRef(support::ParserBase& parser);

}  // namespace l3c::l3
