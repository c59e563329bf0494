// The commands by name, and what they share: names, counts of arguments, options.
#include "egraph/text/loader.h"

#include <utility>

namespace l3c::egraph {

namespace {

constexpr size_t kMaxRuleName = 120;

}  // namespace

std::string OneLine(std::string_view text) {
  std::string line;
  bool space = false;
  for (char c : text) {
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      space = !line.empty();
      continue;
    }
    if (space && line.back() != '(' && c != ')') line += ' ';
    space = false;
    if (line.size() >= kMaxRuleName) return line + "…";
    line += c;
  }
  return line;
}

ProgramResult Loader::Load(std::string_view text) {
  if (text.size() > options_.max_bytes) {
    result_.status = {false, file_, 1, 1,
                      "the text is larger than " + std::to_string(options_.max_bytes) + " bytes"};
    return std::move(result_);
  }
  if (!doc_.Read(text)) {
    Error(doc_.error_offset(), doc_.error());
    return std::move(result_);
  }
  for (uint32_t command : doc_.top_level()) {
    if (!Command(command)) break;
  }
  return std::move(result_);
}

bool Loader::Error(uint32_t offset, std::string message) {
  const Document::Position at = doc_.PositionOf(offset);
  result_.status = {false, file_, at.line, at.column, std::move(message)};
  return false;
}

bool Loader::Command(uint32_t n) {
  if (!IsNonEmptyList(n) || !doc_.IsSymbol(Child(n, 0))) {
    return Error(Offset(n), "expected a command");
  }
  const std::string_view head = doc_.Text(Child(n, 0));
  if (head == "sort") return SortCommand(n);
  if (head == "datatype") return DatatypeCommand(n);
  if (head == "datatype*") return DatatypesCommand(n);
  if (head == "constructor") return ConstructorCommand(n);
  if (head == "function") return FunctionCommand(n);
  if (head == "relation") return RelationCommand(n);
  if (head == "ruleset") return RulesetCommand(n);
  if (head == "unstable-combined-ruleset") return CombinedRulesetCommand(n);
  if (head == "rule") return RuleCommand(n);
  if (head == "rewrite") return RewriteCommand(n, false);
  if (head == "birewrite") return RewriteCommand(n, true);
  if (head == "run") return RunCommand(n);
  if (head == "run-schedule") return RunScheduleCommand(n);
  if (head == "let") return LetCommand(n);
  if (head == "check") return CheckCommand(n);
  if (head == "fail") return FailCommand(n);
  if (head == "extract") return ExtractCommand(n);
  if (head == "print-size") return PrintSizeCommand(n);
  if (head == "print-function") return PrintFunctionCommand(n);
  if (head == "print-stats") return PrintStatsCommand(n);
  if (head == "include") return IncludeCommand(n);
  if (head == "input") return InputCommand(n);
  if (head == "output") return OutputCommand(n);
  if (head == "push") return PushCommand(n);
  if (head == "pop") return PopCommand(n);
  const bool known = head == "set" || head == "union" || head == "delete" || head == "subsume" ||
                     head == "panic" || graph_.FindFunction(head).valid() ||
                     !graph_.FindPrimitives(head).empty();
  if (!known) {
    return Error(Offset(n),
                 "unknown command or function '" + std::string(head.substr(0, 80)) + "'");
  }
  return ActionCommand(n);
}

bool Loader::Takes(uint32_t n, uint32_t low, uint32_t high) {
  const uint32_t given = Count(n) - 1;
  if (given >= low && given <= high) return true;
  const std::string head(doc_.Text(Child(n, 0)));
  const std::string range =
      low == high ? std::to_string(low) : std::to_string(low) + " to " + std::to_string(high);
  return Error(Offset(n),
               "'" + head + "' takes " + range + " arguments, " + std::to_string(given) + " given");
}

bool Loader::NewName(uint32_t n, std::string_view* name) {
  if (!doc_.IsSymbol(n)) return Error(Offset(n), "expected a name");
  *name = doc_.Text(n);
  if ((*name)[0] == ':') return Error(Offset(n), "expected a name, found " + Quoted(n));
  return true;
}

bool Loader::NewSortName(uint32_t n, std::string_view* name) {
  if (!NewName(n, name)) return false;
  if (graph_.FindSort(*name).valid()) {
    return Error(Offset(n), "sort " + Quoted(n) + " is declared already");
  }
  return true;
}

bool Loader::NewFunctionName(uint32_t n, std::string_view* name) {
  if (!NewName(n, name)) return false;
  // `select` is a primitive of ours alone; a program may have its own.
  const bool primitive = !graph_.FindPrimitives(*name).empty() && *name != "select";
  if (graph_.FindFunction(*name).valid() || primitive || *name == "=") {
    return Error(Offset(n), Quoted(n) + " is declared already");
  }
  return true;
}

bool Loader::SortName(uint32_t n, SortId* sort) {
  if (!doc_.IsSymbol(n)) return Error(Offset(n), "expected a sort");
  *sort = graph_.FindSort(doc_.Text(n));
  return sort->valid() || Error(Offset(n), "unknown sort " + Quoted(n));
}

bool Loader::SortList(uint32_t n, std::vector<SortId>* sorts) {
  if (!doc_.IsList(n)) return Error(Offset(n), "expected a list of sorts");
  if (Count(n) > EGraph::kMaxArity) {
    return Error(Offset(n), "more than " + std::to_string(EGraph::kMaxArity) + " arguments");
  }
  sorts->resize(Count(n));
  for (uint32_t i = 0; i < Count(n); ++i) {
    if (!SortName(Child(n, i), &(*sorts)[i])) return false;
  }
  return true;
}

bool Loader::OptionValue(uint32_t n, uint32_t* i, uint32_t* value) {
  const uint32_t option = Child(n, *i);
  if (++*i >= Count(n)) return Error(Offset(option), Quoted(option) + " needs a value");
  *value = Child(n, *i);
  return true;
}

}  // namespace l3c::egraph
