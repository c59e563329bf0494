// l3c cache: what the cache holds, and its bound.
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>

#include "nlohmann/json.hpp"
#include "tools/l3c/commands.h"
#include "tools/l3c/disk_cache.h"
#include "tools/l3c/files.h"
#include "tools/l3c/json_lines.h"

namespace l3c::tools {
namespace {

struct Sum {
  int64_t entries = 0, bytes = 0, damaged = 0;
};

int Show(const DiskCache& cache, bool json) {
  Sum all;
  std::map<std::string, Sum> kinds;
  for (const DiskCache::Entry& entry : cache.Entries()) {
    if (entry.aside) continue;
    for (Sum* sum : {&all, &kinds[entry.kind]}) {
      ++sum->entries;
      sum->bytes += entry.bytes;
      if (!cache.IsSound(entry)) ++sum->damaged;
    }
  }
  if (json) {
    nlohmann::ordered_json by_kind = nlohmann::ordered_json::object();
    for (const auto& [kind, sum] : kinds) {
      by_kind[kind] = {{"entries", sum.entries}, {"bytes", sum.bytes}, {"damaged", sum.damaged}};
    }
    PrintJsonLine({{"event", "cache"},
                   {"folder", cache.folder().string()},
                   {"entries", all.entries},
                   {"bytes", all.bytes},
                   {"limit", cache.Limit()},
                   {"damaged", all.damaged},
                   {"kinds", by_kind}});
    PrintJsonLine({{"event", "done"}});
    return 0;
  }
  std::cout << cache.folder().string() << ": " << all.entries << " entries, " << all.bytes << " of "
            << cache.Limit() << " bytes\n";
  for (const auto& [kind, sum] : kinds) {
    std::cout << "  " << kind << ": " << sum.entries << " entries, " << sum.bytes << " bytes\n";
  }
  if (all.damaged > 0) {
    std::cout << "  " << all.damaged << " damaged: they count for nothing and go when next met\n";
  }
  return 0;
}

}  // namespace

int Cache(const Options& options) {
  const std::optional<std::filesystem::path> folder = CacheFolder();
  if (!folder) {
    EnvironmentError("there is no place for a cache", "set XDG_CACHE_HOME to an absolute path");
    return 1;
  }
  DiskCache cache(*folder);
  if (options.cache_action == "clear") {
    const int64_t removed = cache.Clear();
    if (!options.json) std::cout << removed << " entries removed\n";
  } else if (options.cache_action == "limit") {
    if (!cache.SetLimit(*options.cache_limit)) {
      EnvironmentError(folder->string() + ": cannot be written");
      return 1;
    }
  }
  if (options.cache_action != "clear" || options.json) return Show(cache, options.json);
  return 0;
}

}  // namespace l3c::tools
