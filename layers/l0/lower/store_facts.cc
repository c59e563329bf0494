#include "layers/l0/lower/store_facts.h"

#include <algorithm>

namespace l3c::l0::lower {

using tensor::NumElements;
using tensor::Op;

namespace {

bool IsLeaf(const Value& value) {
  return value.input >= 0 || value.definitions.front().op == Op::kConst ||
         value.definitions.front().op == Op::kIota;
}

class StoreFacts {
 public:
  StoreFacts(const ValueTable& table, const ElementCosts& costs, const AssertFact& fact)
      : table_(table), costs_(costs), fact_(fact) {
    users_.resize(table.values.size());
    again_.resize(table.values.size());
    for (ValueId v = 0; v < static_cast<ValueId>(table.values.size()); ++v) {
      for (const Definition& d : table.values[v].definitions) {
        for (ValueId input : d.inputs) {
          std::vector<ValueId>& users = users_[input];
          if (users.empty() || users.back() != v) users.push_back(v);
        }
      }
    }
  }

  uint64_t Assert(const Step& step, const std::set<ValueId>& kept, bool fuse) {
    uint64_t cheap = 0;
    std::set<uint32_t> changed;
    for (const StepOutput& output : step.outputs) {
      if (output.kind == StepOutput::Kind::kState) changed.insert(output.state);
    }
    const auto keep = [&](const char* relation, ValueId v) {
      const int32_t input = table_.values[v].input;
      if (input < 0) {
        fact_(relation, {v});
      } else if (step.inputs[input].kind == StepInput::Kind::kState &&
                 changed.contains(step.inputs[input].state)) {
        fact_("overwritten", {v});
      }
    };
    for (size_t o = 0; o < step.outputs.size(); ++o) {
      if (step.outputs[o].kind == StepOutput::Kind::kReport) keep("reported", table_.outputs[o]);
    }
    for (ValueId v : kept) keep("kept", v);
    for (ValueId v = 0; v < static_cast<ValueId>(table_.values.size()); ++v) {
      if (!fuse && !IsLeaf(table_.values[v])) {
        bool only_views = true;
        for (const Definition& d : table_.values[v].definitions) only_views &= IsView(d.op);
        if (!only_views) fact_("single", {v});
      }
      for (const Definition& d : table_.values[v].definitions) About(v, d);
      if (!fuse) continue;
      const bool forked = IsForked(v);
      if (!forked) {
        Recompute(v);
      } else if (IsWorthKeeping(v)) {
        fact_("forked", {v});
      } else {
        ++cheap;
      }
    }
    return cheap;
  }

 private:
  void About(ValueId v, const Definition& d) {
    if (IsReduction(d.op)) fact_("reduction", {v});
    if (IsContraction(d.op)) {
      fact_("contraction", {v});
      Factor(v, d.inputs[0]);
      Factor(v, d.inputs[1]);
    }
    if (d.op == Op::kGather || d.op == Op::kScatterAdd || d.op == Op::kRandom) {
      fact_("indexed", {v});
      for (ValueId input : d.inputs) {
        const ValueId base = Base(input);
        if (table_.values[base].input < 0) fact_("indexed", {base});
        if (base != input) fact_("unmapped", {input});
      }
    }
    if (d.op == Op::kExpand) {
      const ValueId base = Base(d.inputs[0]);
      const Value& operand = table_.values[base];
      if (!IsLeaf(operand) && NumElements(table_.values[v].shape) > NumElements(operand.shape)) {
        fact_("widened", {base});
      }
    }
    if (d.op == Op::kPad) {
      const ValueId base = Base(d.inputs[0]);
      if (table_.values[base].input < 0) fact_("unmapped", {base});
    }
    if (d.op == Op::kReshape && IsView(table_.values[d.inputs[0]].definitions.front().op) &&
        Reorders(d.inputs[0])) {
      fact_("unmapped", {d.inputs[0]});
    }
  }

  // What the first view definitions lead to.
  ValueId Base(ValueId v) const {
    while (IsView(table_.values[v].definitions.front().op)) {
      v = table_.values[v].definitions.front().inputs[0];
    }
    return v;
  }

