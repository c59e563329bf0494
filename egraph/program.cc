#include "egraph/program.h"

#include "egraph/extract/term.h"
#include "egraph/text/loader.h"

namespace l3c::egraph {

std::string ProgramStatus::ToString() const {
  if (ok) return "ok";
  return file + ":" + std::to_string(line) + ":" + std::to_string(column) + ": error: " + message;
}

ProgramResult LoadProgram(EGraph& graph, std::string_view text, std::string_view file,
                          const ProgramOptions& options) {
  return Loader(graph, file, options).Load(text);
}

std::string ProgramResult::output() const {
  std::string text;
  for (const Printed& p : printed) text += p.text;
  return text;
}

std::string FormatValue(const EGraph& graph, SortId sort, Value value) {
  return TermExtractor(graph).Text(sort, value).value_or("");
}

}  // namespace l3c::egraph
