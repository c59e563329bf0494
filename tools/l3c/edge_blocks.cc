#include "tools/l3c/edge_blocks.h"

#include <cstddef>

namespace l3c::tools {

std::vector<int64_t> EdgeBlocks(const l0::Kernel& kernel) {
  std::vector<int64_t> edges = {0};
  int64_t stride = 1;
  for (size_t a = kernel.axes.size(); a-- > 0;) {
    const l0::Axis& axis = kernel.axes[a];
    if (axis.kind != l0::AxisKind::kGrid) continue;
    const int64_t blocks = (axis.extent + axis.block - 1) / axis.block;
    const size_t before = edges.size();
    for (size_t e = 0; blocks > 1 && e < before; ++e) {
      edges.push_back(edges[e] + (blocks - 1) * stride);
    }
    stride *= blocks;
  }
  return edges;
}

}  // namespace l3c::tools
