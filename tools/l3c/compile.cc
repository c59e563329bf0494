#include "tools/l3c/compile.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <utility>

#include "cost/calibrated.h"
#include "cost/machine.h"
#include "layers/l0/kernel_file.h"
#include "layers/l0/lower/lower.h"
#include "layers/l0/plan_text.h"
#include "layers/l0/plan_verify.h"
#include "layers/l1/discover.h"
#include "layers/l1/flow.h"
#include "layers/l1/lower.h"
#include "layers/l1/text.h"
#include "layers/l1/verify.h"
#include "layers/l2/inputs.h"
#include "layers/l2/lower.h"
#include "layers/l2/methods.h"
#include "layers/l2/verify.h"
#include "layers/l3/inline.h"
#include "layers/l3/parse.h"
#include "layers/l3/print.h"
#include "layers/l3/verify.h"
#include "layers/support/units.h"
#include "tools/l3c/count_rows.h"
#include "tools/l3c/disk_cache.h"
#include "tools/l3c/evidence_store.h"
#include "tools/l3c/files.h"
#include "tools/l3c/json_lines.h"
#include "tools/l3c/option_values.h"
#include "tools/l3c/other_placements.h"
#include "tools/l3c/overrides.h"
#include "tools/l3c/relocate.h"
#include "tools/l3c/user_rules.h"
#ifdef L3C_HAS_LLVM
#include "tools/l3c/own_code.h"
#endif

namespace l3c::tools {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

const std::string kSplits[] = {"train", "test"};

search::LoweringOptions SearchOptions(const Options& options,
                                      const std::vector<search::AddedRules>& rules) {
  search::LoweringOptions search;
  search.keep_order = options.numerics == "exact";
  search.rules = rules;
  search.mode = *search::ParseMode(options.search);
  search.forced = {options.force.begin(), options.force.end()};
  for (const auto& [name, count] : options.budget) {
    if (name == "work") search.budget.work = count;
    if (name == "nodes") {
      search.budget.egraph_nodes = count;
      search.budget.nodes_given = true;
    }
    if (name == "candidates") search.budget.candidates = count;
  }
  return search;
}

// What methods are told apart on where no --system is given: the machine of the priors, the same
// everywhere, so that a specification has one method.
l1::System ReferenceSystem() {
  l1::System system;
  system.name = "reference";
  l1::SystemNode ssd, ram, cpu;
  ssd.name = "ssd_0";
  ssd.kind = l1::NodeKind::kStorage;
  ram.name = "ram_0";
  ram.kind = l1::NodeKind::kMemory;
  ram.capacity = int64_t{64} * 1000 * 1000 * 1000;
  cpu.name = "cpu_0";
  cpu.kind = l1::NodeKind::kCompute;
  cpu.isa = "x86_64";
  cpu.cores = 2;
  cpu.features = {"avx2", "fma", "avx512f"};
  system.nodes = {ssd, ram, cpu};
  system.edges = {{0, 1, false, 2e9, {}}, {1, 2, true, 25e9, {}}};
  return system;
}

// The node that the first tensor graph runs on: what the plan's kernels are made for.
const l1::SystemNode& ComputeNode(const l1::Program& program) {
  return program.system.nodes[program.graphs.front().node];
}

// Of kernels that run something else than their UOps; the interpreter runs the UOps.
bool CodeIsSound(const l0::Plan& plan, const std::string& engine,
                 support::Diagnostics& diagnostics) {
  if (plan.code.empty() || engine == "interpreter") return true;
#ifdef L3C_HAS_LLVM
  return CheckOwnCode(plan, diagnostics);
#else
  diagnostics
      .Error(support::Kind::kEnvironment, plan.code.front().span,
             "this build has no kernel compiler, which code of a kernel's own needs")
      .Fix("--engine interpreter runs the UOps");
  return false;
#endif
}

// Adds the time since construction to `timings` when it goes.
class Timer {
 public:
  Timer(std::vector<Timing>& timings, std::string part)
      : timings_(timings), part_(std::move(part)), start_(Clock::now()), cpu_(CpuSeconds()) {}
  ~Timer() {
    timings_.push_back({std::move(part_),
                        std::chrono::duration<double>(Clock::now() - start_).count(),
                        CpuSeconds() - cpu_});
  }

 private:
  static double CpuSeconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }

