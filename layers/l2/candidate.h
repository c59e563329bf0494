// One method as a point of the search space: an index for every choice. What the search enumerates,
// scores and explains; Build makes the L2 module of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layers/l2/ir.h"
#include "layers/l2/objective.h"
#include "layers/l2/priors.h"
#include "layers/l2/stage.h"
#include "layers/l3/ir.h"

namespace l3c::l2 {

// The lists that indices point into: what the specification and the priors leave to choose from.
struct Space {
  const l3::Module* spec = nullptr;
  const l3::Model* model = nullptr;
  Objective objective;
  Priors priors;  // lists cut down to what an annotation of the specification allows
  Shape input;
  Extent extent;           // of the input, as stages see it
  bool tokens = false;     // the input is class indices, each to be embedded
  int64_t vocabulary = 0;  // of the tokens
  int64_t outputs = 0;
  int64_t out_rows = 1;          // positions of the output
  int64_t out_columns = 1;       // likewise, of an image
  std::vector<StageKind> kinds;  // that there may be, keeping every property of the model or not
  std::vector<Readout> readouts;
  std::vector<std::string> asked;  // properties that stages must keep: "causal", "permutation"
  bool causal = false;             // attention sees no later position
  bool placed = true;              // tokens are told their positions
  int64_t max_channels = 0;        // of convolutions
  bool distribution = false;       // the network ends in softmax
  std::string actions;             // the group over which the network is averaged; "" for none
  int64_t action_axis = 0;         // of a reflection
  std::vector<int64_t> widths;     // of hidden stages, ascending
  int64_t max_stages = 0;
  std::vector<std::vector<size_t>> fitting_losses;  // by term that leaves a choice
  std::vector<std::string> loss_terms;              // their names
  bool rest_every = false;           // many short epochs: evaluated and kept about ten times in all
  std::optional<Form> fixed_sample;  // #[l2::sample(…)]
  std::optional<Form> fixed_update;  // #[l2::update(…)]
  std::optional<Form> fixed_backward;  // #[l2::backward(…)]
  std::vector<Phase> fixed_phases;     // of a model that it trains together with
};

// Whether a stage of the kind, or a readout, keeps a property of Space::asked.
bool Keeps(const Space& space, StageKind kind, const std::string& property);
bool Keeps(const Space& space, Readout readout, const std::string& property);
// Those of Space::kinds and Space::readouts that keep all of them.
std::vector<StageKind> LegalKinds(const Space& space);
std::vector<Readout> LegalReadouts(const Space& space);

struct HiddenStage {
  StageKind kind = StageKind::kDense;
  size_t width = 0;       // index into Space::widths; that of its input where it adds to it
  size_t norm = 0;        // into priors.norms
  size_t activation = 0;  // into priors.activations
};

struct Choice {
  size_t embed = 0;  // width of the tokens' vectors, into Space::widths
  std::vector<HiddenStage> hidden;
  Readout readout = Readout::kFlat;
  size_t batch = 0;
  size_t optimizer = 0;
  size_t rate = 0;
  size_t warmup = 0;
  size_t decay = 0;
  std::vector<size_t> losses;  // by term, into priors.losses
  size_t epochs = 0;
};

// Decision ids and labels, in the order in which they are explained:
//   l2/MODEL/depth, embed.width, layer1.kind|width|norm|activation, …, readout, sample.batch,
//   update.optimizer, update.lr, update.warmup, update.decay, loss.TERM, phases.epochs
// kind, embed and readout only where there is more than one; width and activation of the kinds that
// have one (stage.h).
std::vector<std::pair<std::string, std::string>> Decisions(const Space& space,
                                                           const Choice& choice);

// Every label that the decision can have, whatever the others are; in the fixed order of the lists.
// Nothing for an id that no candidate has.
std::optional<std::vector<std::string>> Labels(const Space& space, const std::string& id);
// All ids that some candidate has.
std::vector<std::string> AllDecisionIds(const Space& space);

// What each hidden stage reads, and last what the readout does.
std::vector<Extent> ExtentsOf(const Space& space, const Choice& choice);
// Sets the width of every stage that adds to its input to that of its input. Nothing where a stage
// may not stand where it does.
std::optional<Choice> Settle(const Space& space, Choice choice);

// Labels that a decision must have, or must not have. What candidates are searched under.
struct Restriction {
  std::map<std::string, std::string> required;
  std::map<std::string, std::vector<std::string>> excluded;

  bool Allows(const std::string& id, const std::string& label) const;
};

// The fixed order that breaks ties: fewer stages first, then index by index.
bool Before(const Choice& a, const Choice& b);

Form UpdateForm(const Space& space, const Choice& choice);
Module Build(const Space& space, const Choice& choice);

}  // namespace l3c::l2
