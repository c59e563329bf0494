#include "layers/l1/place_facts.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "layers/l1/place_cuts.h"
#include "layers/l1/place_failure.h"
#include "layers/l1/place_sites.h"
#include "layers/support/units.h"

namespace l3c::l1 {

std::string NodeDecision(const std::string& operation) { return "l1/node." + operation; }

std::string PartitionOf(const Site& site) {
  if (site.parts() == 1) return "whole";
  return (site.in_stages ? "stages(" : "data(") + std::to_string(site.parts()) + ")";
}

const std::vector<std::string>& PlacementFacts::ChoicesOf(const std::string& decision) const {
  static const std::vector<std::string> kNone;
  const auto it = choices.find(decision);
  return it == choices.end() ? kNone : it->second;
}

bool PlacementFacts::IsBeside(uint32_t home) const {
  return std::find(near.begin(), near.end(), home) == near.end();
}

namespace {

constexpr size_t kMostNodes = 16;
constexpr size_t kMostHosts = 8;  // nodes with a memory of their own beside them
constexpr size_t kLeastHosts = 2;
constexpr double kNoWay = std::numeric_limits<double>::infinity();

std::string Quoted(const std::string& text) { return "\"" + text + "\""; }
std::string BatchTerm(int64_t depth, const std::string& staging) {
  return "(Op1 \"load\" (Ahead " + std::to_string(depth) + " " + Quoted(staging) + " (Data)))";
}
std::string GradientTerm(const std::string& batch, const std::string& home) {
  return "(Op2 \"forward_backward\" " + batch + " (Params " + Quoted(home) + "))";
}
std::string NextTerm(const std::string& gradients, const std::string& home) {
  return "(Op2 \"model_state\" " + gradients + " (State " + Quoted(home) + "))";
}

std::string StreamedGradientTerm(const std::string& batch, const std::string& from_to) {
  return "(Op2 \"forward_backward\" " + batch + " (ParamsFrom " + from_to + "))";
}
std::string StreamedNextTerm(const std::string& gradients, const std::string& from_to) {
  return "(Op2 \"model_state\" " + gradients + " (StateFrom " + from_to + "))";
}

void AddOnce(std::vector<std::string>& list, const std::string& name) {
  if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
}

class FactWriter {
 public:
  FactWriter(const System& system, const StepDemand& demand, const PlacementModel& model,
             const std::vector<std::string>& isas, int64_t max_depth,
             const search::LoweringOptions& options, PlacementFacts& facts)
      : system_(system),
        demand_(demand),
        model_(model),
        isas_(isas),
        options_(options),
        facts_(facts) {
    facts_.max_depth = max_depth;
  }

  bool State() {
    std::optional<uint32_t> storage;
    std::vector<uint32_t> computing;
    for (uint32_t n = 0; n < system_.nodes.size(); ++n) {
      const SystemNode& node = system_.nodes[n];
      if (node.kind == NodeKind::kStorage && !storage) storage = n;
      if (node.kind != NodeKind::kCompute) continue;
      if (LocalMemories(system_, n).empty()) {
        Prune("node " + node.name, "it has no edge to a memory node and no vram");
      } else if (!MayUse(node)) {
        Prune("node " + node.name, "there is no backend for isa " + node.isa);
      } else {
        computing.push_back(n);
      }
    }
    if (!storage) return Fail("the system has no storage node for the data", "add one");
    if (computing.empty()) {
      return Fail("no compute node of the system can be used",
                  "add a node with isa: " + (isas_.empty() ? "x86_64" : isas_.front()) +
                      " and an edge to a memory node");
    }
    KeepFastest(computing);
    facts_.storage = *storage;
    facts_.text =
        "(set (Name (Data)) \"data\")\n(AtRest (Data) " + Quoted(Name(facts_.storage)) + ")\n";

    nodes_that_compute_ = static_cast<int64_t>(std::min(computing.size(), kMaxSharing));
    facts_.sites = SitesOf(system_, demand_, model_, computing, facts_.max_depth);
    if (options_.keep_order) {
      for (const Site& site : facts_.sites) {
        if (site.parts() > 1) facts_.out_of_order.insert(PartitionOf(site));
      }
      std::erase_if(facts_.sites, [](const Site& site) { return site.parts() > 1; });
    }
    TellWhatIsLeftOut(computing.size());
    for (const Site& site : facts_.sites) {
      facts_.site_named[site.label] = &site;
      Fact("Local", {site.label, site.place});
      if (site.in_stages) {
        Fact("InStages", {"forward_backward", site.label});
        AddOnce(facts_.choices[NodeDecision("forward_backward")], site.name);
        StateCuts(site);
      } else if (!site.beside) {
        Able("forward_backward", site);
      }
      AddOnce(facts_.choices[kPartitionId], PartitionOf(site));
      if (site.parts() > 1) continue;
      Able("model_state", site);
      // Files are read by the host's own processors.
      if (system_.nodes[site.nodes[0]].vram == 0) Able("load", site);
    }
    for (int64_t n : demand_.micro_batches) {
      facts_.text += "(Micro " + std::to_string(n) + ")\n";
      facts_.choices[kMicroId].push_back(std::to_string(n));
    }
    facts_.choices[kStagesId] = {"split", "fused"};
    // More steps in flight than stages are of no use: without a batch that is carried there are
    // two.
    const bool carried =
        std::any_of(facts_.sites.begin(), facts_.sites.end(),
                    [&](const Site& site) { return site.place != facts_.sites.front().place; });
    if (!carried) facts_.max_depth = std::min<int64_t>(facts_.max_depth, 2);
    for (int64_t d = 1; d <= facts_.max_depth; ++d)
      facts_.choices[kDepthId].push_back(std::to_string(d));
    if (!StateHomes()) return false;
    StateReplicas();
    StateRoom();
    StateLinks();
    return true;
  }

