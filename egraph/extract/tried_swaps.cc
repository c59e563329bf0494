#include "egraph/extract/tried_swaps.h"

#include <algorithm>
#include <bit>

namespace l3c::egraph {

void TriedSwaps::Reset(std::span<const uint8_t> worth) {
  const size_t classes = choice_.size();
  const size_t words = (worth.size() + 63) / 64;
  worth_.assign(words, 0);
  for (size_t n = 0; n < worth.size(); ++n) {
    if (worth[n]) worth_[n / 64] |= uint64_t{1} << (n % 64);
  }
  open_ = worth_;
  trial_open_.assign(words, 0);
  base_choice_ = choice_;
  base_uses_ = uses_;
  most_least_.assign(classes, 0);
  exact_.assign(classes, kNone);
  at_least_.assign(classes, kNone);
  links_.clear();
  free_ = kNone;
  moved_.clear();
  stamp_.assign(classes, 0);
  fewest_.assign(classes, 0);
  pass_ = 0;
  ++base_;
  in_trial_ = false;
}

void TriedSwaps::BeginTrial() { in_trial_ = true; }

void TriedSwaps::EndTrial() {
  in_trial_ = false;
  moved_.clear();
  std::fill(trial_open_.begin(), trial_open_.end(), 0);
}

void TriedSwaps::KeepTrial() {
  for (size_t w = 0; w < open_.size(); ++w) open_[w] |= trial_open_[w];
  for (const uint32_t c : moved_) Rebase(c);
  ++base_;
  EndTrial();
}

uint32_t TriedSwaps::Next(uint32_t n) const {
  const size_t words = open_.size();
  size_t w = n / 64;
  if (w >= words) return static_cast<uint32_t>(words * 64);
  uint64_t bits = (open_[w] | trial_open_[w]) & (~uint64_t{0} << (n % 64));
  while (bits == 0) {
    if (++w == words) return static_cast<uint32_t>(words * 64);
    bits = open_[w] | trial_open_[w];
  }
  return static_cast<uint32_t>(w * 64 + static_cast<size_t>(std::countr_zero(bits)));
}

void TriedSwaps::InVain(uint32_t n, uint32_t c, std::span<const Touch> touched) {
  ++pass_;
  seen_.clear();
  for (const Touch& touch : touched) {
    if (stamp_[touch.c] != pass_) {
      stamp_[touch.c] = pass_;
      fewest_[touch.c] = touch.uses;
      seen_.push_back(touch.c);
    } else {
      fewest_[touch.c] = std::min(fewest_[touch.c], touch.uses);
    }
  }
  for (const uint32_t t : seen_) {
    const uint32_t fewest = std::min(fewest_[t], uses_[t]);
    if (fewest == 0) {
      Add(exact_[t], n, 0);
    } else {
      // With so many uses it is left with one.
      const uint32_t least = uses_[t] - fewest + 1;
      Add(at_least_[t], n, least);
      most_least_[t] = std::max(most_least_[t], least);
    }
  }
  if (stamp_[c] != pass_ || std::min(fewest_[c], uses_[c]) != 0) Add(exact_[c], n, 0);
  open_[n / 64] &= ~(uint64_t{1} << (n % 64));
}

void TriedSwaps::Moved(std::span<const Touch> touched) {
  ++pass_;
  std::vector<uint64_t>& open = in_trial_ ? trial_open_ : open_;
  for (const Touch& touch : touched) {
    const uint32_t c = touch.c;
    if (stamp_[c] == pass_) continue;
    stamp_[c] = pass_;
    if (uses_[c] == base_uses_[c] && choice_[c] == base_choice_[c]) continue;
    Mark(exact_[c], kNone, open);
    if (uses_[c] < most_least_[c]) Mark(at_least_[c], uses_[c], open);
    if (in_trial_) {
      moved_.push_back(c);
    } else {
      Rebase(c);
    }
  }
  if (!in_trial_) ++base_;
}

void TriedSwaps::Add(uint32_t& list, uint32_t n, uint32_t least) {
  uint32_t link = free_;
  if (link == kNone) {
    link = static_cast<uint32_t>(links_.size());
    links_.emplace_back();
  } else {
    free_ = links_[link].next;
  }
  links_[link] = {n, least, list};
  list = link;
}

void TriedSwaps::Mark(uint32_t list, uint32_t uses, std::vector<uint64_t>& open) const {
  for (; list != kNone; list = links_[list].next) {
    const Link& link = links_[list];
    if (uses != kNone && uses >= link.least) continue;
    open[link.node / 64] |= uint64_t{1} << (link.node % 64);
  }
}

void TriedSwaps::Free(uint32_t& list, uint32_t uses) {
  uint32_t* at = &list;
  while (*at != kNone) {
    const uint32_t link = *at;
    if (uses != kNone && uses >= links_[link].least) {
      at = &links_[link].next;
      continue;
    }
    *at = links_[link].next;
    links_[link].next = free_;
    free_ = link;
  }
}

// What depended on the class as it was is to be tried again, so it depends on nothing.
void TriedSwaps::Rebase(uint32_t c) {
  if (uses_[c] == base_uses_[c] && choice_[c] == base_choice_[c]) return;
  Free(exact_[c], kNone);
  if (uses_[c] < most_least_[c]) {
    Free(at_least_[c], uses_[c]);
    most_least_[c] = uses_[c];
  }
  base_uses_[c] = uses_[c];
  base_choice_[c] = choice_[c];
}

}  // namespace l3c::egraph
