#include "egraph/text/suggest.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace l3c::egraph {
namespace {

// Longer names are not compared: they come from generators, not from typing.
constexpr size_t kMaxCompared = 80;

// The edit distance, or something above `limit` where it is above.
size_t Distance(std::string_view a, std::string_view b, size_t limit) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    size_t least = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
      least = std::min(least, row[j]);
    }
    if (least > limit) return least;
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

Suggestion::Suggestion(std::string_view wanted)
    : wanted_(wanted),
      limit_(wanted.size() > kMaxCompared ? 0 : std::max<size_t>(1, wanted.size() / 3)) {}

void Suggestion::Offer(std::string_view candidate) {
  const size_t longer = std::max(candidate.size(), wanted_.size());
  const size_t shorter = std::min(candidate.size(), wanted_.size());
  if (limit_ == 0 || candidate.empty() || longer - shorter > limit_) return;
  const size_t distance = Distance(wanted_, candidate, limit_);
  // A name of one letter is close to all others of one letter.
  if (distance > limit_ || distance >= longer) return;
  if (distance == limit_ && !best_.empty() && best_ <= candidate) return;
  limit_ = distance;
  best_ = candidate;
}

std::string Suggestion::Text() const {
  return best_.empty() ? "" : "; did you mean '" + best_ + "'?";
}

}  // namespace l3c::egraph
