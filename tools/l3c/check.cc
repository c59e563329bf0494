#include <iostream>

#include "nlohmann/json.hpp"
#include "tools/l3c/commands.h"
#include "tools/l3c/compile.h"
#include "tools/l3c/json_lines.h"

namespace l3c::tools {

int Check(const Options& options) {
  Compilation compilation(options);
  if (!compilation.Load()) return 1;
  const std::string_view layer = LayerName(compilation.layer());
  if (options.json) {
    PrintJsonLine({{"event", "done"}, {"file", options.file}, {"layer", layer}, {"ok", true}});
  } else {
    std::cout << options.file << ": sound " << layer << " program\n";
  }
  return 0;
}

}  // namespace l3c::tools
