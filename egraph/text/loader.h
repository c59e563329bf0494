// Carrying out the commands of a text, one by one, on a graph.
//
// Each group of commands has a file of its own: declarations.cc, rules.cc, schedules.cc,
// actions.cc, printing.cc, files.cc. A method `XCommand(n)` carries out the list `n` of the
// document and is false on an error, which result_.status then holds.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <ios>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/extract/term.h"
#include "egraph/program.h"
#include "egraph/proof.h"
#include "egraph/run.h"
#include "egraph/text/compile.h"
#include "egraph/text/sexp.h"

namespace l3c::egraph {

class Suggestion;

// The text of an expression on one line, cut where it gets long.
std::string OneLine(std::string_view text);

class Loader {
 public:
  Loader(EGraph& graph, std::string_view file, const ProgramOptions& options)
      : graph_(graph), file_(file), options_(options) {}
  ProgramResult Load(std::string_view text);

 private:
  using Node = Document::Node;
  bool Error(uint32_t offset, std::string message, ErrorKind kind = ErrorKind::kSyntax);
  bool Error(const CompileError& error) { return Error(error.offset, error.message, error.kind); }
  uint32_t Offset(uint32_t n) const { return doc_.node(n).begin; }
  uint32_t Count(uint32_t n) const { return doc_.node(n).child_count; }
  uint32_t Child(uint32_t n, uint32_t i) const { return doc_.child(n, i); }
  bool IsNonEmptyList(uint32_t n) const { return doc_.IsList(n) && Count(n) != 0; }
  std::string Quoted(uint32_t n) const { return "'" + OneLine(doc_.Text(n)) + "'"; }
  struct CommandEntry;
  static const CommandEntry kCommands[];
  bool Command(uint32_t n);

  // --- Names and options
  void OfferFunctions(Suggestion* suggestion) const;
  bool Takes(uint32_t n, uint32_t low, uint32_t high);
  bool NewName(uint32_t n, std::string_view* name);
  bool NewSortName(uint32_t n, std::string_view* name);
  bool NewFunctionName(uint32_t n, std::string_view* name);
  bool SortName(uint32_t n, SortId* sort);
  bool SortList(uint32_t n, std::vector<SortId>* sorts);
  bool IsOption(uint32_t n) const { return doc_.IsSymbol(n) && doc_.Text(n)[0] == ':'; }
  bool OptionValue(uint32_t n, uint32_t* i, uint32_t* value);

  // --- Declarations
  // (sort NAME [(CONTAINER SORT...)] [:internal-uf CONSTRUCTOR])
  bool SortCommand(uint32_t n);
  // (Vec i64)
  bool ContainerSort(std::string_view name, uint32_t n);
  // (UnstableFn (i64 i64) String)
  bool FnSort(std::string_view name, uint32_t n);
  // Options `:cost N` and `:unextractable` from child `i` on.
  bool ConstructorOptionsFrom(uint32_t n, uint32_t i, ConstructorOptions* options);
  bool DatatypeCommand(uint32_t n);
  // The constructors of a datatype, children of `n` from `first` on.
  bool Variants(uint32_t n, uint32_t first, SortId sort);
  // Sorts that name each other: (datatype* (S (C T)) (sort T (Vec S)) …). All plain sorts are
  // declared first, then containers, then constructors.
  bool DatatypesCommand(uint32_t n);
  bool IsContainerPart(uint32_t part) const;
  bool ConstructorCommand(uint32_t n);
  bool FunctionCommand(uint32_t n);
  std::optional<Merge> ReadMerge(uint32_t expr, SortId output);
  bool RelationCommand(uint32_t n);
  bool RulesetCommand(uint32_t n);
  bool CombinedRulesetCommand(uint32_t n);

  // --- Rules
  struct RuleOptions {
    std::string name;
    RulesetId ruleset = kDefaultRuleset;
    Numerics numerics = Numerics::kExact;
    uint32_t when = Id<void>::kNone;  // list of facts
    bool subsume = false;
    bool naive = false;
    bool reads = false;  // actions may read the values of functions
  };
  bool ReadRuleOptions(uint32_t n, uint32_t i, bool rewrite, RuleOptions* options);
  void AddRule(uint32_t n, const RuleOptions& options, std::string name, Query query,
               Compiler& compiler);
  bool RuleCommand(uint32_t n);
  bool RewriteCommand(uint32_t n) { return Rewrite(n, false); }
  bool BirewriteCommand(uint32_t n) { return Rewrite(n, true); }
  bool Rewrite(uint32_t n, bool both_ways);
  bool OneWay(uint32_t n, uint32_t from, uint32_t to, const RuleOptions& options, std::string name);

  // --- Running
  bool FinishRun(uint32_t n, const Schedule& schedule);
  bool ReadQuery(uint32_t n, uint32_t first, Query* query);
  // (run [RULESET] [N] [:until FACT...]), from child `first` on.
  std::optional<Schedule> ReadRun(uint32_t n, SchedulerId scheduler = {}, uint32_t first = 1);
  std::optional<Schedule> ReadRunWith(uint32_t n);
  bool LetSchedulerCommand(uint32_t n);
  // The ruleset named by `n`, or an error.
  std::optional<RulesetId> ReadRuleset(uint32_t n);
  std::optional<Schedule> ReadSchedule(uint32_t n);
  bool RunCommand(uint32_t n);
  bool RunScheduleCommand(uint32_t n);

