#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "layers/support/diagnostics.h"

namespace l3c::support {
namespace {

// Edit distance with swaps of neighbours (optimal string alignment), or `limit + 1` once it is
// certain to exceed `limit`.
size_t EditDistance(std::string_view a, std::string_view b, size_t limit) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    if (*std::min_element(row.begin(), row.end()) > limit) return limit + 1;
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string LowerCase(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace

std::string ClosestMatch(std::string_view word, const std::vector<std::string>& candidates) {
  // A name this long is no slip of the finger, and the table of distances is quadratic.
  constexpr size_t kMaxWord = 64;
  if (word.empty() || word.size() > kMaxWord) return "";
  const std::string wanted = LowerCase(word);
  const size_t limit = std::max<size_t>(1, word.size() / 3);
  std::string best;
  size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const size_t length = candidate.size();
    if (length > word.size() + limit || length + limit < word.size()) continue;
    const size_t distance = EditDistance(wanted, LowerCase(candidate), limit);
    // One letter in place of another is no resemblance.
    if (distance >= std::max(length, word.size())) continue;
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace l3c::support
