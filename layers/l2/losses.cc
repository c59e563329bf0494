#include "layers/l2/losses.h"

#include <stdexcept>
#include <utility>

#include "layers/l2/registry.h"

namespace l3c::l2 {
namespace {

// A new loss is a line here and a file of its own.
Registry<LossEntry>& Table() {
  static Registry<LossEntry> table(Family::kLoss,
                                   {CrossEntropyLosses(), DistanceLosses(), ContrastiveLosses()});
  return table;
}

}  // namespace

const std::deque<LossEntry>& AllLosses() { return Table().all(); }
const LossEntry* FindLoss(std::string_view name) { return Table().Find(name); }
std::optional<int64_t> IgnoredLabel(const Form& loss) {
  const LossEntry* entry = FindLoss(loss.name);
  if (entry == nullptr || !entry->ignored_label) return std::nullopt;
  return entry->ignored_label(loss);
}
void RegisterLoss(LossEntry entry) { Table().Add(std::move(entry)); }

Form DefaultLoss(TargetKind target) {
  for (const LossEntry& entry : AllLosses()) {
    if (entry.accepts(target)) return MakeForm(entry.form, {});
  }
  throw std::logic_error("no loss accepts the target");
}

}  // namespace l3c::l2
