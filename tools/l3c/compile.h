// From a file of any layer to any layer below it. The text of each layer is the interface: what a
// lowering returns is printed and parsed again before the next one starts, so that a plan reached
// in one go and a plan reached through files are the same bytes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "cost/step_time.h"
#include "layers/l0/lower/lower.h"
#include "layers/l0/plan.h"
#include "layers/l1/ir.h"
#include "layers/l1/lower.h"
#include "layers/l2/ir.h"
#include "layers/l3/inline.h"
#include "layers/l3/ir.h"
#include "layers/search/lowering.h"
#include "layers/support/diagnostics.h"
#include "layers/support/source.h"
#include "tools/l3c/options.h"
#include "tools/l3c/other_placements.h"
#include "tools/l3c/run_folder.h"

namespace l3c::tools {

// One layer's program as text. The source outlives the IR that points into it.
struct LayerText {
  Layer layer = Layer::kL3;
  std::unique_ptr<support::SourceFile> source;
};

struct Timing {
  std::string part;  // "parse", "l3->l2", …
  double seconds = 0;
  double cpu_seconds = 0;  // of the processor, on all threads
};

// By the first line of the file, else by the extension of its name.
std::optional<Layer> LayerOf(const support::SourceFile& source);

class Compilation {
 public:
  explicit Compilation(const Options& options) : options_(options) {}

  // Reads and verifies options.file. False after printing what is wrong.
  bool Load();
  // Lowers step by step to `target`, which may not lie above the file's own layer.
  bool LowerTo(Layer target);

  // Of an L1 program: the first of its nodes whose instruction set has no backend, so that it
  // cannot be lowered to L0, and what the message says. Nothing where all of them have one.
  struct NoBackend {
    std::string message;
    support::Span span;
  };
  std::optional<NoBackend> MissingBackend() const;
  bool EveryForcedChoiceExists() const;  // false after printing which one does not

  // Another plan of the same placement. Nothing where there is none, and why in the string.
  struct AlternativeOptions {
    search::ForcedChoices forced;      // beside those of the command line
    std::optional<search::Mode> mode;  // instead of the command line's
    bool losers = false;               // their costs are wanted
    bool kept = false;                 // in the cache of searches
  };
  struct Alternative {
    l0::Plan plan;
    search::Explanation explanation;
    search::CostComponent step;
  };
  std::optional<Alternative> PlanWith(const AlternativeOptions& wanted, std::string& why);
  // It takes the place of the plan that was reached. False after printing what is wrong.
  bool Take(Alternative alternative);

  const l1::Program& placement() const { return *l1_; }  // where it has been reached
  Layer layer() const { return texts_.back().layer; }    // reached so far
  const std::vector<LayerText>& texts() const { return texts_; }
  std::vector<NamedText> NamedTexts() const;  // the same without their places
  const l0::Plan& plan() const { return *l0_; }
  const std::vector<search::Explanation>& explanations() const { return explanations_; }
  const std::vector<Timing>& timings() const { return timings_; }
  // What the costs of kernels rest on, for people; "" before the lowering to L0.
  const std::string& costs_rest_on() const { return costs_rest_on_; }
  std::optional<int64_t> evidence_revision() const { return evidence_revision_; }
  // What a step of every phase takes by the cost model; nothing before the lowering to L0.
  // What the search added up for a training step.
  const std::optional<search::CostComponent>& searched_step() const { return searched_step_; }
  // What the plan's training step is predicted to take; nothing for a plan written by hand.
  std::optional<cost::StepTime> PredictedStep();
  // What lies in the folders that --data names, read as the program declares it: the rows of each
  // split by data. Nothing after printing what is wrong.
  using Rows = std::map<std::string, std::map<std::string, int64_t>>;
  std::optional<Rows> ReadData() const;
  // Folder of each data source, as --data and the default places give it; absolute.
  std::map<std::string, std::string> DataFolders() const;

 private:
  // Parses and verifies `text` as `layer`; it becomes the program that is lowered next.
  bool Enter(Layer layer, std::unique_ptr<support::SourceFile> text);
  l3::ReadText ReadBeside() const;  // of files that the specification names
  bool LowerSpec();                 // l3 → l2
  // Of one training step of the method on the system, by the cost model; nothing when it has no
  // plan there.
  std::optional<double> StepSeconds(const l2::Module& module, const l1::System& system) const;
  std::optional<l1::LowerOptions> PlacementOptions();  // nothing after printing what is wrong
  bool LowerMethod();                                  // l2 → l1
  // Where no plan of the placement fits into memory: the next one by cost that has not been tried
  // takes its place. False where there is none.
  bool PlaceOtherwise(int64_t needed);
  bool LowerPlacement();  // l1 → l0
  // The cost model of a compute node: calibrated where there is evidence of it.
  std::unique_ptr<cost::CpuCostModel> CostsOf(const l1::SystemNode& node);
  l0::lower::LowerOptions PlanOptions() const;  // what the command line says of the lowering to L0
  bool KernelFilesAreThere();                   // that an L1 text names
  bool FitsMemory();                            // --memory on a plan
  bool ApplyOverrides();                        // --epochs, --steps, --seed on a file of L1 or L0
  bool EnterLowered(Layer layer, std::string text);
  bool Succeeds(bool ok);  // prints pending diagnostics
  bool Fail(const search::SearchFailure& failure);
  bool KnowsEveryData() const;  // that --data names
  bool FindSystem(l1::System& system);
  // Of the data that the model reads; nothing when they are not there, which is no error yet.
  std::optional<int64_t> TrainRows() const;
  bool FindData(std::map<std::string, l1::DatasetInfo>& data);
  std::string DataFolder(const std::string& name, const std::string& path) const;

  const Options options_;
  support::Diagnostics diagnostics_;
  std::vector<search::AddedRules> rules_;  // --rules
  std::vector<LayerText> texts_;
  std::optional<l3::Module> l3_;
  std::optional<l2::Module> l2_;
  std::optional<l1::Program> l1_;
  std::optional<l0::Plan> l0_;
  std::optional<l1::LowerOptions> placing_;  // of a placement that was searched
  // Placements without a plan that fits.
  struct Refused {
    support::Diagnostics diagnostics;  // of the first
    support::Diagnostics least;        // of the one that needs least
    int64_t needed = 0;                // bytes, by that one
    search::Explanation placing;       // its own
    std::vector<OtherPlacement> others;
    size_t next = 0;  // of `others`
    std::vector<LayerText> texts;
  };
  std::optional<Refused> refused_;
  std::vector<search::Explanation> explanations_;
  std::vector<Timing> timings_;
  std::string costs_rest_on_;
  std::optional<int64_t> evidence_revision_;
  std::optional<search::CostComponent> searched_step_;
};

}  // namespace l3c::tools