 private:
  bool Fail(std::string reason, std::string hint) {
    // The system is a text of its own: its places are none of the method's.
    facts_.failure = search::NoCandidates{std::move(reason), std::move(hint), {}};
    return false;
  }
  void Prune(std::string what, std::string why) {
    facts_.pruned.push_back({std::move(what), std::move(why), 1});
  }
  const std::string& Name(uint32_t node) const { return system_.nodes[node].name; }
  bool MayUse(const SystemNode& node) const {
    return isas_.empty() || std::find(isas_.begin(), isas_.end(), node.isa) != isas_.end();
  }

  // What there is to choose from grows with the third power of the nodes: of many the fastest are
  // looked at, and the fastest hosts, since those read the data.
  void KeepFastest(std::vector<uint32_t>& computing) {
    const auto is_memory = [](const SystemNode& n) { return n.kind == NodeKind::kMemory; };
    const auto memories =
        static_cast<size_t>(std::count_if(system_.nodes.begin(), system_.nodes.end(), is_memory));
    const size_t most = memories > kMostHosts ? kMostHosts : kMostNodes;
    if (computing.size() <= most) return;
    std::vector<uint32_t> fastest = computing;
    std::stable_sort(fastest.begin(), fastest.end(), [&](uint32_t a, uint32_t b) {
      return AssumedFlops(system_.nodes[a]) > AssumedFlops(system_.nodes[b]);
    });
    size_t kept = 0, hosts = 0;
    std::set<uint32_t> keep;
    for (uint32_t node : fastest) {
      const bool host = system_.nodes[node].vram == 0;
      if (kept < most || (host && hosts < kLeastHosts)) {
        keep.insert(node);
        ++kept;
        hosts += host ? 1 : 0;
      } else {
        Prune("node " + Name(node), "not looked at: of more than " + std::to_string(most) +
                                        " compute nodes only the fastest are");
      }
    }
    std::erase_if(computing, [&](uint32_t node) { return !keep.contains(node); });
  }

  void TellWhatIsLeftOut(size_t computing) {
    if (computing > kAllSets) {
      Prune("sets of nodes that share the work",
            "of " + std::to_string(computing) + " nodes those of the " + std::to_string(kAllSets) +
                " fastest are looked at, and those nearest to each node");
    }
    const auto some = std::count_if(facts_.sites.begin(), facts_.sites.end(),
                                    [](const Site& site) { return !site.all_cuts; });
    if (some > 0) {
      Prune("cuts of " + std::to_string(demand_.layers.size()) + " layers into stages",
            "those that balance the stages are looked at, the even one, and what comes of them by "
            "moving one layer");
    }
  }

