// The commands by name, and what they share: names, counts of arguments, options.
#include "egraph/text/loader.h"

#include <utility>

#include "egraph/text/suggest.h"
#include "egraph/utf8.h"

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
    if (line.size() >= kMaxRuleName && !ContinuesCharacter(c)) return line + "…";
    line += c;
  }
  return line;
}

ProgramResult Loader::Load(std::string_view text) {
  graph_.set_max_pool_bytes(options_.budget.max_bytes);
  if (text.size() > options_.max_bytes) {
    result_.status = {false,
                      file_,
                      1,
                      1,
                      "the text is larger than " + std::to_string(options_.max_bytes) + " bytes",
                      ErrorKind::kResourceBound};
    return std::move(result_);
  }
  if (!doc_.Read(text)) {
    Error(doc_.error_offset(), doc_.error(), doc_.error_kind());
    return std::move(result_);
  }
  EnableProofsIfAsked();
  for (uint32_t command : doc_.top_level()) {
    if (!Command(command)) break;
  }
  // What the program has pushed and not popped stays.
  for (; depth_ == 0 && !extracted_at_push_.empty(); extracted_at_push_.pop_back()) {
    graph_.DropLevel();
  }
  return std::move(result_);
}

bool Loader::Error(uint32_t offset, std::string message, ErrorKind kind) {
  const Document::Position at = doc_.PositionOf(offset);
  result_.status = {false, file_,  at.line,           at.column, std::move(message),
                    kind,  offset, doc_.EndOf(offset)};
  return false;
}

struct Loader::CommandEntry {
  std::string_view name;
  bool (Loader::*carry_out)(uint32_t n);
};

const Loader::CommandEntry Loader::kCommands[] = {
    {"birewrite", &Loader::BirewriteCommand},
    {"check", &Loader::CheckCommand},
    {"constructor", &Loader::ConstructorCommand},
    {"datatype", &Loader::DatatypeCommand},
    {"datatype*", &Loader::DatatypesCommand},
    {"delete", &Loader::ActionCommand},
    {"extract", &Loader::ExtractCommand},
    {"fail", &Loader::FailCommand},
    {"function", &Loader::FunctionCommand},
    {"include", &Loader::IncludeCommand},
    {"input", &Loader::InputCommand},
    {"let", &Loader::LetCommand},
    {"let-scheduler", &Loader::LetSchedulerCommand},
    {"output", &Loader::OutputCommand},
    {"panic", &Loader::ActionCommand},
    {"pop", &Loader::PopCommand},
    {"print-function", &Loader::PrintFunctionCommand},
    {"print-size", &Loader::PrintSizeCommand},
    {"print-stats", &Loader::PrintStatsCommand},
    {"prove", &Loader::ProveCommand},
    {"prove-exists", &Loader::ProveExistsCommand},
    {"push", &Loader::PushCommand},
    {"relation", &Loader::RelationCommand},
    {"rewrite", &Loader::RewriteCommand},
    {"rule", &Loader::RuleCommand},
    {"ruleset", &Loader::RulesetCommand},
    {"run", &Loader::RunCommand},
    {"run-schedule", &Loader::RunScheduleCommand},
    {"set", &Loader::ActionCommand},
    {"sort", &Loader::SortCommand},
    {"subsume", &Loader::ActionCommand},
    {"union", &Loader::ActionCommand},
    {"unstable-combined-ruleset", &Loader::CombinedRulesetCommand},
    {"why-not", &Loader::WhyNotCommand},
};

bool Loader::Command(uint32_t n) {
  if (!IsNonEmptyList(n) || !doc_.IsSymbol(Child(n, 0))) {
    return Error(Offset(n), "expected a command, such as (check (= a b))");
  }
  const std::string_view head = doc_.Text(Child(n, 0));
  for (const CommandEntry& command : kCommands) {
    if (command.name == head) return (this->*command.carry_out)(n);
  }
  if (graph_.FindFunction(head).valid() || !graph_.FindPrimitives(head).empty()) {
    return ActionCommand(n);
  }
  Suggestion suggestion(head);
  for (const CommandEntry& command : kCommands) suggestion.Offer(command.name);
  OfferFunctions(&suggestion);
  return Error(Offset(n), "unknown command or function " + Quoted(Child(n, 0)) + suggestion.Text());
}

void Loader::OfferFunctions(Suggestion* suggestion) const {
  for (uint32_t f = 0; f < graph_.function_count(); ++f) {
    suggestion->Offer(graph_.function(FunctionId{f}).name);
  }
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
    return Error(Offset(n), "sort " + Quoted(n) + " is declared already", ErrorKind::kSafety);
  }
  return true;
}

bool Loader::NewFunctionName(uint32_t n, std::string_view* name) {
  if (!NewName(n, name)) return false;
  // `select` is a primitive of ours alone; a program may have its own.
  const bool primitive = !graph_.FindPrimitives(*name).empty() && *name != "select";
  if (graph_.FindFunction(*name).valid() || primitive || *name == "=") {
    return Error(Offset(n), Quoted(n) + " is declared already", ErrorKind::kSafety);
  }
  if (graph_.FindGlobal(*name) != nullptr) {
    return Error(Offset(n), Quoted(n) + " is the name of a global", ErrorKind::kSafety);
  }
  return true;
}

bool Loader::SortName(uint32_t n, SortId* sort) {
  if (!doc_.IsSymbol(n)) return Error(Offset(n), "expected a sort");
  *sort = graph_.FindSort(doc_.Text(n));
  if (sort->valid()) return true;
  Suggestion suggestion(doc_.Text(n));
  for (uint32_t s = 0; s < graph_.sort_count(); ++s) suggestion.Offer(graph_.sort(SortId{s}).name);
  return Error(Offset(n), "unknown sort " + Quoted(n) + suggestion.Text(), ErrorKind::kSafety);
}

bool Loader::SortList(uint32_t n, std::vector<SortId>* sorts) {
  if (!doc_.IsList(n)) return Error(Offset(n), "expected a list of sorts");
  if (Count(n) > EGraph::kMaxArity) {
    return Error(Offset(n), "more than " + std::to_string(EGraph::kMaxArity) + " arguments",
                 ErrorKind::kResourceBound);
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
