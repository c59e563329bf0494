#include "tools/l3c/tune/plan_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "layers/l0/kernel_text.h"
#include "runtime/sha256.h"
#include "tools/l3c/code_trial.h"

namespace l3c::tools::tune {

std::string CheckKernels(const l0::Plan& plan, const runtime::KernelTable& kernels, bool fast,
                         std::set<std::string>& known) {
  std::set<l0::KernelId> own;  // tried when the plan was read
  for (const l0::KernelCode& code : plan.code) own.insert(code.kernel);
  for (l0::KernelId id = 0; id < plan.kernels.size(); ++id) {
    if (own.contains(id)) continue;
    l0::Kernel plain = plan.kernels[id];
    plain.name = "k";
    plain.origin.clear();
    const std::string digest = runtime::Sha256Of(l0::PrintKernel(plain));
    if (known.contains(digest)) continue;
    const absl::Status status = TryCode(plan.kernels[id], kernels.Find(id),
                                        fast ? l0::CodeClass::kFast : l0::CodeClass::kReassoc,
                                        /*must_compare=*/true, kernels.Context(id));
    if (!status.ok()) {
      return "kernel '" + plan.kernels[id].name + "': " + std::string(status.message());
    }
    known.insert(digest);
  }
  return "";
}

std::string CompareSums(const std::vector<double>& expected, const std::vector<double>& found,
                        const std::string& numerics) {
  const double tolerance = numerics == "exact" ? 0 : numerics == "fast" ? 1e-2 : 1e-3;
  for (size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
    const double want = expected[i], have = found[i];
    if (want == have || (std::isnan(want) && std::isnan(have))) continue;
    if (std::abs(want - have) <= tolerance * std::abs(want)) continue;
    // Counts, of right answers, say, turn over at a rounding.
    if (tolerance > 0 && want == std::floor(want) && have == std::floor(have)) continue;
    char text[128];
    std::snprintf(text, sizeof text, "its steps report %.9g where the predicted best's report %.9g",
                  have, want);
    return text;
  }
  return "";
}

}  // namespace l3c::tools::tune
