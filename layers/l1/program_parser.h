// The parser of L1, split over the parse_*.cc files by declaration; resolve.cc is its second pass.
//
// A file is read in two passes. The first reads everything but the bodies of handlers and tensor
// graphs and the expressions of stages, which it leaves as spans; so a body may rely on anything
// that stands in the file, before it or after: the windows of an actor, or the buffers that a stage
// forwards to a graph whose arguments are written without types. Nodes and data are declared before
// their use.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "layers/l1/ir.h"
#include "layers/l1/program_index.h"
#include "layers/support/parser.h"

namespace l3c::l1 {

using support::Kind;
using support::Name;

class ProgramParser : public support::ParserBase {
 public:
  using ParserBase::ParserBase;

  std::optional<Program> Parse();

 private:
  // What the first pass leaves for the second.
  struct RawArg {
    Name name;
    std::optional<TensorType> type;
  };
  struct RawGraph {
    std::vector<RawArg> args;
    std::vector<std::pair<Name, Name>> reads;
    std::vector<Name> outputs;
    Span body;
  };
  struct RawHandler {
    size_t actor = 0;
    size_t handler = 0;
    std::vector<RawArg> args;
    Span body;
  };
  // Of a stage: the windows that it reads, and its parameters whose type nothing says yet.
  struct RawStage {
    std::vector<std::pair<Name, Name>> reads;
    std::vector<size_t> untyped;
  };
  // The names of a stage's body: what is declared anywhere in it, since a name is declared once,
  // and what can be seen at this point, since what a branch declares ends with the branch.
  struct StageScope {
    std::map<std::string, Span> declared;
    std::set<std::string> buffers, values;
    std::vector<std::string> entered;  // in the order in which they came into sight
  };
  struct MetricNames {
    Name graph, numerator, denominator;
  };

  // ---- Blocks and names (parse.cc) --------------------------------------------------------------
  void Unexpected();
  // Reports a second declaration of a name in one of the name spaces.
  bool Declare(std::map<std::string, Span>& space, const Name& name, std::string_view what);
  bool AtMargin();
  // `{ field … }`, at the brace; a bad field is skipped, and the next one read.
  bool Block(const std::function<bool()>& field);
  bool ParseReference(std::vector<Reference>& references, std::string_view what);
  // `actor.window, …`, after `reads:`.
  bool ParseReads(std::vector<std::pair<Name, Name>>& reads);

  // ---- Systems and data (parse_system.cc) ------------------------------------------------------
  void ParseSystem();
  bool ParseNode();
  bool ParseNodeProperty(const Name& property, SystemNode& node);
  void CheckNode(const SystemNode& node);
  bool ParseEdge();
  std::optional<uint32_t> ExpectNode(std::string_view what);
  std::optional<uint32_t> ResolveNode(const Name& name);
  std::optional<TensorType> ParseDomain();
  bool CheckShape(const tensor::Shape& shape, Span span);
  void ParseData();
  bool ParseField(BoundData& data, std::map<std::string, Span>& fields);
  bool ParseFieldPlace(const BoundData& data, BoundField& field);

  // ---- Actors (parse_actor.cc) -----------------------------------------------------------------
  void ParseActor();
  bool ParseHome(Actor& actor);
  bool ParseState(Actor& actor, std::map<std::string, Span>& states);
  bool ParseInit(StateField& field);
  bool ParseWindow(Actor& actor, std::map<std::string, Span>& windows,
                   std::vector<std::pair<size_t, Name>>& window_fields);
  bool ParseHandler(Actor& actor, std::map<std::string, Span>& messages,
                    std::vector<RawHandler>& handlers);