  std::vector<Timing>& timings_;
  std::string part_;
  Clock::time_point start_;
  double cpu_;
};

}  // namespace

std::optional<Layer> LayerOf(const support::SourceFile& source) {
  constexpr std::string_view kHeader = "# l3c ";
  const std::string_view text = source.text();
  for (Layer layer : {Layer::kL3, Layer::kL2, Layer::kL1, Layer::kL0}) {
    if (text.starts_with(std::string(kHeader) + std::string(LayerName(layer)) + " ")) return layer;
  }
  for (Layer layer : {Layer::kL3, Layer::kL2, Layer::kL1, Layer::kL0}) {
    if (fs::path(source.name()).extension() == "." + std::string(LayerName(layer))) return layer;
  }
  return std::nullopt;
}

bool Compilation::Succeeds(bool ok) {
  if (ok && !diagnostics_.has_errors()) return true;
  const bool lowered = texts_.size() > 1 && diagnostics_.source() == texts_.back().source.get();
  const support::Diagnostics told =
      lowered ? Relocate(diagnostics_, *texts_.back().source, *texts_.front().source,
                         LayerName(texts_.back().layer))
              : diagnostics_;
  std::cerr << (options_.sarif ? told.RenderSarif() : told.Render(options_.color));
  PrintJsonDiagnostics(told);
  return false;
}

bool Compilation::Load() {
  std::optional<support::SourceFile> source =
      support::SourceFile::Read(options_.file, diagnostics_);
  if (!source) return Succeeds(false);
  std::optional<std::vector<search::AddedRules>> rules = ReadUserRules(options_);
  if (!rules) return false;
  rules_ = *std::move(rules);
  const std::optional<Layer> layer = LayerOf(*source);
  if (!layer) {
    return EnvironmentError("cannot tell the layer of '" + options_.file + "'",
                            "name it .l3, .l2, .l1 or .l0, or begin it with '# l3c LAYER v1'");
  }
  Timer timer(timings_, "parse");
  return Enter(*layer, std::make_unique<support::SourceFile>(std::move(*source))) &&
         KnowsEveryData();
}

bool Compilation::Enter(Layer layer, std::unique_ptr<support::SourceFile> text) {
  const support::SourceFile& source = *text;
  texts_.push_back({layer, std::move(text)});
  diagnostics_.set_source(&source);
  switch (layer) {
    case Layer::kL3:
      l3_ = l3::Parse(source, diagnostics_);
      return Succeeds(l3_ && l3::InlineFiles(*l3_, ReadBeside(), diagnostics_) &&
                      l3::Verify(*l3_, diagnostics_));
    case Layer::kL2:
      l2_ = l2::ParseModule(source, diagnostics_);
      return Succeeds(l2_ && l2::Verify(*l2_, diagnostics_));
    case Layer::kL1:
      l1_ = l1::ParseProgram(source, diagnostics_);
      return Succeeds(l1_ && l1::Verify(*l1_, diagnostics_) &&
                      l1::VerifyTrains(*l1_, diagnostics_) && KernelFilesAreThere());
    case Layer::kL0:
      l0_ = l0::ParsePlan(source, diagnostics_);
      return Succeeds(l0_ && l0::VerifyPlan(*l0_, diagnostics_) && FitsMemory() &&
                      CodeIsSound(*l0_, options_.engine, diagnostics_));
  }
  return false;
}

bool Compilation::KernelFilesAreThere() {
  if (texts_.size() > 1) return true;  // made from another text, whose own lowering reads them
  for (const l1::TensorGraph& graph : l1_->graphs) {
    for (const auto& [value, hatch] : graph.kernels) {
      if (hatch.layer != "l0" || hatch.directive != "kernel") continue;
      const std::optional<std::string> path = l0::KernelPath(hatch);
      std::error_code ignored;
      if (!path || fs::is_regular_file(*path, ignored)) continue;
      diagnostics_.Error(support::Kind::kEnvironment, hatch.span, "cannot read '" + *path + "'")
          .Fix("paths of kernels are relative to the file that names them");
    }
  }
  return true;
}

