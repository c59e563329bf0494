#include "tools/l3c/plan_figures.h"

#include <algorithm>

namespace l3c::tools {
namespace {

SequenceFigures FiguresOf(const l0::Sequence& sequence, const std::vector<l0::KernelWork>& work) {
  SequenceFigures figures;
  figures.sequence = sequence.name;
  for (const l0::Command& command : sequence.commands) {
    if (command.kind == l0::CommandKind::kReport) figures.split = command.split;
    if (command.kind != l0::CommandKind::kLaunch) continue;
    ++figures.kernels;
    const l0::KernelWork& kernel = work[command.kernel];
    figures.bytes_moved += kernel.bytes_read + kernel.bytes_written;
    figures.multiply_adds += kernel.multiply_adds + 2 * kernel.bf16_dots;
  }
  return figures;
}

// The same kernels in the same order: the sequences of one pipeline's slots.
bool SameLaunches(const l0::Sequence& a, const l0::Sequence& b) {
  return std::equal(a.commands.begin(), a.commands.end(), b.commands.begin(), b.commands.end(),
                    [](const l0::Command& x, const l0::Command& y) {
                      return x.kind == y.kind && x.split == y.split &&
                             (x.kind != l0::CommandKind::kLaunch || x.kernel == y.kernel);
                    });
}

}  // namespace

std::vector<SequenceFigures> FiguresOf(const l0::Plan& plan) {
  std::vector<l0::KernelWork> work;
  for (const l0::Kernel& kernel : plan.kernels) work.push_back(l0::CountWork(kernel));
  std::vector<SequenceFigures> found;
  const l0::Sequence* before = nullptr;
  for (const l0::Sequence& sequence : plan.sequences) {
    SequenceFigures figures = FiguresOf(sequence, work);
    if (figures.kernels == 0) continue;
    if (before != nullptr && SameLaunches(*before, sequence)) continue;
    found.push_back(std::move(figures));
    before = &sequence;
  }
  return found;
}

}  // namespace l3c::tools
