#include "layers/l0/lower/launch_order.h"

#include <algorithm>
#include <map>
#include <set>

namespace l3c::l0::lower {

namespace {

// What makes more than it frees goes as late as those that follow it allow: a weight turned over
// for the backward pass is not made before the forward pass because it is small.
void Postpone(std::span<const LaunchToOrder> launches, const ValueTable& table,
              const std::vector<std::set<size_t>>& before, std::vector<size_t>& order) {
  std::map<Storage, size_t> last_reader;  // positions move, but not past a reader
  for (size_t i : order) {
    for (const Binding& b : *launches[i].bindings) last_reader[b.storage] = i;
  }
  for (size_t at = order.size(); at-- > 0;) {
    const size_t i = order[at];
    int64_t growth = 0;
    for (size_t p = 0; p < launches[i].bindings->size(); ++p) {
      const Binding& b = (*launches[i].bindings)[p];
      if (b.state >= 0 || b.storage.kernel < 0) continue;
      const int64_t bytes = Bytes(table.values[b.storage.value]);
      if (launches[i].kernel->params[p].access != Access::kIn) {
        growth += bytes;
      } else if (last_reader.at(b.storage) == i) {
        growth -= bytes;
      }
    }
    if (growth <= 0) continue;
    size_t to = at;
    while (to + 1 < order.size() && !before[order[to + 1]].contains(i)) ++to;
    // Nobody waits for what is reported at the end; it stays where it is.
    if (to + 1 == order.size()) continue;
    const auto first = order.begin() + static_cast<long>(at);
    std::rotate(first, first + 1, order.begin() + static_cast<long>(to) + 1);
  }
}

// Launches that move nothing but state (a counter of steps, say) go to the end: as long as the old
// value is there, what reads it can run again. What reads the value that they overwrite stands
// before them already; they stay where they are when they read what somebody else overwrites.
void PutStateLast(std::span<const LaunchToOrder> launches,
                  const std::map<int32_t, size_t>& overwriter, std::vector<size_t>& order) {
  std::stable_partition(order.begin(), order.end(), [&](size_t i) {
    return std::any_of(launches[i].bindings->begin(), launches[i].bindings->end(),
                       [&](const Binding& b) {
                         if (b.state < 0) return b.storage.kernel >= 0;
                         const auto by = overwriter.find(b.state);
                         return by != overwriter.end() && by->second != i;
                       });
  });
}

}  // namespace

std::optional<std::vector<size_t>> OrderLaunches(std::span<const LaunchToOrder> launches,
                                                 const ValueTable& table) {
  const size_t n = launches.size();
  const auto writes = [&](size_t i, size_t p) {
    return launches[i].kernel->params[p].access != Access::kIn;
  };
  std::map<Storage, size_t> writer;
  std::map<int32_t, size_t> overwriter;
  for (size_t i = 0; i < n; ++i) {
    for (size_t p = 0; p < launches[i].bindings->size(); ++p) {
      if (!writes(i, p)) continue;
      const Binding& b = (*launches[i].bindings)[p];
      if (b.state >= 0) {
        overwriter[b.state] = i;
      } else {
        writer[b.storage] = i;
      }
    }
  }
  std::vector<std::set<size_t>> before(n);  // what must have run
  std::map<Storage, size_t> readers;
  for (size_t i = 0; i < n; ++i) {
    for (size_t p = 0; p < launches[i].bindings->size(); ++p) {
      const Binding& b = (*launches[i].bindings)[p];
      if (b.state >= 0) {
        const auto it = overwriter.find(b.state);
        if (it != overwriter.end() && it->second != i) before[it->second].insert(i);
      } else if (!writes(i, p)) {
        const auto it = writer.find(b.storage);
        if (it == writer.end()) continue;
        before[i].insert(it->second);
        ++readers[b.storage];
      }
    }
  }
  std::vector<std::vector<size_t>> after(n);
  std::vector<size_t> waits(n);
  std::set<size_t> ready;
  for (size_t i = 0; i < n; ++i) {
    waits[i] = before[i].size();
    for (size_t other : before[i]) after[other].push_back(i);
    if (waits[i] == 0) ready.insert(i);
  }
  // Bytes that live when it has run, less those that live now.
  const auto growth_of = [&](size_t i) {
    int64_t growth = 0;
    for (size_t p = 0; p < launches[i].bindings->size(); ++p) {
      const Binding& b = (*launches[i].bindings)[p];
      if (b.state >= 0 || b.storage.kernel < 0) continue;
      const int64_t bytes = Bytes(table.values[b.storage.value]);
      if (writes(i, p)) {
        growth += bytes;
      } else if (readers.at(b.storage) == 1) {
        growth -= bytes;
      }
    }
    return growth;
  };
  std::vector<size_t> order;
  while (!ready.empty()) {
    size_t pick = *ready.begin();
    int64_t least = growth_of(pick);
    for (size_t i : ready) {
      if (const int64_t growth = growth_of(i); growth < least) {
        pick = i;
        least = growth;
      }
    }
    ready.erase(pick);
    order.push_back(pick);
    for (size_t p = 0; p < launches[pick].bindings->size(); ++p) {
      if (writes(pick, p)) continue;
      const auto it = readers.find((*launches[pick].bindings)[p].storage);
      if (it != readers.end() && it->second > 0) --it->second;
    }
    for (size_t i : after[pick]) {
      if (--waits[i] == 0) ready.insert(i);
    }
  }
  if (order.size() < n) return std::nullopt;
  Postpone(launches, table, before, order);
  PutStateLast(launches, overwriter, order);
  return order;
}

}  // namespace l3c::l0::lower