  // From where the search begins to all cuts, by moving one layer over one boundary.
  void StateCuts(const Site& site) {
    const Cut even = EvenCut(demand_.layers.size(), site.parts());
    Fact("Even", {site.label, CutLabel(even)});
    for (const Cut& cut : site.cuts) {
      Fact("StageFits", {site.label, CutLabel(cut)});
      AddOnce(facts_.choices[kCutId], CutLabel(cut));
    }
    if (!site.all_cuts) {
      // What balances the stages need not be next to what is even: each is a beginning.
      for (const Cut& cut : site.cuts) Fact("Even", {site.label, CutLabel(cut)});
      return;
    }
    if (!shifted_.insert(site.parts()).second) return;
    std::set<Cut> seen = {even};
    std::vector<Cut> left = {even};
    while (!left.empty()) {
      const Cut cut = std::move(left.back());
      left.pop_back();
      for (Cut& moved : Shifted(cut)) {
        Fact("Shift", {CutLabel(cut), CutLabel(moved)});
        if (seen.insert(moved).second) left.push_back(std::move(moved));
      }
    }
  }

  bool StateHomes() {
    std::set<uint32_t> seen;
    for (const Site& site : facts_.sites) {
      if (site.parts() > 1) continue;
      const uint32_t memory = site.memories[0];
      if (!site.beside && facts_.IsBeside(memory)) facts_.near.push_back(memory);
      if (!seen.insert(memory).second) continue;
      if (model_.StateFits(memory)) {
        Fact("StateFits", {Name(memory)});
        facts_.homes.push_back(memory);
      } else {
        Prune("state in " + Name(memory),
              "state larger than " + Name(memory) + "'s memory: it needs " +
                  support::PrintBytes(static_cast<int64_t>(demand_.state_bytes)));
      }
      if (system_.nodes[memory].kind == NodeKind::kMemory) {
        facts_.stagings.push_back(memory);
        facts_.choices[kStagingId].push_back(Name(memory));
      }
    }
    FindStreams();
    for (uint32_t home : facts_.homes) {
      if (!facts_.IsBeside(home)) continue;
      AddOnce(facts_.choices[kStateId], kResident);
      AddOnce(facts_.choices[kStateId], "in " + Name(home));
    }
    if (facts_.homes.empty() && facts_.streams.empty()) {
      PlacementCause cause = WhyNoHome(system_, demand_, model_, facts_.near);
      return Fail(std::move(cause.reason), std::move(cause.hint));
    }
    if (facts_.homes.empty() && nodes_that_compute_ > 1) {
      facts_.why_one_node = "the state, in " + Name(facts_.streams[0].rests) +
                            ", is brought in by turns to one node alone";
      Prune("batches that nodes share", facts_.why_one_node);
    }
    for (int64_t parts = 2; parts <= nodes_that_compute_; ++parts) {
      if (demand_.CanShare(parts)) continue;
      const auto why = demand_.why_not_shared.find(parts);
      if (!demand_.why_beside_state.empty()) {
        Prune("a batch shared by " + std::to_string(parts) + " nodes", demand_.why_beside_state);
      } else if (why != demand_.why_not_shared.end()) {
        Prune("a batch shared by " + std::to_string(parts) + " nodes", why->second);
      }
    }
    return true;
  }

  // Where a node has no room for a step with all of the state, it may be brought in from another
  // memory in turns. Where there is room that is never slower.
  void FindStreams() {
    if (!demand_.why_beside_state.empty() || demand_.parameters == 0) return;
    for (const Site& site : facts_.sites) {
      if (site.parts() > 1) continue;
      const uint32_t near = site.memories[0];
      if (site.beside) continue;
      const bool roomy =
          std::any_of(facts_.stagings.begin(), facts_.stagings.end(), [&](uint32_t staging) {
            return model_.NeedOf(1, staging, near, site).too_small.empty();
          });
      if (roomy) continue;
      for (uint32_t rests = 0; rests < system_.nodes.size(); ++rests) {
        if (system_.nodes[rests].kind != NodeKind::kMemory || !model_.StateFits(rests) ||
            !model_.CanStream(rests, near) || model_.Reaches(site, rests)) {
          continue;  // what a node reaches it reads in place
        }
        facts_.streams.push_back({rests, &site});
        Fact("Streams", {Name(rests), Name(near)});
        AddOnce(facts_.choices[kStateId], kResident);
        AddOnce(facts_.choices[kStateId], "in " + Name(rests));
      }
    }
  }

