#include "tools/program/cpu_features.h"

#include <cpuid.h>

#include <array>
#include <cstdint>

#include "layers/support/tile_permission.h"

namespace l3c::program {
namespace {

enum Register : uint8_t { kEax, kEbx, kEcx, kEdx };

// What the system must save at a switch of threads before programs may use a feature.
enum State : uint8_t { kNone, kYmm, kZmm, kTiles };

struct Feature {
  std::string_view name;
  uint32_t leaf;
  uint32_t subleaf;
  Register reg;
  uint8_t bit;
  State state;
};

// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, CPUID; AMD64
// Architecture Programmer's Manual, volume 3, appendix E for the leaf 0x80000001.
constexpr Feature kFeatures[] = {
    {"cx8", 1, 0, kEdx, 8, kNone},
    {"cmov", 1, 0, kEdx, 15, kNone},
    {"mmx", 1, 0, kEdx, 23, kNone},
    {"fxsr", 1, 0, kEdx, 24, kNone},
    {"sse", 1, 0, kEdx, 25, kNone},
    {"sse2", 1, 0, kEdx, 26, kNone},
    {"sse3", 1, 0, kEcx, 0, kNone},
    {"pclmul", 1, 0, kEcx, 1, kNone},
    {"ssse3", 1, 0, kEcx, 9, kNone},
    {"fma", 1, 0, kEcx, 12, kYmm},
    {"cx16", 1, 0, kEcx, 13, kNone},
    {"sse4.1", 1, 0, kEcx, 19, kNone},
    {"sse4.2", 1, 0, kEcx, 20, kNone},
    {"crc32", 1, 0, kEcx, 20, kNone},
    {"movbe", 1, 0, kEcx, 22, kNone},
    {"popcnt", 1, 0, kEcx, 23, kNone},
    {"aes", 1, 0, kEcx, 25, kNone},
    {"xsave", 1, 0, kEcx, 26, kNone},
    {"avx", 1, 0, kEcx, 28, kYmm},
    {"f16c", 1, 0, kEcx, 29, kYmm},
    {"bmi", 7, 0, kEbx, 3, kNone},
    {"avx2", 7, 0, kEbx, 5, kYmm},
    {"bmi2", 7, 0, kEbx, 8, kNone},
    {"avx512f", 7, 0, kEbx, 16, kZmm},
    {"avx512dq", 7, 0, kEbx, 17, kZmm},
    {"adx", 7, 0, kEbx, 19, kNone},
    {"avx512ifma", 7, 0, kEbx, 21, kZmm},
    {"avx512cd", 7, 0, kEbx, 28, kZmm},
    {"avx512bw", 7, 0, kEbx, 30, kZmm},
    {"avx512vl", 7, 0, kEbx, 31, kZmm},
    {"avx512vbmi", 7, 0, kEcx, 1, kZmm},
    {"avx512vbmi2", 7, 0, kEcx, 6, kZmm},
    {"gfni", 7, 0, kEcx, 8, kNone},
    {"vaes", 7, 0, kEcx, 9, kYmm},
    {"vpclmulqdq", 7, 0, kEcx, 10, kYmm},
    {"avx512vnni", 7, 0, kEcx, 11, kZmm},
    {"avx512bitalg", 7, 0, kEcx, 12, kZmm},
    {"avx512vpopcntdq", 7, 0, kEcx, 14, kZmm},
    {"amx-bf16", 7, 0, kEdx, 22, kTiles},
    {"avx512fp16", 7, 0, kEdx, 23, kZmm},
    {"amx-tile", 7, 0, kEdx, 24, kTiles},
    {"amx-int8", 7, 0, kEdx, 25, kTiles},
    {"avxvnni", 7, 1, kEax, 4, kYmm},
    {"avx512bf16", 7, 1, kEax, 5, kZmm},
    {"sahf", 0x80000001, 0, kEcx, 0, kNone},
    {"lzcnt", 0x80000001, 0, kEcx, 5, kNone},
    {"sse4a", 0x80000001, 0, kEcx, 6, kNone},
    {"xop", 0x80000001, 0, kEcx, 11, kYmm},
    {"fma4", 0x80000001, 0, kEcx, 16, kYmm},
    {"tbm", 0x80000001, 0, kEcx, 21, kNone},
};

// System V ABI for x86-64, section 3.1.1.
constexpr std::pair<std::string_view, std::string_view> kLevels[] = {
    {"x86-64", "+cx8,+cmov,+fxsr,+mmx,+sse,+sse2"},
    {"x86-64-v2",
     "+cx8,+cmov,+fxsr,+mmx,+sse,+sse2,+cx16,+sahf,+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2"},
    {"x86-64-v3",
     "+cx8,+cmov,+fxsr,+mmx,+sse,+sse2,+cx16,+sahf,+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2,"
     "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"},
    {"x86-64-v4",
     "+cx8,+cmov,+fxsr,+mmx,+sse,+sse2,+cx16,+sahf,+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2,"
     "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave,"
     "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"},
};

const Feature* FindFeature(std::string_view name) {
  for (const Feature& feature : kFeatures) {
    if (feature.name == name) return &feature;
  }
  return nullptr;
}

std::array<uint32_t, 4> Cpuid(uint32_t leaf, uint32_t subleaf) {
  std::array<uint32_t, 4> out{};
  // Zeros where the CPU has no such leaf.
  __get_cpuid_count(leaf, subleaf, &out[kEax], &out[kEbx], &out[kEcx], &out[kEdx]);
  return out;
}

// Bits of XCR0: what the system saves.
bool SystemSaves(State state) {
  if (state == kNone) return true;
  if (state == kTiles) return support::TilesPermitted();
  constexpr uint32_t kOsXsave = 1u << 27;
  if ((Cpuid(1, 0)[kEcx] & kOsXsave) == 0) return false;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr uint32_t kYmmState = 0x6, kZmmState = 0xe6;
  const uint32_t needed = state == kZmm ? kZmmState : kYmmState;
  return (low & needed) == needed;
}

}  // namespace

std::vector<std::string> RequiredFeatures(std::string_view features) {
  std::vector<std::string> names;
  while (!features.empty()) {
    const size_t comma = features.find(',');
    const std::string_view entry = features.substr(0, comma);
    if (entry.starts_with("+")) names.emplace_back(entry.substr(1));
    features.remove_prefix(comma == std::string_view::npos ? features.size() : comma + 1);
  }
  return names;
}

bool IsKnownFeature(std::string_view name) { return FindFeature(name) != nullptr; }

bool HasFeature(std::string_view name) {
  const Feature* feature = FindFeature(name);
  return feature != nullptr &&
         (Cpuid(feature->leaf, feature->subleaf)[feature->reg] >> feature->bit & 1) != 0 &&
         SystemSaves(feature->state);
}

std::string FeaturesHere() {
  std::string features;
  for (const Feature& feature : kFeatures) {
    if (!HasFeature(feature.name)) continue;
    if (!features.empty()) features += ",";
    features += "+" + std::string(feature.name);
  }
  return features;
}

std::string_view FeaturesOfLevel(std::string_view level) {
  for (const auto& [name, features] : kLevels) {
    if (name == level) return features;
  }
  return "";
}

}  // namespace l3c::program