  // ---- Stages (parse_stage.cc) -----------------------------------------------------------------
  void ParseStage();
  const BoundData* ResolveData(const Name& name);
  bool ParseSampling(Sampling& sampling);
  std::optional<Statement> ParseExit();
  bool ParseParam(Stage& stage, RawStage& raw, StageScope& scope);
  bool ParseExits(std::vector<Statement>& exits);
  bool ParseProcess(Stage& stage, RawStage& raw);
  bool ParseBody(std::vector<Statement>& body, StageScope& scope);
  bool Declare(StageScope& scope, const Name& name, bool buffer);
  bool KnownBuffer(const StageScope& scope, const Name& name);
  void CheckSignature(const std::vector<Statement>& promised, const std::vector<Statement>& done,
                      Span span);
  std::optional<Statement> ParseStatement(StageScope& scope);
  bool ParseLetStatement(Statement& s, StageScope& scope);
  bool ParseReadStatement(Statement& s, StageScope& scope);
  bool ParseMoveStatement(Statement& s, StageScope& scope);  // decode, copy
  bool ParseIfStatement(Statement& s, StageScope& scope);
  // A name or the application of an op, unread.
  std::optional<Span> TakeExpression(std::string_view what);

  // ---- Graphs (parse_graph.cc) -----------------------------------------------------------------
  void ParseGraph();
  bool ParseArgs(std::vector<RawArg>& args);
  // `{ … }` unread; nothing when it is not closed.
  std::optional<Span> TakeBody();

  // ---- Pipelines, schedule (parse_schedule.cc) -------------------------------------------------
  void ParsePipeline();
  void ParseSchedule();
  bool ParseScheduleField(const Name& field, Schedule& schedule);
  bool ParseLabelled(std::string_view what, Name& name, std::set<std::string>& seen,
                     const std::vector<std::string>& labels,
                     const std::function<bool(const std::string&)>& value);
  bool ParsePhase(Schedule& schedule);
  bool ParseMetric(Schedule& schedule);

  // ---- Second pass (resolve.cc) ----------------------------------------------------------------
  void IndexForwards();
  void IndexEnds();
  std::optional<TensorType> ForwardedType(const std::string& unit, size_t position,
                                          const std::string& name);
  bool AddArguments(tensor::Graph& graph, const std::vector<RawArg>& args, const std::string& unit);
  bool AddState(tensor::Graph& graph, const StateField& field, const std::vector<RawArg>& args);
  bool ResolveReads(const std::vector<std::pair<Name, Name>>& reads);
  // Gives parameters that are written without a type that of what is forwarded to them; true when
  // any got one.
  bool TypeParams();
  void ReportUntyped();
  void BuildGraphs();
  void BuildHandlers();
  static void DropUnusedState(tensor::Graph& graph, const std::vector<std::string>& args);
  template <typename T>
  static std::vector<std::string> NamesOf(const std::vector<T>& items) {
    std::vector<std::string> names;
    for (const T& item : items) names.push_back(item.name);
    return names;
  }
  std::vector<std::string> Units() const;
  void ReportTwice(const std::vector<Reference>& references, std::string_view list);
  void ResolveIn(const std::vector<Reference>& references, std::string_view what,
                 const std::vector<std::string>& candidates);
  void ResolveReferences();
  void ResolveMetrics();

  // ---- Second pass of stages (resolve_stage.cc) ------------------------------------------------
  // What an expression of a stage may name, with its type.
  using StageValues = std::map<std::string, TensorType>;
  void BuildStages();
  void BuildBody(const Stage& stage, std::vector<Statement>& body, StageValues& values,
                 std::set<std::string>& buffers);
  bool BuildExpression(const Stage& stage, Statement& s, const StageValues& values);

  Program program_;
  bool system_seen_ = false;
  bool schedule_seen_ = false;
  std::map<std::string, Span> nodes_, data_, units_, pipelines_;
  std::map<std::string, size_t> node_numbers_, data_numbers_;  // into the lists of program_
  std::vector<RawStage> stages_;                               // parallel to program_.stages
  std::vector<RawGraph> graphs_;                               // parallel to program_.graphs
  std::vector<RawHandler> handlers_;
  std::vector<Name> phase_pipelines_;
  std::vector<MetricNames> metrics_;
  // Of the second pass: the declarations by name; who forwards to a unit.
  std::optional<ProgramIndex> index_;
  std::unordered_map<std::string, std::vector<std::pair<const Stage*, const Statement*>>> forwards_;
  std::unordered_map<std::string, const TensorGraph*> graph_before_;  // the last before a link
  std::unordered_map<std::string, TensorType> ended_;  // outputs of each pipeline's last graph
};

// Words that begin a declaration.
const std::vector<std::string>& Keywords();

}  // namespace l3c::l1
