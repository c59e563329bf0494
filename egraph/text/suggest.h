// The name that was probably meant.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace l3c::egraph {

// Collects the names that could have stood in the place of `wanted` and keeps the closest by edit
// distance (insertions, deletions, substitutions, swaps of neighbours), of equally close ones the
// first in alphabetical order. Names that differ in more than a third are not close.
class Suggestion {
 public:
  explicit Suggestion(std::string_view wanted);

  void Offer(std::string_view candidate);
  // "; did you mean 'NAME'?", or nothing.
  std::string Text() const;

 private:
  std::string_view wanted_;
  size_t limit_;  // of the distance
  std::string best_;
};

}  // namespace l3c::egraph
