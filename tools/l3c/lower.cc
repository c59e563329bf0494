#include <iostream>

#include "tools/l3c/commands.h"
#include "tools/l3c/compile.h"
#include "tools/l3c/disk_cache.h"
#include "tools/l3c/files.h"
#include "tools/l3c/tuning.h"

namespace l3c::tools {

int Lower(const Options& options) {
  if (!options.output.empty() && !CanWriteFile(options.output)) return 1;
  Compilation compilation(options);
  if (!compilation.Load() || !compilation.LowerTo(*options.to)) return 1;
  if (const int code = TuneIfAsked(compilation, options); code != 0) return code;
  if (options.explain) {
    for (const search::Explanation& explanation : compilation.explanations()) {
      std::cerr << search::RenderExplanation(explanation) << "\n";
    }
    if (!compilation.costs_rest_on().empty()) std::cerr << compilation.costs_rest_on() << "\n";
    if (const DiskCache* cache = TheCache()) std::cerr << DescribeReuse(*cache);
  }
  const std::string_view text = compilation.texts().back().source->text();
  if (options.output.empty()) {
    std::cout << text;
    return 0;
  }
  return WriteFile(options.output, text) ? 0 : 1;
}

}  // namespace l3c::tools