bool Compilation::FitsMemory() {
  if (!options_.memory) return true;
  int64_t bytes = 0;
  for (const l0::Pool& pool : l0_->pools) bytes += pool.size;
  if (bytes <= *options_.memory) return true;
  diagnostics_
      .Error(support::Kind::kResourceBound, {},
             "the plan takes " + support::PrintInteger(bytes) +
                 " bytes of memory, and --memory gives it " +
                 support::PrintInteger(*options_.memory))
      .Fix("lower it again, from L1 or above, with --memory: a plan has no decision left");
  return false;
}

l3::ReadText Compilation::ReadBeside() const {
  const fs::path folder = fs::path(options_.file).parent_path();
  return [folder](const std::string& path) -> std::optional<std::string> {
    support::Diagnostics unread;
    auto source = support::SourceFile::Read((folder / path).string(), unread);
    if (!source) return std::nullopt;
    return std::string(source->text());
  };
}

bool Compilation::LowerTo(Layer target) {
  if (target < layer()) {
    return EnvironmentError("'" + options_.file + "' is an " + std::string(LayerName(layer())) +
                                " program: it cannot be raised to " +
                                std::string(LayerName(target)),
                            "--to takes its own layer or a lower one");
  }
  if (l1_ && layer() == Layer::kL1 && target != Layer::kL1 && l1::IsSystemFragment(*l1_)) {
    return EnvironmentError("'" + options_.file + "' holds a system and no program",
                            "place a program on it: l3c run PROGRAM --system " + options_.file);
  }
  if (layer() == Layer::kL1 && target != Layer::kL1) l1::AddDefaultPhases(*l1_);
  if (!ApplyOverrides()) return false;
  if (layer() == Layer::kL1 && target != Layer::kL1) {
    const absl::Status status = CountRowsOfStages(
        *l1_, options_.synthetic, [this](const std::string& name, const std::string& path) {
          return DataFolder(name, path);
        });
    if (!status.ok()) {
      return EnvironmentError(std::string(status.message()),
                              "docs/data.md says what a folder of data holds; `rows: n` in the "
                              "sample of a stage needs none");
    }
  }
  if (target == layer()) {
    // Canonical text of the same program.
    std::string text;
    switch (target) {
      case Layer::kL3:
        text = l3::Print(*l3_);
        break;
      case Layer::kL2:
        text = l2::PrintModule(*l2_);
        break;
      case Layer::kL1:
        text = l1::PrintProgram(*l1_);
        break;
      case Layer::kL0:
        text = l0::PrintPlan(*l0_);
        break;
    }
    return Enter(target, std::make_unique<support::SourceFile>(options_.file, std::move(text)));
  }
  while (layer() != target) {
    bool ok = false;
    switch (layer()) {
      case Layer::kL3:
        ok = LowerSpec();
        break;
      case Layer::kL2:
        ok = LowerMethod();
        break;
      case Layer::kL1:
        ok = LowerPlacement();
        break;
      case Layer::kL0:
        break;
    }
    if (!ok) return false;
  }
  return true;
}

bool Compilation::LowerSpec() {
  Timer timer(timings_, "l3->l2");
  l2::LowerConstraints constraints;
  constraints.rows = TrainRows();
  if (options_.pick) constraints.pick = static_cast<size_t>(*options_.pick);
  l1::System system = ReferenceSystem();
  if (!options_.system.empty() && !FindSystem(system)) return false;
  constraints.simulate = [&](const l2::Module& module) { return StepSeconds(module, system); };
  search::LoweringResult<l2::Module> result =
      l2::LowerToL2(*l3_, constraints, SearchOptions(options_, rules_));
  explanations_.push_back(std::move(result.explanation));
  if (!result.ok()) return Fail(*result.failure);
  return EnterLowered(Layer::kL2, l2::PrintModule(result.best()));
}

std::optional<double> Compilation::StepSeconds(const l2::Module& module,
                                               const l1::System& system) const {
  l1::LowerOptions lowering;
  lowering.system = system;
  for (const l3::Data& data : module.spec.data) {
    lowering.data[data.name] = {"data/" + data.name, {{"train", kAssumedTrainRows}}};
  }
  // What is asked of the nodes of another system is nothing to this one.
  l2::Module unplaced = module;
  unplaced.spec.hints.clear();
  for (l2::Methods& methods : unplaced.methods) methods.hints.clear();
  // Methods are told apart by what they take on one node: its plan is what can be costed.
  lowering.search.forced["l1/partition"] = "whole";
  const auto placed = l1::Lower(unplaced, lowering);
  if (!placed.ok()) return std::nullopt;
  l0::lower::LowerOptions planning;
  planning.search.mode = search::Mode::kGreedy;
  planning.search.rules = rules_;
  planning.numerics = *egraph::ParseNumerics(options_.numerics);
  planning.memory = options_.memory;
  planning.cache = TheCache();
  planning.cache_kind = "estimate";
  const cost::CpuCostModel costs(cost::MachineOf(ComputeNode(placed.best())));
  support::Diagnostics unread;
  const auto planned = l0::lower::Lower(placed.best(), costs, planning, unread);
  if (!planned.ok() || unread.has_errors()) return std::nullopt;
  return planned.candidates.front().cost.front().value;
}

