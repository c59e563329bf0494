#include "layers/l0/lower/unfused.h"

#include <optional>

#include "layers/l0/lower/forms.h"
#include "layers/l0/lower/selection.h"

namespace l3c::l0::lower {

using egraph::ClassRef;
using egraph::ENodeRef;
using egraph::FunctionId;

namespace {

class Ranker {
 public:
  Ranker(const egraph::EGraphView& view, const CandidateSet& candidates,
         const DefinitionNumbers& numbers)
      : view_(view),
        candidates_(candidates),
        numbers_(numbers),
        store_(view.graph().FindFunction("Store")),
        beside_(view.graph().FindFunction("Beside")),
        sooner_(view.graph().FindFunction("Sooner")),
        load_(view.graph().FindFunction("Load")),
        load_row_(view.graph().FindFunction("LoadRow")),
        hoist_(view.graph().FindFunction("Hoist")),
        dot_(view.graph().FindFunction("Dot")),
        overwrite_(view.graph().FindFunction("Overwrite")),
        copy_back_(view.graph().FindFunction("CopyBack")),
        owned_(view.class_count(), kUnknown) {}

  uint8_t Rank(ENodeRef node) {
    const FunctionId f = view_.NodeFunction(node);
    if (f == sooner_) return Owned(view_.NodeChildren(node)[0]) ? 0 : 2;
    if (f == store_) return IsOwn(Kernel(node, 1)) ? 1 : 3;
    if (f == beside_) return 4;
    if (f == hoist_) return 0;
    if (f == load_ || f == load_row_) return 1;
    if (f == overwrite_) return Kernel(node, 1).kind == KernelKind::kUpdate ? 0 : 1;
    if (f == copy_back_) return 2;
    const int64_t definition = DefinitionOf(view_, node);
    if (definition < 0) return 0;
    // Another definition than the program's own is a rewrite.
    const bool derived = numbers_.At(definition).second != 0;
    return static_cast<uint8_t>((f == dot_ ? 2 : 3) + (derived ? 2 : 0));
  }

 private:
  enum : uint8_t { kUnknown, kNo, kYes };

  const Candidate& Kernel(ENodeRef node, size_t argument) const {
    return candidates_.kernels[static_cast<size_t>(IntegerOf(view_, node, argument))];
  }

  // Nothing is met in it but the value itself.
  static bool IsOwn(const Candidate& kernel) {
    if (kernel.kind == KernelKind::kAnchor) return kernel.anchor == kernel.roots.front();
    return kernel.kind == KernelKind::kLoop;
  }

  // Whether a kernel of its own stores this version of the value or an earlier one.
  bool Owned(ClassRef c) {
    std::vector<ClassRef> chain;
    uint8_t found = kNo;
    while (found == kNo && c.valid()) {
      if (owned_[c.index] != kUnknown) {
        found = owned_[c.index];
        break;
      }
      chain.push_back(c);
      std::optional<ClassRef> before;
      for (uint32_t i = 0; i < view_.NodeCountOf(c); ++i) {
        const ENodeRef n{view_.FirstNode(c).index + i};
        const FunctionId f = view_.NodeFunction(n);
        if (f == sooner_) before = view_.NodeChildren(n)[0];
        if (f == store_ && IsOwn(Kernel(n, 1))) found = kYes;
      }
      if (!before) break;
      c = *before;
    }
    for (ClassRef seen : chain) owned_[seen.index] = found;
    return found == kYes;
  }

  const egraph::EGraphView& view_;
  const CandidateSet& candidates_;
  const DefinitionNumbers& numbers_;
  const FunctionId store_, beside_, sooner_, load_, load_row_, hoist_, dot_, overwrite_, copy_back_;
  std::vector<uint8_t> owned_;  // by class
};

}  // namespace

std::vector<uint8_t> UnfusedRanks(const egraph::EGraphView& view, const CandidateSet& candidates,
                                  const DefinitionNumbers& numbers) {
  Ranker ranker(view, candidates, numbers);
  std::vector<uint8_t> ranks(view.node_count());
  for (uint32_t n = 0; n < view.node_count(); ++n) ranks[n] = ranker.Rank(ENodeRef{n});
  return ranks;
}

}  // namespace l3c::l0::lower
