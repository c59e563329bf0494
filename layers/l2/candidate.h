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
#include "layers/l3/ir.h"

namespace l3c::l2 {

// The lists that indices point into: what the specification and the priors leave to choose from.
struct Space {
  const l3::Module* spec = nullptr;
  const l3::Model* model = nullptr;
  Objective objective;
  Priors priors;  // lists cut down to what an annotation of the specification allows
  Shape input;
  int64_t features = 0;  // elements of one sample of the input
  int64_t outputs = 0;
  bool distribution = false;    // the network ends in softmax
  std::vector<int64_t> widths;  // of hidden stages, ascending
  int64_t max_stages = 0;
  std::vector<std::vector<size_t>> fitting_losses;  // by term that leaves a choice
  std::vector<std::string> loss_terms;              // their names
  bool rest_every = false;           // many short epochs: evaluated and kept about ten times in all
  std::optional<Form> fixed_sample;  // #[l2::sample(…)]
  std::optional<Form> fixed_update;  // #[l2::update(…)]
  std::vector<Phase> fixed_phases;   // of a model that it trains together with
};

struct HiddenStage {
  size_t width = 0;       // index into Space::widths
  size_t norm = 0;        // into priors.norms
  size_t activation = 0;  // into priors.activations
};

struct Choice {
  std::vector<HiddenStage> hidden;
  size_t batch = 0;
  size_t optimizer = 0;
  size_t rate = 0;
  size_t warmup = 0;
  size_t decay = 0;
  std::vector<size_t> losses;  // by term, into priors.losses
  size_t epochs = 0;
};

// Decision ids and labels, in the order in which they are explained:
//   l2/MODEL/depth, l2/MODEL/layer1.width|norm|activation, …, sample.batch, update.optimizer,
//   update.lr, update.warmup, update.decay, loss.TERM, phases.epochs
std::vector<std::pair<std::string, std::string>> Decisions(const Space& space,
                                                           const Choice& choice);

// Every label that the decision can have, whatever the others are; in the fixed order of the lists.
// Nothing for an id that no candidate has.
std::optional<std::vector<std::string>> Labels(const Space& space, const std::string& id);
// All ids that some candidate has.
std::vector<std::string> AllDecisionIds(const Space& space);

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