std::optional<l1::LowerOptions> Compilation::PlacementOptions() {
  l1::LowerOptions lowering;
  lowering.epochs = options_.epochs;
  lowering.steps = options_.steps;
  lowering.seed = options_.seed;
  lowering.search = SearchOptions(options_, rules_);
  lowering.isas.clear();  // a placement says where, whatever runs there
  lowering.folder = fs::path(options_.file).parent_path().string();
  if (!FindSystem(lowering.system) || !FindData(lowering.data)) return std::nullopt;
  return lowering;
}

bool Compilation::LowerMethod() {
  Timer timer(timings_, "l2->l1");
  placing_ = PlacementOptions();
  if (!placing_) return false;
  search::LoweringResult<l1::Program> result = l1::Lower(*l2_, *placing_);
  explanations_.push_back(std::move(result.explanation));
  if (!result.ok()) return Fail(*result.failure);
  return EnterLowered(Layer::kL1, l1::PrintProgram(result.best()));
}

bool Compilation::PlaceOtherwise(int64_t needed) {
  if (!placing_) return false;  // the placement is the user's
  if (!refused_) {
    refused_.emplace();
    refused_->diagnostics = refused_->least = diagnostics_;
    refused_->needed = needed;
    refused_->placing = explanations_[explanations_.size() - 2];
    refused_->others = OtherPlacements(refused_->placing);
    refused_->texts.push_back(std::move(texts_.back()));
  } else {
    if (options_.memory && needed < refused_->needed) {
      refused_->least = diagnostics_;
      refused_->needed = needed;
    }
    refused_->texts.push_back(std::move(texts_.back()));
  }
  texts_.pop_back();
  explanations_.pop_back();
  Timer timer(timings_, "l2->l1");
  while (refused_->next < refused_->others.size() && refused_->texts.size() < kMostPlacements) {
    const OtherPlacement& other = refused_->others[refused_->next++];
    l1::LowerOptions lowering = *placing_;
    lowering.search.forced[other.decision] = other.label;
    search::LoweringResult<l1::Program> result = l1::Lower(*l2_, lowering);
    if (!result.ok()) continue;
    std::string text = l1::PrintProgram(result.best());
    const bool known = std::any_of(refused_->texts.begin(), refused_->texts.end(),
                                   [&](const LayerText& t) { return t.source->text() == text; });
    if (known) continue;
    TellWhatDidNotFit(refused_->placing, other, refused_->diagnostics.all().front().message,
                      result.explanation);
    explanations_.back() = std::move(result.explanation);
    diagnostics_ = {};
    if (!EnterLowered(Layer::kL1, std::move(text))) return false;
    if (!MissingBackend()) return true;
    refused_->texts.push_back(std::move(texts_.back()));
    texts_.pop_back();
  }
  // None fits: of all memories together the least that is enough is told, else what the first
  // lacks.
  explanations_.back() = std::move(refused_->placing);
  texts_.push_back(std::move(refused_->texts.front()));
  diagnostics_ = refused_->least;
  return false;
}

std::optional<Compilation::NoBackend> Compilation::MissingBackend() const {
  const std::vector<std::string> isas = l1::LowerOptions().isas;
  std::vector<uint32_t> used;
  for (const l1::TensorGraph& graph : l1_->graphs) used.push_back(graph.node);
  for (const l1::Actor& actor : l1_->actors) used.push_back(actor.node);
  for (const l1::Stage& stage : l1_->stages) used.push_back(stage.node);
  for (uint32_t n : used) {
    const l1::SystemNode& node = l1_->system.nodes[n];
    if (std::find(isas.begin(), isas.end(), node.isa) != isas.end()) continue;
    return NoBackend{"node " + node.name + " has isa " + node.isa + ", which has no backend yet",
                     node.span};
  }
  return std::nullopt;
}

