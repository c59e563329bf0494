// graph(nodes, edges): at every node of a graph, one network applied to the mean of the features of
// the node and its neighbours: H' = net(D⁻¹(A + I)H) (Kipf, Welling 2017, with the random-walk
// normalisation). The sample is [nodes, features]. The edges are those of a chain, a ring or a
// complete graph, or a list of pairs [[0, 1], …] without directions.
#include "layers/l2/infer_methods.h"

namespace l3c::l2 {

InferEntry GraphMethod() {
  InferEntry graph;
  graph.form = {"graph",
                {Arg::Edges("edges", {"chain", "ring", "full"})},
                "a network at every node of a graph, applied to the mean over its neighbourhood"};
  graph.parts = {{"nodes", false}};
  graph.lower = [](InferLowering& to, InferForm& call, uint32_t input) {
    const uint32_t mean =
        to.Join("neighbourhood", {{"edges", call.written[0].args[0]}}, {input}, call.span);
    return to.Lower(call.items[0], mean);
  };
  return graph;
}

}  // namespace l3c::l2
