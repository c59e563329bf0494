#include "tools/l3c/applicable.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "layers/support/diagnostics.h"
#include "layers/support/source.h"
#include "tools/l3c/compile.h"

namespace l3c::tools {
namespace {

struct Inapplicable {
  std::string_view option;
  Layer highest;  // of the layers it does not apply to; the lower ones neither
  std::string_view why;
};

constexpr std::string_view kDecided = "a plan has no decision left: lower it again, from above";

constexpr Inapplicable kInapplicable[] = {
    {"--pick", Layer::kL2, "the front is searched on the way from .l3 to .l2"},
    {"--system", Layer::kL1, "the program is placed, and its own system stands in its text"},
    {"--force", Layer::kL0, kDecided},
    {"--search", Layer::kL0, kDecided},
    {"--budget", Layer::kL0, kDecided},
    {"--numerics", Layer::kL0, kDecided},
    {"--without", Layer::kL0, kDecided},
    {"--rules", Layer::kL0, kDecided},
    {"--evidence", Layer::kL0, kDecided},
    {"--tune", Layer::kL0, kDecided},
};

}  // namespace

bool OptionsApply(const Options& options) {
  const bool lowers = options.verb == Verb::kOptimize || options.verb == Verb::kLower ||
                      options.verb == Verb::kRun || options.verb == Verb::kBuild ||
                      options.verb == Verb::kEmit;
  if (!lowers || options.file.empty()) return true;
  support::Diagnostics unread;
  const std::optional<support::SourceFile> source = support::SourceFile::Read(options.file, unread);
  const std::optional<Layer> layer = source ? LayerOf(*source) : std::nullopt;
  if (!layer) return true;
  for (const Inapplicable& rule : kInapplicable) {
    if (*layer < rule.highest) continue;
    const bool given =
        std::find(options.given.begin(), options.given.end(), rule.option) != options.given.end();
    if (!given) continue;
    std::cerr << "error: " << rule.option << " does not apply to '" << options.file << "', an ."
              << LayerName(*layer) << " program: " << rule.why << "\n";
    return false;
  }
  return true;
}

}  // namespace l3c::tools