  // Of nodes that share a batch, each may have all of the state: their gradients go round in a
  // ring.
  void StateReplicas() {
    if (!demand_.why_beside_state.empty()) return;
    for (const Site& site : facts_.sites) {
      if (!site.shares_batch() || model_.RingTime(site) == kNoWay) continue;
      bool fits = false;
      for (uint32_t staging : facts_.stagings) {
        const PlacementModel::Need need = model_.NeedReplicated(1, staging, site);
        fits = fits || need.too_small.empty();
        if (facts_.why_no_ring.empty()) facts_.why_no_ring = need.too_small;
      }
      if (!fits) continue;
      rings_.push_back(&site);
      Fact("Replicas", {site.place});
      Fact("Ring", {site.label, site.place});
      Able("model_state", site);
    }
    if (!rings_.empty()) facts_.choices[kGradientsId] = {kGather, kRing};
  }

  // What may be made where: the values of a step with so many in flight, staged in a memory.
  void StateRoom() {
    for (int64_t d = 1; d <= facts_.max_depth; ++d) {
      for (uint32_t staging : facts_.stagings) {
        facts_.text += "(Flight " + std::to_string(d) + " " + Quoted(Name(staging)) + ")\n";
        const std::string batch = BatchTerm(d, Name(staging));
        facts_.text += "(Room " + batch + " " + Quoted(Name(staging)) + ")\n";
        for (const PlacementFacts::Stream& stream : facts_.streams)
          StateStreamRoom(d, staging, batch, stream);
        for (const Site* site : rings_) StateRingRoom(d, staging, batch, *site);
        for (uint32_t home : facts_.homes) StateHomeRoom(d, staging, batch, home);
      }
    }
  }

  void StateHomeRoom(int64_t depth, uint32_t staging, const std::string& batch, uint32_t home) {
    const std::string gradients = GradientTerm(batch, Name(home));
    facts_.text += "(Room " + NextTerm(gradients, Name(home)) + " " + Quoted(Name(home)) + ")\n";
    std::set<std::string> places;
    for (const Site& site : facts_.sites) {
      if (site.beside || !places.insert(site.place).second) continue;
      const bool in_place = ReadsInPlace(site, home);
      const bool beside = in_place || (site.parts() == 1 && site.memories[0] == home);
      if (!beside && !demand_.why_beside_state.empty()) {
        facts_.why_not.try_emplace(site.name, demand_.why_beside_state);
        continue;
      }
      const PlacementModel::Need need = model_.NeedOf(depth, staging, home, site, in_place);
      if (!need.too_small.empty()) {
        for (const Site& other : facts_.sites) {
          if (other.place == site.place && !other.beside) {
            facts_.why_not.try_emplace(other.name, need.too_small);
          }
        }
        facts_.why_not_depth.try_emplace(depth, need.too_small);
        continue;
      }
      StateNeed(need, gradients, site.place);
    }
  }

  void StateRingRoom(int64_t depth, uint32_t staging, const std::string& batch, const Site& site) {
    const PlacementModel::Need need = model_.NeedReplicated(depth, staging, site);
    if (!need.too_small.empty()) {
      facts_.why_not_depth.try_emplace(depth, need.too_small);
      return;
    }
    const std::string gradients = GradientTerm(batch, site.place);
    const std::string sums = "(Op1 \"all_reduce\" " + gradients + ")";
    StateNeed(need, gradients, site.place);
    facts_.text += "(Room " + sums + " " + Quoted(site.place) + ")\n";
    facts_.text += "(Room " + NextTerm(sums, site.place) + " " + Quoted(site.place) + ")\n";
  }

  void StateNeed(const PlacementModel::Need& need, const std::string& value,
                 const std::string& place) {
    facts_.text += (need.tight ? "(Tight " : "(Room ") + value + " " + Quoted(place) + ")\n";
  }