l0::lower::LowerOptions Compilation::PlanOptions() const {
  l0::lower::LowerOptions lowering;
  lowering.search = SearchOptions(options_, rules_);
  lowering.numerics = *egraph::ParseNumerics(options_.numerics);
  lowering.explain = options_.explain;
  lowering.memory = options_.memory;
  lowering.cache = TheCache();
  return lowering;
}

std::optional<Compilation::Alternative> Compilation::PlanWith(const AlternativeOptions& wanted,
                                                              std::string& why) {
  const std::unique_ptr<cost::CpuCostModel> costs = CostsOf(ComputeNode(*l1_));
  if (costs == nullptr) return std::nullopt;
  l0::lower::LowerOptions lowering = PlanOptions();
  lowering.search.forced.insert(wanted.forced.begin(), wanted.forced.end());
  if (wanted.mode) lowering.search.mode = *wanted.mode;
  lowering.explain = wanted.losers;
  if (!wanted.kept) lowering.cache = nullptr;
  support::Diagnostics unread;
  search::LoweringResult<l0::Plan> result = l0::lower::Lower(*l1_, *costs, lowering, unread);
  if (result.ok() && !unread.has_errors()) {
    return Alternative{std::move(result.candidates.front().target), std::move(result.explanation),
                       result.candidates.front().cost.front()};
  }
  if (!result.ok()) search::ReportFailure(*result.failure, {}, unread);
  why = unread.all().front().message;
  return std::nullopt;
}

bool Compilation::Take(Alternative alternative) {
  searched_step_ = alternative.step;
  explanations_.back() = std::move(alternative.explanation);
  diagnostics_.set_source(nullptr);
  texts_.pop_back();
  return EnterLowered(Layer::kL0, l0::PrintPlan(alternative.plan));
}

bool Compilation::LowerPlacement() {
  Timer timer(timings_, "l1->l0");
  if (const auto missing = MissingBackend()) {
    diagnostics_.Error(support::Kind::kSafety, missing->span, missing->message)
        .Fix(
            "`l3c lower --to l1` prints the placement; to run it, place everything on nodes with "
            "isa: " +
            l1::LowerOptions().isas.front());
    return Succeeds(false);
  }
  const std::unique_ptr<cost::CpuCostModel> costs = CostsOf(ComputeNode(*l1_));
  if (costs == nullptr) return false;
  search::LoweringResult<l0::Plan> result =
      l0::lower::Lower(*l1_, *costs, PlanOptions(), diagnostics_);
  explanations_.push_back(std::move(result.explanation));
  for (const std::string& cut : explanations_.back().cuts) {
    std::cerr << options_.file << ": warning: " << cut << "\n";
  }
  if (result.needed_bytes && PlaceOtherwise(*result.needed_bytes)) return true;
  if (diagnostics_.has_errors()) return Succeeds(false);
  if (!result.ok()) return Fail(*result.failure);
  searched_step_ = result.candidates.front().cost.front();
  // Here, where errors still point at what the user wrote.
  if (!CodeIsSound(result.best(), options_.engine, diagnostics_)) return Succeeds(false);
  return EnterLowered(Layer::kL0, l0::PrintPlan(result.best())) && EveryForcedChoiceExists();
}

std::unique_ptr<cost::CpuCostModel> Compilation::CostsOf(const l1::SystemNode& node) {
  ChosenEvidence chosen;
  if (!ChooseEvidence(options_.evidence, chosen)) return nullptr;
  costs_rest_on_ = chosen.said;
  const cost::CpuMachine machine = cost::MachineOf(node);
  if (!chosen.evidence) return std::make_unique<cost::CpuCostModel>(machine);
  if (!cost::Describes(*chosen.evidence, node)) {
    costs_rest_on_ = "costs are analytical: node '" + node.name +
                     "' is another machine than the one that was measured";
    return std::make_unique<cost::CpuCostModel>(machine);
  }
  evidence_revision_ = chosen.evidence->revision;
  return std::make_unique<cost::CalibratedCostModel>(machine, *chosen.evidence);
}

