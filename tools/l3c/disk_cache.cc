#include "tools/l3c/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <system_error>
#include <tuple>

#include "runtime/sha256.h"
#include "tools/l3c/build_id.h"

namespace l3c::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "l3c cache 1\n";
constexpr size_t kDigest = 64;
constexpr const char* kVersion = "v1";
constexpr const char* kAside = ".aside-";
// Left behind by a killed program when it is older.
constexpr std::chrono::hours kForgotten{1};

bool cache_in_use = false;

std::string Digest(std::string_view bytes) {
  runtime::Sha256 sha;
  sha.Add(std::as_bytes(std::span(bytes)));
  return sha.Finish();
}

std::optional<std::string> ReadWhole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return std::nullopt;
  return bytes;
}

// The bytes of an entry, if they are what was written.
std::optional<std::string> Unwrap(std::string entry) {
  const size_t head = kMagic.size() + kDigest;
  if (entry.size() < head || !entry.starts_with(kMagic)) return std::nullopt;
  std::string bytes = entry.substr(head);
  if (Digest(bytes) != std::string_view(entry).substr(kMagic.size(), kDigest)) return std::nullopt;
  return bytes;
}

}  // namespace

std::optional<fs::path> CacheFolder() {
  // As the XDG specification has it, relative paths are ignored.
  if (const char* base = std::getenv("XDG_CACHE_HOME"); base != nullptr && base[0] == '/') {
    return fs::path(base) / "l3c";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    return fs::path(home) / ".cache" / "l3c";
  }
  return std::nullopt;
}

DiskCache::~DiskCache() {
  if (stored_) Evict(Limit());
}

fs::path DiskCache::PathOf(std::string_view kind, std::string_view key) const {
  runtime::Sha256 sha;
  for (const std::string_view part : {kind, std::string_view(BuildId()), key}) {
    const uint64_t size = part.size();
    sha.Add(std::as_bytes(std::span(&size, 1)));
    sha.Add(std::as_bytes(std::span(part)));
  }
  const std::string name = sha.Finish();
  return folder_ / kVersion / name.substr(0, 2) / (std::string(kind) + "-" + name);
}

std::optional<std::string> DiskCache::Load(std::string_view kind, std::string_view label,
                                           std::string_view key) {
  const fs::path path = PathOf(kind, key);
  std::optional<std::string> bytes = ReadWhole(path);
  if (bytes) {
    bytes = Unwrap(*std::move(bytes));
    std::error_code ignored;
    if (bytes) {
      utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now
    } else {
      fs::remove(path, ignored);
    }
  }
  std::lock_guard lock(mutex_);
  Use& use = uses_[std::string(kind)];
  (bytes ? use.reused : use.made).emplace_back(label);
  return bytes;
}

void DiskCache::Store(std::string_view kind, std::string_view key, std::string_view bytes) {
  if (static_cast<int64_t>(bytes.size()) > Limit()) return;
  const fs::path path = PathOf(kind, key);
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const fs::path aside =
      path.parent_path() / (kAside + std::to_string(getpid()) + "-" + std::to_string(asides_++));
  bool written = false;
  {
    std::ofstream file(aside, std::ios::binary | std::ios::trunc);
    file << kMagic << Digest(bytes) << bytes << std::flush;
    written = static_cast<bool>(file);
  }
  if (written) fs::rename(aside, path, error);
  if (!written || error) fs::remove(aside, error);
  stored_ = true;
}

std::map<std::string, DiskCache::Use> DiskCache::Uses() const {
  std::lock_guard lock(mutex_);
  return uses_;
}

std::vector<DiskCache::Entry> DiskCache::Entries() const {
  std::vector<Entry> entries;
  std::error_code error;
  fs::recursive_directory_iterator files(folder_ / kVersion, error), end;
  for (; !error && files != end; files.increment(error)) {
    // Other programs remove entries meanwhile.
    std::error_code gone;
    if (!files->is_regular_file(gone) || gone) continue;
    Entry entry;
    entry.path = files->path();
    const std::string name = entry.path.filename().string();
    entry.aside = name.starts_with(kAside);
    entry.kind = name.substr(0, name.rfind('-'));
    entry.bytes = static_cast<int64_t>(fs::file_size(entry.path, gone));
    if (gone) continue;
    entry.used = fs::last_write_time(entry.path, gone);
    if (!gone) entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.used, a.path) < std::tie(b.used, b.path);
  });
  return entries;
}

bool DiskCache::IsSound(const Entry& entry) const {
  std::optional<std::string> bytes = ReadWhole(entry.path);
  return bytes && Unwrap(*std::move(bytes));
}

int64_t DiskCache::Limit() const {
  std::ifstream file(folder_ / "limit");
  int64_t bytes = 0;
  return file >> bytes && bytes >= 0 ? bytes : kDefaultLimit;
}

bool DiskCache::SetLimit(int64_t bytes) {
  std::error_code error;
  fs::create_directories(folder_, error);
  const fs::path aside = folder_ / (kAside + std::to_string(getpid()));
  {
    std::ofstream file(aside, std::ios::trunc);
    file << bytes << "\n" << std::flush;
    if (!file) return false;
  }
  fs::rename(aside, folder_ / "limit", error);
  if (error) return false;
  Evict(bytes);
  return true;
}

void DiskCache::Evict(int64_t bytes) {
  const std::vector<Entry> entries = Entries();
  int64_t total = 0;
  for (const Entry& entry : entries) total += entry.bytes;
  const auto now = fs::file_time_type::clock::now();
  for (const Entry& entry : entries) {
    const bool forgotten = entry.aside && now - entry.used > kForgotten;
    if (!forgotten && (total <= bytes || entry.aside)) continue;
    std::error_code ignored;
    fs::remove(entry.path, ignored);
    total -= entry.bytes;
  }
}

int64_t DiskCache::Clear() {
  int64_t removed = 0;
  for (const Entry& entry : Entries()) {
    std::error_code error;
    if (fs::remove(entry.path, error) && !entry.aside) ++removed;
  }
  return removed;
}

void UseCache(bool use) { cache_in_use = use; }

DiskCache* TheCache() {
  if (!cache_in_use) return nullptr;
  static const std::unique_ptr<DiskCache> cache = [] {
    const std::optional<fs::path> folder = CacheFolder();
    return folder ? std::make_unique<DiskCache>(*folder) : nullptr;
  }();
  return cache.get();
}

std::string DescribeReuse(const DiskCache& cache) {
  const auto list = [](const std::vector<std::string>& labels) {
    constexpr size_t kMost = 8;
    std::string text;
    for (size_t i = 0; i < std::min(labels.size(), kMost); ++i) {
      text += (i > 0 ? ", " : "") + labels[i];
    }
    if (labels.size() > kMost) text += " and " + std::to_string(labels.size() - kMost) + " more";
    return text.empty() ? "nothing" : text;
  };
  std::string text;
  for (const auto& [kind, use] : cache.Uses()) {
    text += "cache, " + kind + ": reused " + list(use.reused) + "; made " + list(use.made) + "\n";
  }
  return text;
}

}  // namespace l3c::tools
