// The cache on the disk: $XDG_CACHE_HOME/l3c, or ~/.cache/l3c.
//
//   CACHE/v1/3f/search-3fa4…          an entry: magic, SHA-256 of its bytes, its bytes
//   CACHE/limit                       bytes that the entries may take together (`l3c cache limit`)
//
// An entry's name is the SHA-256 of its kind, of the program that made it (the build id of l3c) and
// of its key, which holds all that it depends on. So an entry can be old, but never wrong: nothing
// is ever changed in place. An entry is written aside and renamed, so that programs that run at the
// same time see whole ones or none; one that is damaged all the same is removed and counts for
// nothing. When what was added goes beyond the limit, those that were used longest ago go.
//
// A cache that cannot be read or written is no error: everything works without.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/support/blob_cache.h"

namespace l3c::tools {

// Nothing where neither variable says where it would be.
std::optional<std::filesystem::path> CacheFolder();

class DiskCache : public support::BlobCache {
 public:
  static constexpr int64_t kDefaultLimit = int64_t{1} << 30;

  explicit DiskCache(std::filesystem::path folder) : folder_(std::move(folder)) {}
  ~DiskCache() override;  // evicts, if anything was stored

  std::optional<std::string> Load(std::string_view kind, std::string_view label,
                                  std::string_view key) override;
  void Store(std::string_view kind, std::string_view key, std::string_view bytes) override;

  // What Load found so far and what it did not: of each kind the labels, in the order asked for.
  struct Use {
    std::vector<std::string> reused, made;
  };
  std::map<std::string, Use> Uses() const;

  struct Entry {
    std::string kind;
    std::filesystem::path path;
    int64_t bytes = 0;
    std::filesystem::file_time_type used;
    bool aside = false;  // half written by a program that runs, or has been killed
  };
  std::vector<Entry> Entries() const;  // least recently used first
  bool IsSound(const Entry& entry) const;

  int64_t Limit() const;
  bool SetLimit(int64_t bytes);  // and evicts; false when it cannot be written
  // Removes least recently used entries until the others take `bytes` or less.
  void Evict(int64_t bytes);
  // All entries; how many there were.
  int64_t Clear();

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path PathOf(std::string_view kind, std::string_view key) const;

  const std::filesystem::path folder_;
  std::atomic<bool> stored_{false};
  std::atomic<uint64_t> asides_{0};
  mutable std::mutex mutex_;
  std::map<std::string, Use> uses_;
};

// Before a command runs: whether it may use a cache.
void UseCache(bool use);
// The one of this process; null where it may not, or where there is no place for one.
DiskCache* TheCache();

// A line for each kind: "cache, search: reused l0/train; made l0/test".
std::string DescribeReuse(const DiskCache& cache);

}  // namespace l3c::tools
