#include "layers/l0/lower/selection.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace l3c::l0::lower {

using egraph::ClassRef;
using egraph::ENodeRef;

int64_t IntegerOf(const egraph::EGraphView& view, ENodeRef node, size_t argument) {
  return view.graph().AsI64(view.NodeArgs(node)[argument]);
}

Storage StoredAt(const egraph::EGraphView& view, const egraph::Extraction& best, ClassRef c) {
  while (true) {
    const ENodeRef n = best.Chosen(c);
    const std::string& name = view.function(n).name;
    const ValueId v = static_cast<ValueId>(IntegerOf(view, n, 0));
    if (name == "Given") return {v, -1};
    if (name != "Sooner") return {v, static_cast<int32_t>(IntegerOf(view, n, 1))};
    c = view.NodeChildren(n)[0];
  }
}

Selection ReadSelection(const egraph::EGraphView& view, const egraph::Extraction& best,
                        std::span<const ClassRef> roots, const Step& step,
                        const CandidateSet& candidates, const DefinitionNumbers& numbers) {
  const egraph::SortId reg = view.graph().FindSort("Reg");
  Selection selection;
  std::map<uint32_t, ChosenKernel> kernels;
  std::vector<std::pair<uint32_t, uint32_t>> context_owner;  // by context: (kernel, local)
  for (uint32_t k = 0; k < candidates.kernels.size(); ++k) {
    for (uint32_t c = 0; c < candidates.kernels[k].contexts.size(); ++c) {
      context_owner.emplace_back(k, c);
    }
  }
  auto kernel_at = [&](uint32_t k) -> ChosenKernel& {
    ChosenKernel& kernel = kernels[k];
    kernel.candidate = k;
    return kernel;
  };
  for (ClassRef c : best.order) {
    const ENodeRef n = best.Chosen(c);
    const std::string& name = view.function(n).name;
    const std::span<const ClassRef> children = view.NodeChildren(n);
    auto source_at = [&](int64_t context, ValueId v) -> Source& {
      const auto [k, local] = context_owner[static_cast<size_t>(context)];
      return kernel_at(k).sources[{local, v}];
    };
    if (name == "Load" || name == "LoadRow") {
      Source& s = source_at(IntegerOf(view, n, 1), static_cast<ValueId>(IntegerOf(view, n, 0)));
      s.kind = Source::Kind::kLoad;
      s.storage = StoredAt(view, best, children.back());
    } else if (name == "Hoist") {
      source_at(IntegerOf(view, n, 1), static_cast<ValueId>(IntegerOf(view, n, 0))).kind =
          Source::Kind::kHoist;
    } else if (name == "Store" || name == "Beside") {
      kernel_at(static_cast<uint32_t>(IntegerOf(view, n, 1)))
          .stores.push_back({static_cast<ValueId>(IntegerOf(view, n, 0)), -1});
    } else if (name == "Write") {
      const uint32_t k = static_cast<uint32_t>(IntegerOf(view, n, 1));
      const ValueId v = static_cast<ValueId>(IntegerOf(view, n, 0));
      const auto write = [&](int32_t group) {
        for (const UpdateMember& member : candidates.groups[group].members) {
          if (member.new_value != v) continue;
          kernel_at(k).stores.push_back({v, static_cast<int32_t>(member.state)});
        }
      };
      write(candidates.kernels[k].group);
      for (const SideUpdate& side : candidates.kernels[k].sides) write(side.group);
    } else if (name == "CopyBack") {
      const UpdateGroup& group = candidates.groups[IntegerOf(view, n, 0)];
      ClassRef rest = children[0];
      for (size_t i = 0; i < group.members.size(); ++i) {
        const ENodeRef copy = best.Chosen(rest);
        selection.copies.push_back(
            {StoredAt(view, best, view.NodeChildren(copy)[0]), group.members[i].state});
        rest = view.NodeChildren(copy)[1];
      }
    } else if (name == "Dot") {
      const auto [v, d] = numbers.At(IntegerOf(view, n, 0));
      Source& s = source_at(IntegerOf(view, n, 1), v);
      s.kind = Source::Kind::kDot;
      s.definition = d;
      s.form = static_cast<uint32_t>(IntegerOf(view, n, 2));
      s.left = StoredAt(view, best, children[0]);
      s.right = StoredAt(view, best, children[1]);
    } else if (view.ClassSort(c) == reg) {
      const auto [v, d] = numbers.At(IntegerOf(view, n, 0));
      Source& s = source_at(IntegerOf(view, n, 1), v);
      s.kind = Source::Kind::kDefinition;
      s.definition = d;
      if (name == "Fold") {
        s.pass = static_cast<int32_t>(context_owner[IntegerOf(view, n, 2)].second);
      } else if (name == "Row") {
        s.storage = StoredAt(view, best, children[0]);
      }
    }
  }
  for (auto& [k, kernel] : kernels) {
    if (kernel.stores.empty()) continue;  // met only as an owner of a context
    std::sort(kernel.stores.begin(), kernel.stores.end(),
              [](const ChosenStore& a, const ChosenStore& b) { return a.value < b.value; });
    selection.kernels.push_back(std::move(kernel));
  }
  selection.reports.assign(step.outputs.size(), {});
  size_t next = 0;
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    if (step.outputs[o].kind != StepOutput::Kind::kReport) continue;
    selection.reports[o] = StoredAt(view, best, roots[next++]);
  }
  return selection;
}

}  // namespace l3c::l0::lower