std::optional<cost::StepTime> Compilation::PredictedStep() {
  if (!l0_ || !l1_) return std::nullopt;
  const std::unique_ptr<cost::CpuCostModel> costs = CostsOf(ComputeNode(*l1_));
  if (costs == nullptr) return std::nullopt;
  return cost::PredictTrainingStep(*l0_, *costs);
}

bool Compilation::ApplyOverrides() {
  const RunLength length{options_.epochs, options_.steps, options_.seed};
  if (layer() == Layer::kL1) return Override(*l1_, length);
  if (layer() == Layer::kL0) return Override(*l0_, length);
  return true;  // the lowering to L1 takes them
}

bool Compilation::EnterLowered(Layer layer, std::string text) {
  const std::string name =
      fs::path(options_.file).stem().string() + "." + std::string(LayerName(layer));
  return Enter(layer, std::make_unique<support::SourceFile>(name, std::move(text)));
}

bool Compilation::Fail(const search::SearchFailure& failure) {
  search::ReportFailure(failure, {}, diagnostics_);
  return Succeeds(false);
}

bool Compilation::EveryForcedChoiceExists() const {
  std::vector<std::string> ids;
  for (const search::Explanation& explanation : explanations_) {
    for (const search::Decision& decision : explanation.decisions) ids.push_back(decision.id);
  }
  for (const auto& [id, choice] : options_.force) {
    if (std::find(ids.begin(), ids.end(), id) != ids.end()) continue;
    const std::string closest = support::ClosestMatch(id, ids);
    return EnvironmentError("--force " + id + "=" + choice + ": there is no such decision",
                            closest.empty() ? "'l3c optimize FILE --explain' lists the decisions"
                                            : "did you mean '" + closest + "'?");
  }
  return true;
}

bool Compilation::KnowsEveryData() const {
  std::vector<std::string> declared;
  if (l3_) {
    for (const l3::Data& data : l3_->data) declared.push_back(data.name);
  } else if (l2_) {
    for (const l3::Data& data : l2_->spec.data) declared.push_back(data.name);
  } else if (l1_) {
    for (const l1::BoundData& data : l1_->data) declared.push_back(data.name);
  } else if (l0_) {
    declared = NamesOfData(*l0_);
  }
  return KnowsData(options_.data, declared);
}

namespace {

// Of this machine's features those that a program for another CPU may use: "+avx2,+amx-bf16".
void KeepFeatures(const std::string& features, l1::System& system) {
  const std::string asked = "," + features + ",";
  for (l1::SystemNode& node : system.nodes) {
    std::erase_if(node.features, [&](std::string name) {
      std::replace(name.begin(), name.end(), '_', '-');
      return asked.find(",+" + name + ",") == std::string::npos;
    });
    // None would say that nothing is known of it.
    if (node.kind == l1::NodeKind::kCompute && node.features.empty()) node.features = {"sse2"};
  }
}

}  // namespace

bool Compilation::FindSystem(l1::System& system) {
  if (options_.system.empty()) {
    system = l1::DiscoverHost();
    if (!options_.cpu_features.empty()) KeepFeatures(options_.cpu_features, system);
    return true;
  }
  // A file that is not there has no place in the program.
  diagnostics_.set_source(nullptr);
  std::optional<support::SourceFile> source =
      support::SourceFile::Read(options_.system, diagnostics_);
  if (!source) {
    const bool told = Succeeds(false);
    diagnostics_.set_source(texts_.back().source.get());
    return told;
  }
  diagnostics_.set_source(&*source);
  std::optional<l1::Program> program = l1::ParseProgram(*source, diagnostics_);
  const bool ok = Succeeds(program && l1::Verify(*program, diagnostics_));
  diagnostics_.set_source(texts_.back().source.get());
  if (!ok) return false;
  if (program->system.nodes.empty()) {
    return EnvironmentError("'" + options_.system + "' has no system");
  }
  system = std::move(program->system);
  return true;
}

std::string Compilation::DataFolder(const std::string& name, const std::string& path) const {
  if (const auto given = options_.data.find(name); given != options_.data.end()) {
    return fs::absolute(given->second).lexically_normal().string();
  }
  const fs::path beside = fs::path(options_.file).parent_path() / path;
  std::error_code ignored;
  const fs::path found = fs::is_directory(beside, ignored) ? beside : fs::path(path);
  return fs::absolute(found).lexically_normal().string();
}

