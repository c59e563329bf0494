#include "layers/l0/lower/launch_order.h"

#include <algorithm>
#include <map>
#include <set>

namespace l3c::l0::lower {

namespace {

// Bytes that a launch makes, less those that it is the last to read.
int64_t Growth(const LaunchToOrder& launch, size_t i, const ValueTable& table,
               const std::map<Storage, size_t>& last_reader) {
  int64_t growth = 0;
  for (size_t p = 0; p < launch.bindings->size(); ++p) {
    const Binding& b = (*launch.bindings)[p];
    if (b.state >= 0 || b.storage.kernel < 0) continue;
    const int64_t bytes = Bytes(table.values[b.storage.value]);
    if (launch.kernel->params[p].access != Access::kIn) {
      growth += bytes;
    } else if (last_reader.at(b.storage) == i) {
      growth -= bytes;
    }
  }
  return growth;
}

std::map<Storage, size_t> LastReaders(std::span<const LaunchToOrder> launches,
                                      const std::vector<size_t>& order) {
  std::map<Storage, size_t> last_reader;
  for (size_t i : order) {
    for (const Binding& b : *launches[i].bindings) last_reader[b.storage] = i;
  }
  return last_reader;
}

// The most bytes that live at once, from the launch that makes them to the last that reads them.
int64_t MostLive(std::span<const LaunchToOrder> launches, const ValueTable& table,
                 const std::vector<size_t>& order) {
  const std::map<Storage, size_t> last_reader = LastReaders(launches, order);
  int64_t live = 0;
  int64_t most = 0;
  for (size_t i : order) {
    int64_t made = 0;
    for (size_t p = 0; p < launches[i].bindings->size(); ++p) {
      const Binding& b = (*launches[i].bindings)[p];
      if (b.state >= 0 || b.storage.kernel < 0) continue;
      if (launches[i].kernel->params[p].access != Access::kIn) {
        made += Bytes(table.values[b.storage.value]);
      }
    }
    most = std::max(most, live + made);
    live += Growth(launches[i], i, table, last_reader);
  }
  return most;
}

// What makes more than it frees goes as late as those that follow it allow: a weight turned over
// for the backward pass is not made before the forward pass because it is small.
void Postpone(std::span<const LaunchToOrder> launches, const ValueTable& table,
              const std::vector<std::set<size_t>>& before, std::vector<size_t>& order) {
  const std::map<Storage, size_t> last_reader =
      LastReaders(launches, order);  // positions move, but not past a reader
  for (size_t at = order.size(); at-- > 0;) {
    const size_t i = order[at];
    if (Growth(launches[i], i, table, last_reader) <= 0) continue;
    size_t to = at;
    while (to + 1 < order.size() && !before[order[to + 1]].contains(i)) ++to;
    // Nobody waits for what is reported at the end; it stays where it is.
    if (to + 1 == order.size()) continue;
    const auto first = order.begin() + static_cast<long>(at);
    std::rotate(first, first + 1, order.begin() + static_cast<long>(to) + 1);
  }
}

// What frees more than it makes goes as early as what it reads, and others that read what it frees,
// allow: sums over the rows of a batch are not kept until all of them are there.
void Advance(std::span<const LaunchToOrder> launches, const ValueTable& table,
             const std::vector<std::set<size_t>>& before, std::vector<size_t>& order) {
  const std::map<Storage, size_t> last_reader = LastReaders(launches, order);
  for (size_t at = 0; at < order.size(); ++at) {
    const size_t i = order[at];
    if (Growth(launches[i], i, table, last_reader) >= 0) continue;
    const auto frees = [&](const Binding& b) {
      return b.state < 0 && b.storage.kernel >= 0 && last_reader.at(b.storage) == i;
    };
    const auto reads_it = [&](size_t other) {
      return std::any_of(launches[other].bindings->begin(), launches[other].bindings->end(),
                         [&](const Binding& b) {
                           return std::any_of(launches[i].bindings->begin(),
                                              launches[i].bindings->end(), [&](const Binding& own) {
                                                return frees(own) && own.storage == b.storage &&
                                                       b.state < 0;
                                              });
                         });
    };
    size_t to = at;
    while (to > 0 && !before[i].contains(order[to - 1]) && !reads_it(order[to - 1])) --to;
    std::rotate(order.begin() + static_cast<long>(to), order.begin() + static_cast<long>(at),
                order.begin() + static_cast<long>(at) + 1);
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
  for (size_t i = 0; i < n; ++i) {
    for (size_t other : before[i]) after[other].push_back(i);
  }
  // One after the other what has nothing left to wait for: what leaves the fewest bytes alive, or
  // the first of the list.
  const auto in_turn = [&](bool by_growth) {
    std::map<Storage, size_t> left = readers;
    std::vector<size_t> waits(n);
    std::set<size_t> ready;
    for (size_t i = 0; i < n; ++i) {
      waits[i] = before[i].size();
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
        } else if (left.at(b.storage) == 1) {
          growth -= bytes;
        }
      }
      return growth;
    };
    std::vector<size_t> order;
    while (!ready.empty()) {
      size_t pick = *ready.begin();
      int64_t least = by_growth ? growth_of(pick) : 0;
      for (size_t i : ready) {
        if (!by_growth) break;
        if (const int64_t growth = growth_of(i); growth < least) {
          pick = i;
          least = growth;
        }
      }
      ready.erase(pick);
      order.push_back(pick);
      for (size_t p = 0; p < launches[pick].bindings->size(); ++p) {
        if (writes(pick, p)) continue;
        const auto it = left.find((*launches[pick].bindings)[p].storage);
        if (it != left.end() && it->second > 0) --it->second;
      }
      for (size_t i : after[pick]) {
        if (--waits[i] == 0) ready.insert(i);
      }
    }
    return order;
  };
  std::vector<size_t> best;
  for (const bool by_growth : {true, false}) {
    std::vector<size_t> order = in_turn(by_growth);
    if (order.size() < n) return std::nullopt;
    Postpone(launches, table, before, order);
    std::vector<size_t> advanced = order;
    Advance(launches, table, before, advanced);
    for (std::vector<size_t>* tried : {&order, &advanced}) {
      PutStateLast(launches, overwriter, *tried);
      if (best.empty() || MostLive(launches, table, *tried) < MostLive(launches, table, best)) {
        best = *tried;
      }
    }
  }
  return best;
}

}  // namespace l3c::l0::lower
