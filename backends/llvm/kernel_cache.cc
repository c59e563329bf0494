#include "backends/llvm/kernel_cache.h"

#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "layers/l0/kernel_text.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

namespace l3c::llvm_backend {
namespace {

// Its text with a name and an origin that say nothing.
std::string ContentOf(l0::Kernel kernel) {
  kernel.name = "k";
  kernel.origin.clear();
  return l0::PrintKernel(kernel);
}

std::string SymbolOf(const std::string& content) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(content.data());
  const std::array<uint8_t, 32> digest = llvm::SHA256::hash({bytes, content.size()});
  return "k" + llvm::toHex(digest, /*LowerCase=*/true);
}

}  // namespace

absl::StatusOr<LinkedKernels> CompileWithCache(support::BlobCache& cache, const std::string& target,
                                               absl::Span<const l0::Kernel> kernels,
                                               const CompileKernels& compile) {
  LinkedKernels linked;
  std::map<std::string, size_t> known;    // object's bytes → its place
  std::map<std::string, size_t> missing;  // symbol → index into `compiled`
  std::vector<l0::Kernel> to_compile;
  std::vector<std::string> keys;               // of those
  std::vector<std::vector<size_t>> wanted_by;  // of those
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::string content = ContentOf(kernels[i]);
    const std::string& symbol = linked.symbols.emplace_back(SymbolOf(content));
    if (const auto again = missing.find(symbol); again != missing.end()) {
      wanted_by[again->second].push_back(i);
      continue;
    }
    std::string key = target + "\n" + content;
    if (std::optional<std::string> object = cache.Load("kernel", kernels[i].name, key)) {
      const auto [it, fresh] = known.try_emplace(*std::move(object), linked.objects.size());
      if (fresh) linked.objects.push_back({{it->first.begin(), it->first.end()}, {}});
      linked.objects[it->second].kernels.push_back(i);
      continue;
    }
    missing[symbol] = to_compile.size();
    to_compile.push_back(kernels[i]);
    to_compile.back().name = symbol;
    keys.push_back(std::move(key));
    wanted_by.push_back({i});
  }
  if (to_compile.empty()) return linked;
  absl::StatusOr<std::vector<KernelObject>> objects = compile(to_compile);
  if (!objects.ok()) return objects.status();
  for (KernelObject& object : *objects) {
    LinkedKernels::Object& out = linked.objects.emplace_back();
    const std::string_view bytes(object.object.data(), object.object.size());
    for (size_t i = object.first; i < object.first + object.count; ++i) {
      cache.Store("kernel", keys[i], bytes);
      out.kernels.insert(out.kernels.end(), wanted_by[i].begin(), wanted_by[i].end());
    }
    out.bytes = std::move(object.object);
  }
  return linked;
}

}  // namespace l3c::llvm_backend
