#include "layers/l0/lower/candidate_facts.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace l3c::l0::lower {

using tensor::Op;

namespace {

class CandidateFacts {
 public:
  CandidateFacts(const ValueTable& table, const CandidateSet& candidates, DotForms& forms,
                 const DefinitionNumbers& numbers, const AssertFact& fact)
      : table_(table), candidates_(candidates), forms_(forms), numbers_(numbers), fact_(fact) {}

  void Assert() const {
    for (ValueId v = 0; v < static_cast<ValueId>(table_.values.size()); ++v) {
      const Value& value = table_.values[v];
      if (value.input >= 0) fact_("given", {v});
      for (uint32_t d = 0; d < value.definitions.size(); ++d) {
        AssertDefinition(v, d);
      }
      for (size_t q = 1; q < candidates_.storers[v].size(); ++q) {
        fact_("later", {v, static_cast<int64_t>(q), static_cast<int64_t>(q) - 1});
      }
    }
    for (uint32_t k = 0; k < candidates_.kernels.size(); ++k) AssertKernel(k);
    for (size_t g = 0; g < candidates_.groups.size(); ++g) {
      const UpdateGroup& group = candidates_.groups[g];
      if (group.in_place) continue;
      const int64_t n = static_cast<int64_t>(group.members.size());
      fact_("copies", {static_cast<int64_t>(g), n});
      for (int64_t i = 0; i < n; ++i) {
        const ValueId v = group.members[i].new_value;
        fact_("copy-step", {static_cast<int64_t>(g), i, v, LastVersion(candidates_, v)});
      }
    }
  }

 private:
  void AssertDefinition(ValueId v, uint32_t d) const {
    const Definition& definition = table_.values[v].definitions[d];
    const int64_t number = numbers_.Number(v, d);
    const auto in = [&](size_t i) { return static_cast<int64_t>(definition.inputs[i]); };
    switch (definition.op) {
      case Op::kInput:
        if (table_.values[v].own < 0) return;
        break;
      case Op::kMatmul:
      case Op::kBf16Matmul:
        return;
      case Op::kRandom:
        fact_("unary", {number, v, in(0)});
        return;
      case Op::kScatterAdd:
        fact_("scatter", {number, v, in(0), in(1)});
        return;
      case Op::kConst:
      case Op::kIota:
        fact_("leaf", {number, v});
        return;
      case Op::kReduceSum:
      case Op::kReduceMax:
        fact_("fold", {number, v, in(0)});
        return;
      case Op::kGather:
        fact_("gather", {number, v, in(0), in(1)});
        return;
      default:
        break;
    }
    if (IsView(definition.op)) {
      fact_("view", {number, v, in(0)});
    } else if (definition.inputs.size() == 1) {
      fact_("unary", {number, v, in(0)});
    } else if (definition.inputs.size() == 2) {
      fact_("binary", {number, v, in(0), in(1)});
    } else {
      fact_("ternary", {number, v, in(0), in(1), in(2)});
    }
  }

  // The version of `v` that kernel k may load; nothing when no kernel before it stores v.
  std::optional<int64_t> Version(ValueId v, uint32_t k) const {
    if (table_.values[v].input >= 0) return -1;
    const int32_t q = VersionBefore(candidates_, v, k);
    if (q < 0) return std::nullopt;
    return q;
  }

  void AssertKernel(uint32_t k) const {
    const Candidate& kernel = candidates_.kernels[k];
    const int64_t base = kernel.first_context;
    for (const Entry& entry : kernel.entries) {
      const int64_t c = base + entry.context;
      if (entry.readable) {
        const auto q = Version(entry.value, k);
        if (q && IsNear(table_, kernel, entry)) {
          fact_("reads-row", {entry.value, c, k, *q});
        } else if (q) {
          fact_("reads", {entry.value, c, *q});
        }
      }
      if (entry.hoisted) fact_("hoisted", {entry.value, c, base});
      for (const Inline& way : entry.inlines) {
        const int64_t number = numbers_.Number(entry.value, way.definition);
        const Definition& definition = table_.values[entry.value].definitions[way.definition];
        if (way.pass >= 0) {
          fact_("pass", {number, c, base + way.pass});
        } else if (entry.context == 0 && kernel.FindAdded(entry.value) != nullptr) {
          fact_("added", {number, c});
        } else if (IsContraction(definition.op)) {
          AssertDot(k, entry.value, way.definition, c);
        } else {
          if (definition.op == Op::kGather) {
            if (auto q = Version(definition.inputs[0], k)) {
              fact_("reads", {definition.inputs[0], c, *q});
            }
          }
          fact_("inline", {number, c});
        }
      }
    }
    if (kernel.group >= 0) {
      const std::vector<ValueId>& roots = kernel.roots;
      fact_("update", {kernel.group, k, static_cast<int64_t>(roots.size())});
      for (size_t i = 0; i < roots.size(); ++i) {
        fact_("update-step", {k, static_cast<int64_t>(i), roots[i], base});
      }
      auto step = static_cast<int64_t>(roots.size()) + 1;
      for (const SideUpdate& side : kernel.sides) {
        const int64_t first = step;
        for (ValueId root : side.roots) fact_("update-step", {k, step++, root, base});
        fact_("update-beside", {side.group, k, first, step++});
      }
      return;
    }
    std::vector<ValueId> writes = kernel.beside;
    writes.push_back(kernel.roots[0]);
    std::sort(writes.begin(), writes.end());
    for (ValueId v : writes) {
      const std::vector<uint32_t>& storers = candidates_.storers[v];
      const auto it = std::lower_bound(storers.begin(), storers.end(), k);
      fact_(v == kernel.roots[0] ? "root" : "beside", {k, v, it - storers.begin(), base});
    }
  }

  void AssertDot(uint32_t k, ValueId matmul, uint32_t definition, int64_t c) const {
    for (uint32_t form : forms_.Of(matmul, definition)) {
      const DotForm& dot = forms_.all()[form];
      const auto left = Version(dot.left, k);
      const auto right = Version(dot.right, k);
      if (!left || !right) continue;
      fact_("dot", {numbers_.Number(matmul, definition), matmul, c, form, dot.left, *left,
                    dot.right, *right});
    }
  }

  const ValueTable& table_;
  const CandidateSet& candidates_;
  DotForms& forms_;
  const DefinitionNumbers& numbers_;
  const AssertFact& fact_;
};

}  // namespace

void AssertCandidateFacts(const ValueTable& table, const CandidateSet& candidates, DotForms& forms,
                          const DefinitionNumbers& numbers, const AssertFact& fact) {
  CandidateFacts(table, candidates, forms, numbers, fact).Assert();
}

}  // namespace l3c::l0::lower