  void StateStreamRoom(int64_t depth, uint32_t staging, const std::string& batch,
                       const PlacementFacts::Stream& stream) {
    const Site& site = *stream.site;
    const PlacementModel::Need need = model_.NeedStreamed(depth, staging, stream.rests, site);
    if (!need.too_small.empty()) {
      facts_.why_not.try_emplace(site.name, need.too_small);
      facts_.why_not_depth.try_emplace(depth, need.too_small);
      return;
    }
    const std::string from_to = Quoted(Name(stream.rests)) + " " + Quoted(Name(site.memories[0]));
    const std::string gradients = StreamedGradientTerm(batch, from_to);
    StateNeed(need, gradients, site.place);
    facts_.text +=
        "(Room " + StreamedNextTerm(gradients, from_to) + " " + Quoted(site.place) + ")\n";
  }

  void StateLinks() {
    std::set<std::pair<std::string, std::string>> known;
    const auto link = [&](const std::string& from, const std::string& to, double time) {
      if (from == to || time == kNoWay || !known.insert({from, to}).second) return;
      Fact("Link", {from, to});
    };
    for (uint32_t staging : facts_.stagings) {
      link(Name(facts_.storage), Name(staging), model_.ReadTime(facts_.storage, staging));
    }
    for (const Site& site : facts_.sites) {
      facts_.site_at.try_emplace(site.place, &site);
      for (uint32_t staging : facts_.stagings) {
        const double time = model_.BatchTime(staging, site);
        link(Name(staging), site.place, time);
        // A batch that is cut up is handed out by a stage behind the one that cuts it.
        if (site.parts() == 1 && Name(staging) != site.place && time != kNoWay) {
          adjacent_.insert({Name(staging), site.place});
        }
      }
      for (uint32_t home : facts_.homes) {
        if (ReadsInPlace(site, home)) continue;
        link(Name(home), site.place, model_.ParameterTime(home, site));
        link(site.place, Name(home), model_.GradientTime(site, home));
      }
    }
    for (const auto& [from, to] : adjacent_) Fact("Adjacent", {from, to});
    for (uint32_t home : facts_.homes) {
      if (!facts_.IsBeside(home)) continue;
      for (uint32_t near : facts_.near) {
        if (!InPlace(near, home)) continue;
        Fact("Reads", {"parameters", Name(home), Name(near)});
        Fact("Reads", {"gradients", Name(near), Name(home)});
      }
    }
  }

  // Whether all that work in a memory reach another one that state lies in, and no others do.
  bool InPlace(uint32_t near, uint32_t home) const {
    return std::all_of(facts_.sites.begin(), facts_.sites.end(), [&](const Site& site) {
      if (site.parts() > 1) return true;
      const bool works = !site.beside && site.memories[0] == near;
      const bool keeps = site.beside && site.memories[0] == home;
      return works ? model_.Reaches(site, home) : !keeps || model_.Reaches(site, near);
    });
  }
  bool ReadsInPlace(const Site& site, uint32_t home) const {
    return site.parts() == 1 && facts_.IsBeside(home) && !site.beside &&
           InPlace(site.memories[0], home);
  }

  // Once, where it can be in several memories.
  void Able(const std::string& op, const Site& site) {
    Fact("CanRun", {op, site.label});
    AddOnce(facts_.choices[NodeDecision(op)], site.name);
  }

  void Fact(const std::string& relation, const std::vector<std::string>& args) {
    facts_.text += "(" + relation;
    for (const std::string& arg : args) facts_.text += " " + Quoted(arg);
    facts_.text += ")\n";
  }

  const System& system_;
  const StepDemand& demand_;
  const PlacementModel& model_;
  const std::vector<std::string>& isas_;
  const search::LoweringOptions& options_;
  PlacementFacts& facts_;
  int64_t nodes_that_compute_ = 0;  // of those that may share a batch
  std::set<size_t> shifted_;        // numbers of stages whose cuts are stated
  std::vector<const Site*> rings_;  // whose nodes may each have the state
  std::set<std::pair<std::string, std::string>> adjacent_;  // staging memory, place
};

}  // namespace

std::unique_ptr<PlacementFacts> FactsOf(const System& system, const StepDemand& demand,
                                        const PlacementModel& model,
                                        const std::vector<std::string>& isas, int64_t max_depth,
                                        const search::LoweringOptions& options) {
  auto facts = std::make_unique<PlacementFacts>();
  FactWriter(system, demand, model, isas, max_depth, options, *facts).State();
  return facts;
}

}  // namespace l3c::l1
