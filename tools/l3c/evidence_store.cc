#include "tools/l3c/evidence_store.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "cost/machine.h"
#include "layers/l1/discover.h"
#include "runtime/durable_file.h"
#include "tools/l3c/files.h"

namespace l3c::tools {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFile = size_t{16} << 20;

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

// Of the first processor, unified or for data; 0 where the system does not tell.
int64_t CacheBytes(int level) {
  for (int i = 0; i < 8; ++i) {
    const std::string base = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    if (FirstLine(base + "level") != std::to_string(level)) continue;
    if (FirstLine(base + "type") == "Instruction") continue;
    const std::string size = FirstLine(base + "size");
    int64_t number = 0;
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), number);
    if (error != std::errc()) return 0;
    const char unit = end == size.data() + size.size() ? ' ' : *end;
    return number * (unit == 'K' ? 1 << 10 : unit == 'M' ? 1 << 20 : 1);
  }
  return 0;
}

std::optional<int64_t> Number(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1) return std::nullopt;
  return number;
}

// Of any size and sign.
bool IsNumber(const std::string& text) {
  const size_t digits = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  return text.size() > digits && text.find_first_not_of("0123456789", digits) == std::string::npos;
}

absl::StatusOr<cost::Evidence> ReadEvidence(const fs::path& path) {
  const absl::StatusOr<std::string> text = runtime::ReadText(path.string(), kMaxFile);
  if (!text.ok()) return text.status();
  return cost::ParseEvidence(*text, Fingerprint(ThisTarget()));
}

}  // namespace

cost::EvidenceTarget ThisTarget() {
  cost::EvidenceTarget target;
  target.cpu = CpuName();
  const l1::System host = l1::DiscoverHost();
  for (const l1::SystemNode& node : host.nodes) {
    if (node.kind != l1::NodeKind::kCompute) continue;
    std::vector<std::string> features = node.features;
    std::sort(features.begin(), features.end());
    for (const std::string& feature : features) {
      target.features += (target.features.empty() ? "" : " ") + feature;
    }
    target.cores = std::max<int64_t>(1, node.cores);
    target.lanes = cost::MachineOf(node).lanes;
  }
  target.l2_bytes = CacheBytes(2);
  target.l3_bytes = CacheBytes(3);
  return target;
}

std::optional<EvidenceStore> EvidenceStore::Open() {
  fs::path base;
  if (const char* data = std::getenv("XDG_DATA_HOME"); data != nullptr && data[0] == '/') {
    base = data;
  } else if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    base = fs::path(home) / ".local" / "share";
  } else {
    return std::nullopt;
  }
  return EvidenceStore(base / "l3c" / "evidence" / Fingerprint(ThisTarget()));
}

fs::path EvidenceStore::PathOf(int64_t revision) const {
  return folder_ / (std::to_string(revision) + ".json");
}

std::optional<int64_t> EvidenceStore::Current() const {
  return Number(FirstLine((folder_ / "current").string()));
}

int64_t EvidenceStore::Newest() const {
  int64_t newest = 0;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, ignored)) {
    if (entry.path().extension() != ".json") continue;
    newest = std::max(newest, Number(entry.path().stem().string()).value_or(0));
  }
  return newest;
}

bool EvidenceStore::Write(const fs::path& path, const std::string& text) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) {
    return EnvironmentError(folder_.string() + ": " + error.message(),
                            "set XDG_DATA_HOME to a folder that can be written");
  }
  return WriteFile(path, text);
}

std::optional<fs::path> EvidenceStore::Add(cost::Evidence& evidence) {
  evidence.revision = Newest() + 1;
  const fs::path path = PathOf(evidence.revision);
  if (!Write(path, PrintEvidence(evidence))) return std::nullopt;
  if (!Current() && !Use(evidence.revision)) return std::nullopt;
  return path;
}

bool EvidenceStore::Use(int64_t revision) {
  if (const absl::StatusOr<cost::Evidence> found = Read(revision); !found.ok()) {
    const int64_t newest = Newest();
    return EnvironmentError(PathOf(revision).string() + ": evidence revision " +
                                std::to_string(revision) +
                                " cannot be used: " + std::string(found.status().message()),
                            newest > 0 ? "the newest of this machine is " + std::to_string(newest)
                                       : "'l3c calibrate' measures this machine");
  }
  return Write(folder_ / "current", std::to_string(revision) + "\n");
}

absl::StatusOr<cost::Evidence> EvidenceStore::Read(int64_t revision) const {
  return ReadEvidence(PathOf(revision));
}

bool ChooseEvidence(const std::string& wanted, ChosenEvidence& chosen) {
  chosen.evidence.reset();
  if (wanted == "none") {
    chosen.said = "costs are analytical, as --evidence none asks";
    return true;
  }
  const auto take = [&](absl::StatusOr<cost::Evidence> found) {
    chosen.said = "costs rest on revision " + std::to_string(found->revision) +
                  " of what was measured on this machine";
    chosen.evidence = *std::move(found);
    return true;
  };
  const std::optional<EvidenceStore> store = EvidenceStore::Open();
  if (!wanted.empty()) {
    const std::optional<int64_t> revision = Number(wanted);
    std::error_code unread;
    if (!revision && IsNumber(wanted) && !fs::exists(wanted, unread)) {
      const int64_t newest = store ? store->Newest() : 0;
      return EnvironmentError(
          "--evidence " + wanted + ": revisions are numbers from 1 on",
          "--evidence none goes without; " +
              (newest > 0 ? "the newest revision of this machine is " + std::to_string(newest)
                          : "'l3c calibrate' measures this machine"));
    }
    absl::StatusOr<cost::Evidence> found =
        revision && store ? store->Read(*revision) : ReadEvidence(wanted);
    if (found.ok()) return take(std::move(found));
    const std::string file =
        revision && store ? " (" + store->PathOf(*revision).string() + ")" : "";
    return EnvironmentError(
        "--evidence " + wanted + file + ": " + std::string(found.status().message()),
        "'l3c calibrate' measures this machine; --evidence none goes without");
  }
  chosen.said = "costs are analytical: 'l3c calibrate' measures this machine";
  const std::optional<int64_t> current = store ? store->Current() : std::nullopt;
  if (!current) {
    const std::string pointer = store ? (store->folder() / "current").string() : "";
    std::error_code ignored;
    if (store && fs::exists(pointer, ignored)) {
      std::cerr << "warning: " << pointer << ": it names no revision; costs are analytical until "
                << "'l3c calibrate --use N' says which\n";
    }
    return true;
  }
  absl::StatusOr<cost::Evidence> found = store->Read(*current);
  if (found.ok()) return take(std::move(found));
  chosen.said =
      "costs are analytical: evidence revision " + std::to_string(*current) + " is refused";
  std::cerr << "warning: " << (store->folder() / (std::to_string(*current) + ".json")).string()
            << ": " << found.status().message()
            << "; costs are analytical until 'l3c calibrate' has measured this machine\n";
  return true;
}

}  // namespace l3c::tools
