// Random extraction problems on bare graphs, with cycles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "egraph/extract/plain.h"

namespace l3c::egraph {

struct Instance {
  PlainNodeGraph graph;
  std::vector<double> prices;
  std::vector<ClassRef> roots{ClassRef{0}};
};

struct InstanceShape {
  uint32_t classes = 8;
  uint32_t max_nodes = 3;     // of a class; at least one
  uint32_t max_children = 3;  // of an e-node
  // Children lie mostly below their class, so that there are terms; one in so many anywhere, so
  // that there are cycles.
  uint32_t up_one_in = 4;
  uint32_t reach = std::numeric_limits<uint32_t>::max();  // how far below a child lies, at most
  uint32_t second_root_one_in = 0;                        // 0: never
  std::function<double(uint32_t)> price;                  // from a random number
};

inline Instance RandomInstance(uint32_t seed, const InstanceShape& shape) {
  std::mt19937 random(seed);
  Instance instance;
  for (uint32_t c = 0; c < shape.classes; ++c) {
    instance.graph.AddClass();
    const uint32_t below = std::min(shape.classes - c - 1, shape.reach);
    for (uint32_t i = 0, count = 1 + random() % shape.max_nodes; i < count; ++i) {
      std::vector<ClassRef> children;
      for (uint32_t k = random() % (shape.max_children + 1); k > 0; --k) {
        const bool up = random() % shape.up_one_in == 0;
        if (!up && below == 0) continue;
        children.push_back(ClassRef{
            static_cast<uint32_t>(up ? random() % shape.classes : c + 1 + random() % below)});
      }
      instance.graph.AddNode(children);
      instance.prices.push_back(shape.price(static_cast<uint32_t>(random())));
    }
  }
  if (shape.second_root_one_in != 0 && random() % shape.second_root_one_in == 0) {
    instance.roots.push_back(ClassRef{shape.classes / 2});
  }
  return instance;
}

}  // namespace l3c::egraph
