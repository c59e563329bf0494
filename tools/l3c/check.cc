#include <iostream>

#include "nlohmann/json.hpp"
#include "tools/l3c/commands.h"
#include "tools/l3c/compile.h"
#include "tools/l3c/json_lines.h"

namespace l3c::tools {

int Check(const Options& options) {
  Compilation compilation(options);
  if (!compilation.Load()) return 1;
  const std::optional<Compilation::Rows> rows = compilation.ReadData();
  if (!rows) return 1;
  const std::string_view layer = LayerName(compilation.layer());
  if (options.json) {
    for (const auto& [name, splits] : *rows) {
      PrintJsonLine({{"event", "data"}, {"name", name}, {"rows", splits}});
    }
    PrintJsonLine({{"event", "done"}, {"file", options.file}, {"layer", layer}, {"ok", true}});
    return 0;
  }
  std::cout << options.file << ": sound " << layer << " program\n";
  for (const auto& [name, splits] : *rows) {
    std::cout << "data " << name << ", as declared:";
    const char* before = " ";
    for (const auto& [split, count] : splits) {
      std::cout << before << count << " rows of " << split;
      before = ", ";
    }
    std::cout << "\n";
  }
  return 0;
}

}  // namespace l3c::tools