  // --- Actions at the top level
  // Runs what `compiler` has gathered; `value`, if any, is read from `operand` afterwards.
  bool Perform(uint32_t n, Compiler& compiler, const Operand* operand, Value* value);
  bool ActionCommand(uint32_t n);
  bool Evaluate(uint32_t n, uint32_t expr, EGraph::Global* result);
  bool LetCommand(uint32_t n);

  // --- Asking
  bool CheckCommand(uint32_t n);
  bool CheckFailed(uint32_t n);
  std::optional<bool> Holds(uint32_t n, uint32_t first, uint32_t last);
  std::optional<bool> HasMatchInTime(const Query& query);
  // Whether `expr` has a value in the graph; nothing where that cannot be asked, or not in time.
  std::optional<bool> IsPresent(uint32_t expr);
  std::string ValueInGraph(uint32_t expr);
  bool FailCommand(uint32_t n);
  // Costs of the graph as it is; kept while it stays the same.
  const TermExtractor& Terms();
  bool ExtractCommand(uint32_t n);
  // Keeps what a command has printed, within the limit of all.
  bool Print(uint32_t n, Printed printed);
  // What goes to files counts as well.
  bool CountOutput(uint32_t n, size_t bytes);
  size_t OutputLeft() const { return options_.max_output - output_; }
  // Where to cut a term that is printed after `taken` bytes: cut, it is more than there is room
  // for.
  size_t TermLimit(size_t taken) const {
    const size_t left = OutputLeft() < taken ? 0 : OutputLeft() - taken;
    return std::min(left + kLongestCharacter, TermExtractor::kMaxBytes);
  }
  static constexpr size_t kLongestCharacter = 4;
  // The class to extract in place of `value`; itself but for sorts with `:internal-uf`.
  Value Leader(SortId sort, Value value) const;

  // --- Proofs
  // A text with a command `prove` needs a log from its start.
  void EnableProofsIfAsked();
  std::optional<Proof> ProveQuery(uint32_t n, const Query& query);
  bool PrintProofOf(uint32_t n, const Query& query);
  // Under options_.prove_checks: proves a check that holds, and counts it.
  bool ProveCheck(uint32_t n, const Query& query);
  bool ProveCommand(uint32_t n);
  bool ProveExistsCommand(uint32_t n);
  bool WhyNotCommand(uint32_t n);

  // --- Printing
  bool FunctionName(uint32_t n, FunctionId* f);
  bool PrintSizeCommand(uint32_t n);
  static std::string CsvField(const std::string& text);
  // (print-function f [N] [:mode default|csv] [:file "name"])
  bool PrintFunctionCommand(uint32_t n);
  bool PrintStatsCommand(uint32_t n);

  // --- Files
  bool FileName(uint32_t n, std::filesystem::path* path);
  bool ReadFile(uint32_t n, std::filesystem::path* path, std::string* text);
  bool WriteFile(uint32_t n, const std::string& text, std::ios::openmode mode);
  bool IncludeCommand(uint32_t n);
  // A fact of a tab-separated file in a column of a table.
  bool ReadField(SortId sort, std::string_view field, Value* value);
  bool InputCommand(uint32_t n);
  static std::string_view Trimmed(std::string_view text);
  bool OutputCommand(uint32_t n);

  // --- Saving
  bool ReadCount(uint32_t n, uint64_t* count);
  bool PushCommand(uint32_t n);
  bool PopCommand(uint32_t n);

  static constexpr size_t kMaxPushed = 100'000;
  // A search for what to prove looks at no more rows.
  static constexpr uint64_t kMaxProveRows = 20'000'000;
  static constexpr size_t kMaxIncludes = 50;      // one within the other
  static constexpr size_t kMaxIncluded = 10'000;  // in all
  // Values nest as deep as container sorts do, and reading them recurses.
  static constexpr size_t kMaxSorts = 2000;
  // Those that apply functions come for every three sorts that fit.
  static constexpr size_t kMaxPrimitives = 1000000;

  EGraph& graph_;
  const std::string file_;
  const ProgramOptions& options_;
  Document doc_;
  ProgramResult result_;
  // One for each level that the program has opened.
  std::vector<size_t> extracted_at_push_;
  // Of sorts with `:internal-uf`: the constructor that says, for a class, which one to extract.
  std::map<SortId, std::string> leaders_;
  size_t depth_ = 0;     // files that include this one
  size_t included_ = 0;  // files included so far, by all files
  size_t output_ = 0;    // bytes printed and written
  // Of the check that is carried out, with all that a failed one says.
  std::chrono::steady_clock::time_point check_began_;
  StopReason stopped_ = StopReason::kTimeLimit;  // what ended the search of HasMatchInTime()
  std::optional<TermExtractor> terms_;
  uint64_t terms_version_ = 0;
};

}  // namespace l3c::egraph