  // Whether views between v and its base change the order of elements.
  bool Reorders(ValueId v) const {
    while (IsView(table_.values[v].definitions.front().op)) {
      const Definition& d = table_.values[v].definitions.front();
      if (d.op != Op::kReshape) return true;
      v = d.inputs[0];
    }
    return false;
  }

  void Factor(ValueId matmul, ValueId factor) {
    const ValueId base = Base(factor);
    if (!IsLeaf(table_.values[base])) fact_("operand", {matmul, base});
    for (const Definition& d : table_.values[factor].definitions) {
      if (!IsView(d.op)) continue;
      const ValueId behind = Base(d.inputs[0]);
      if (behind != base && !IsLeaf(table_.values[behind])) fact_("operand", {matmul, behind});
    }
    if (table_.values[base].definitions.front().op == Op::kConst ||
        table_.values[base].definitions.front().op == Op::kIota) {
      fact_("operand", {matmul, factor});
    }
    if (base != factor && Reorders(factor)) fact_("turned", {matmul, factor});
  }

  // Several users that do not all lead into one value of at most v's size: then there is no single
  // other value that could be kept in v's place.
  bool IsForked(ValueId v) const {
    const Value& value = table_.values[v];
    if (IsLeaf(value) || IsView(value.definitions.front().op)) return false;
    if (users_[v].size() < 2) {
      // Through a view, its users count.
      if (users_[v].empty() || !IsView(table_.values[users_[v][0]].definitions.front().op)) {
        return false;
      }
    }
    const int64_t elements = NumElements(value.shape);
    std::set<ValueId> frontier(users_[v].begin(), users_[v].end());
    for (int steps = 0; steps < kMaxSteps; ++steps) {
      const ValueId u = *frontier.begin();
      const Value& user = table_.values[u];
      const Op op = user.definitions.front().op;
      const bool view = IsView(op);
      if (frontier.size() == 1 && !view) return false;
      if (!(IsElementwise(op) || view) || NumElements(user.shape) != elements) return true;
      if (users_[u].empty()) return true;
      frontier.erase(frontier.begin());
      frontier.insert(users_[u].begin(), users_[u].end());
    }
    return true;
  }

  // What computing v takes from values of its size that are kept; its operands are known already.
  void Recompute(ValueId v) {
    const Value& value = table_.values[v];
    const Definition& d = value.definitions.front();
    Again& again = again_[v];
    if (!IsElementwise(d.op)) {
      again.from = IsView(d.op) ? -1 : v;
      return;
    }
    again.seconds = costs_.compute(d.op, value.dtype);
    const int64_t elements = NumElements(value.shape);
    for (ValueId input : d.inputs) {
      ValueId operand = input;
      while (IsView(table_.values[operand].definitions.front().op)) {
        operand = table_.values[operand].definitions.front().inputs[0];
      }
      // What is spread over many elements is had for next to nothing at each.
      if (NumElements(table_.values[operand].shape) < elements) continue;
      const Again& below = again_[operand];
      again.seconds += below.seconds;
      again.several |=
          below.several || (again.from >= 0 && below.from >= 0 && again.from != below.from);
      if (below.from >= 0) again.from = below.from;
    }
  }

  // False where computing the value again, from one value of its size that is kept, costs less than
  // writing and reading it: a forked value like that is computed wherever it is needed.
  bool IsWorthKeeping(ValueId v) {
    Recompute(v);
    Again& again = again_[v];
    if (!again.several && again.seconds <= costs_.keep(table_.values[v])) return false;
    again = {0, v, false};
    return true;
  }

  static constexpr int kMaxSteps = 64;

  // How a value is computed from values of its size that are kept.
  struct Again {
    double seconds = 0;    // an element
    ValueId from = -1;     // the one it takes
    bool several = false;  // more than one
  };

  const ValueTable& table_;
  const ElementCosts& costs_;
  const AssertFact& fact_;
  std::vector<Again> again_;  // by value, of those that were asked about
  std::vector<std::vector<ValueId>> users_;
};

}  // namespace

uint64_t AssertStoreFacts(const ValueTable& table, const Step& step, const std::set<ValueId>& kept,
                          bool fuse, const ElementCosts& costs, const AssertFact& fact) {
  return StoreFacts(table, costs, fact).Assert(step, kept, fuse);
}

}  // namespace l3c::l0::lower
