// run, run --resume, eval: from a program or an earlier run's folder to figures.
#include <chrono>
#include <iostream>

#include "runtime/session.h"
#include "tools/l3c/commands.h"
#include "tools/l3c/compile.h"
#include "tools/l3c/disk_cache.h"
#include "tools/l3c/executable.h"
#include "tools/l3c/files.h"
#include "tools/l3c/memory_needs.h"
#include "tools/l3c/observe.h"
#include "tools/l3c/option_values.h"
#include "tools/l3c/run_folder.h"
#include "tools/l3c/training.h"
#include "tools/l3c/tuning.h"

namespace l3c::tools {
namespace {

using Clock = std::chrono::steady_clock;

Presentation PresentationOf(const Options& options, Clock::time_point begun) {
  return {.json = options.json,
          .color = options.color,
          .timeline = options.timeline,
          .resume = "l3c run --resume",
          .begun = begun};
}

// What the command line says of the machine and not of the program.
runtime::RunOptions ExecutionOptions(const Options& options) {
  runtime::RunOptions run;
  run.threads = options.threads;
  runtime::ParseFileReaderKind(options.io, &run.reader);
  run.resident_bytes = options.data_memory;
  return run;
}

int RunProgram(const Options& options) {
  const Clock::time_point start = Clock::now();
  if (options.observe && !CanObserve(options)) return 1;
  if (!RunFolder::MayCreate(options.output, options.overwrite)) return 1;
  Compilation compilation(options);
  if (!compilation.Load() || !compilation.LowerTo(Layer::kL0)) return 1;
  if (!FitsThisMachine(compilation.plan(), compilation.texts().size() > 2)) return 1;
  if (const int code = TuneIfAsked(compilation, options); code != 0) return code;
  const std::unique_ptr<runtime::KernelTable> kernels =
      MakeKernels(compilation.plan(), options.engine);
  if (kernels == nullptr) return 1;
  const double compile_seconds = SecondsSince(start);
  if (options.explain) {
    for (const search::Explanation& explanation : compilation.explanations()) {
      std::cerr << search::RenderExplanation(explanation) << "\n";
    }
    if (!compilation.costs_rest_on().empty()) std::cerr << compilation.costs_rest_on() << "\n";
    std::cerr << DescribeMemory(compilation.plan()) << "\n";
    if (const DiskCache* cache = TheCache()) std::cerr << DescribeReuse(*cache);
  }

  const std::optional<RunFolder> folder =
      RunFolder::Create(options.output, options.file, options.overwrite);
  if (!folder) return 1;
  const RunFacts facts{AbsolutePath(options.file), compilation.DataFolders(), options.synthetic};
  if (!folder->Save(compilation.NamedTexts(), facts)) return 1;
  runtime::RunOptions run = ExecutionOptions(options);
  run.output = folder->path().string();
  run.data = facts.data;
  run.synthetic = facts.synthetic;
  Presentation presentation = PresentationOf(options, start);
  if (options.observe) {
    presentation.observe = [&](const runtime::Timeline& timeline) {
      return Observe(compilation.plan(), timeline, options);
    };
  }
  return TrainAndTell(compilation.plan(), *kernels, run, presentation, compile_seconds);
}

// A run's folder as it was saved, and code for its plan.
struct Reopened {
  RunFolder::Saved saved;
  std::unique_ptr<runtime::KernelTable> kernels;
  runtime::RunOptions run;
};

std::unique_ptr<Reopened> Reopen(const RunFolder& folder, const Options& options) {
  std::optional<RunFolder::Saved> saved = folder.Load(options.data, {options.sarif, options.color});
  if (!saved || !KnowsData(options.data, NamesOfData(saved->plan))) return nullptr;
  auto reopened =
      std::make_unique<Reopened>(Reopened{*std::move(saved), nullptr, ExecutionOptions(options)});
  reopened->kernels = MakeKernels(reopened->saved.plan, options.engine);
  if (reopened->kernels == nullptr) return nullptr;
  reopened->run.data = reopened->saved.facts.data;
  reopened->run.synthetic = reopened->saved.facts.synthetic;
  reopened->run.checkpoint = folder.path().string();
  return reopened;
}

int Resume(const Options& options) {
  const Clock::time_point start = Clock::now();
  const std::optional<RunFolder> folder = RunFolder::Open(options.resume);
  if (!folder || !folder->IsFree()) return 1;
  const std::unique_ptr<Reopened> reopened = Reopen(*folder, options);
  if (reopened == nullptr) return 1;
  reopened->run.output = folder->path().string();
  reopened->run.or_from_start = true;
  return TrainAndTell(reopened->saved.plan, *reopened->kernels, reopened->run,
                      PresentationOf(options, start), SecondsSince(start));
}

}  // namespace

int Run(const Options& options) {
  if (!options.timeline.empty() && !CanWriteFile(options.timeline)) return 1;
  return options.resume.empty() ? RunProgram(options) : Resume(options);
}

int Eval(const Options& options) {
  const Clock::time_point start = Clock::now();
  const std::optional<RunFolder> folder = RunFolder::Open(options.file);
  if (!folder) return 1;
  const std::unique_ptr<Reopened> reopened = Reopen(*folder, options);
  if (reopened == nullptr) return 1;
  return EvaluateAndTell(reopened->saved.plan, *reopened->kernels, reopened->run,
                         PresentationOf(options, start), SecondsSince(start));
}

}  // namespace l3c::tools
