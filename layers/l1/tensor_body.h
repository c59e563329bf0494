// The body of a tensor graph or of an actor's handler: `let` bindings over tensor ops, then
// `return (…)` or assignments to the state.
//
//   let h  = tensor_matmul(x, w)
//   let lr = 3e-4                              // an f32 constant
//   let y  = tensor_add(h, tensor_broadcast(b, [128, 256]))
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/l1/ir.h"
#include "layers/support/escape_hatch.h"
#include "layers/support/parser.h"
#include "layers/tensor/graph.h"
#include "layers/tensor/text.h"

namespace l3c::l1 {

class TensorBody : public support::ParserBase {
 public:
  // `graph` has its inputs and receives the body. `body` is what stands between the braces.
  TensorBody(const support::SourceFile& source, support::Diagnostics& diagnostics, Span body,
             tensor::Graph& graph);

  // Reports what is wrong and goes on with the next statement where it can.
  void ParseCompute(const std::vector<support::Name>& outputs,
                    std::vector<std::pair<std::string, support::EscapeHatch>>& kernels);
  void ParseHandler(const Actor& actor);
  // One expression, to its end.
  std::optional<tensor::NodeId> ParseValue();

 private:
  bool ParseLet();
  bool ParseKernelOfLet(std::vector<std::pair<std::string, support::EscapeHatch>>& kernels);
  bool ParseReturn(const std::vector<support::Name>& outputs);
  bool ParseAssignment(const Actor& actor);
  // `name` goes to the node of the outermost application.
  std::optional<tensor::NodeId> ParseExpression(const std::string& name);
  std::optional<tensor::NodeId> ParseApplication(const std::string& name);
  std::optional<tensor::Argument> ParseArgument();
  std::optional<tensor::NodeId> ResolveName(const support::Name& name);
  // A name for an expression that has none of its own, or "" when it is taken.
  std::string IfFree(const std::string& name) const;

  tensor::Graph& graph_;
  std::set<std::string> lets_;    // every name that the body binds, here or later
  std::set<std::string> failed_;  // of these, whose binding was reported: uses say nothing more
  std::string binding_;           // the name of the let at hand
  std::map<std::string, Span> assigned_;
};

// The annotation with the file that its arguments begin with, if any, as an absolute path.
support::EscapeHatch WithAbsolutePath(support::EscapeHatch hatch, const std::string& folder);

// Spellings of the dtypes, for "did you mean".
std::vector<std::string> DTypeNames();

}  // namespace l3c::l1