bool Compilation::FindData(std::map<std::string, l1::DatasetInfo>& data) {
  const int64_t window = l2_->methods.empty() ? 0 : l2::PlanOf(l2_->methods.front().sample).window;
  for (const l3::Data& declaration : l2_->spec.data) {
    l1::DatasetInfo info;
    const auto given = options_.data.find(declaration.name);
    info.path = given != options_.data.end() ? given->second : "data/" + declaration.name;
    const std::string folder = DataFolder(declaration.name, "data/" + declaration.name);
    std::error_code ignored;
    if (options_.synthetic) {
      info.rows = {{"train", kAssumedTrainRows}, {"test", kAssumedTestRows}};
    } else if (!fs::is_directory(folder, ignored) && options_.verb == Verb::kOptimize) {
      std::cerr << "note: data '" << declaration.name << "' is not at " << folder
                << "; planning for " << kAssumedTrainRows << " samples (--data " << declaration.name
                << "=DIR)\n";
      info.rows = {{"train", kAssumedTrainRows}, {"test", kAssumedTestRows}};
    } else if (const absl::Status status =
                   CountRows(SourceOf(declaration), folder, window, kSplits, info.rows);
               !status.ok()) {
      return EnvironmentError(
          std::string(status.message()),
          given == options_.data.end()
              ? "pass --data " + declaration.name + "=DIR, or --synthetic for random data"
              : "docs/data.md says what the folder of --data holds; --synthetic trains on random "
                "data");
    }
    data[declaration.name] = std::move(info);
  }
  return true;
}

std::optional<Compilation::Rows> Compilation::ReadData() const {
  std::vector<std::pair<l0::DataSource, int64_t>> sources;  // and rows that make a sample
  if (const l3::Module* spec = l2_ ? &l2_->spec : l3_ ? &*l3_ : nullptr) {
    const bool sampled = l2_ && !l2_->methods.empty();
    const int64_t window = sampled ? l2::PlanOf(l2_->methods.front().sample).window : 0;
    for (const l3::Data& data : spec->data) {
      sources.emplace_back(SourceOf(data), window);
      for (size_t f = 0; f < data.fields.size(); ++f) {
        sources.back().first.fields[f].classes = l2::ClassesOfField(*spec, data, data.fields[f]);
      }
    }
  } else if (l1_) {
    for (const l1::BoundData& data : l1_->data) {
      sources.emplace_back(SourceOf(data), 0);
      for (const l1::Stage& stage : l1_->stages) {
        if (stage.sampling.data == data.name) sources.back().second = stage.sampling.window;
      }
    }
  } else if (l0_) {
    for (uint32_t s = 0; s < l0_->sources.size(); ++s) {
      sources.emplace_back(l0_->sources[s], 0);
      for (const l0::Sampler& sampler : l0_->samplers) {
        if (sampler.source == s) sources.back().second = sampler.window;
      }
    }
  }
  Rows rows;
  for (const auto& [source, window] : sources) {
    const auto given = options_.data.find(source.name);
    if (given == options_.data.end()) continue;
    const absl::Status status =
        ReadRows(source, DataFolder(source.name, ""), window, kSplits, rows[source.name]);
    if (status.ok()) continue;
    EnvironmentError(std::string(status.message()),
                     "docs/data.md says what the folder of --data holds");
    return std::nullopt;
  }
  return rows;
}

std::optional<int64_t> Compilation::TrainRows() const {
  if (options_.synthetic || l3_->models.empty() || l3_->models.front().in.empty()) return {};
  const l3::Data* data = l3_->FindData(l3_->models.front().in.front().owner);
  if (data == nullptr) return {};
  std::map<std::string, int64_t> rows;
  const std::string folder = DataFolder(data->name, "data/" + data->name);
  if (!CountRows(SourceOf(*data), folder, /*window=*/0, kSplits, rows).ok()) return {};
  return rows["train"];
}

std::vector<NamedText> Compilation::NamedTexts() const {
  std::vector<NamedText> texts;
  for (const LayerText& text : texts_) texts.emplace_back(text.layer, text.source->text());
  return texts;
}

std::map<std::string, std::string> Compilation::DataFolders() const {
  std::map<std::string, std::string> folders;
  for (const l0::DataSource& source : l0_->sources) {
    folders[source.name] = DataFolder(source.name, source.path);
  }
  return folders;
}

}  // namespace l3c::tools
