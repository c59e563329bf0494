// build: a program of any layer as one executable, which trains with the bits of `l3c run`.
//
// The executable is the runtime of tools/program, which is linked when l3c itself is built and is
// part of it, with two segments added: the code of the kernels and control units, and the plan's
// tables with the text of every layer. So nobody needs a linker or a library to build a program, or
// anything at all to run it.
#include <cstring>
#include <iostream>
#include <map>

#include "nlohmann/json.hpp"
#include "runtime/checkpoint.h"
#include "tools/l3c/commands.h"
#include "tools/l3c/compile.h"
#include "tools/l3c/files.h"
#include "tools/l3c/json_lines.h"
#include "tools/l3c/progress.h"
#include "tools/l3c/run_folder.h"
#include "tools/l3c/tuning.h"
#ifdef L3C_HAS_LLVM
#include "backends/elf/executable_file.h"
#include "tools/l3c/built_code.h"
#include "tools/l3c/runner_image.h"
#include "tools/program/anchor.h"
#include "tools/program/cpu_features.h"
#include "tools/program/program.h"
#endif

namespace l3c::tools {

#ifdef L3C_HAS_LLVM
namespace {

// "" after printing what is wrong with the usage.
std::string FeaturesOf(const std::string& cpu) {
  if (cpu == "native") return program::FeaturesHere();
  if (const std::string_view level = program::FeaturesOfLevel(cpu); !level.empty()) {
    return std::string(level);
  }
  const std::vector<std::string> names = program::RequiredFeatures(cpu);
  for (const std::string& name : names) {
    if (program::IsKnownFeature(name)) continue;
    std::cerr << "error: --cpu: there is no feature '" << name
              << "'\nLLVM's names are taken, such as +avx2\n";
    return "";
  }
  if (!names.empty()) return cpu;
  std::cerr << "error: --cpu: there is no CPU '" << cpu
            << "'\nthose are native, x86-64-v2, x86-64-v3, x86-64-v4, or features as +avx2,+fma\n";
  return "";
}

template <class T>
std::string_view BytesOf(const T& object) {
  return {reinterpret_cast<const char*>(&object), sizeof object};
}

struct Built {
  std::string file;
  size_t code = 0;
  size_t tables = 0;
};

absl::StatusOr<Built> Complete(program::Program program, const elf::ObjectLinker& code) {
  absl::StatusOr<elf::ExecutableFile> file = elf::ExecutableFile::Parse(std::string(RunnerImage()));
  if (!file.ok()) return file.status();
  const auto section = file->Find(program::kAnchorSection);
  program::Anchor anchor;
  if (!section || section->size != sizeof anchor) {
    return absl::InternalError("the runtime has no anchor");
  }
  std::memcpy(&anchor, file->bytes().data() + section->offset, sizeof anchor);
  std::map<std::string, uint64_t> callable;
  for (size_t i = 0; i < std::size(program::kCallable); ++i) {
    const uint64_t entry = section->address + offsetof(program::Anchor, callable) + 4 * i;
    callable[program::kCallable[i]] = entry + static_cast<uint64_t>(int64_t{anchor.callable[i]});
  }

  const uint64_t code_address = file->NextAddress();
  // Constants follow the code on pages of their own.
  constexpr uint64_t kPage = 4096;
  const uint64_t constants_address = code_address + (code.code_size() + kPage) / kPage * kPage;
  const auto linked = code.Link(code_address, constants_address, callable);
  if (!linked.ok()) return linked.status();
  std::string pages = linked->code;
  pages.resize(constants_address - code_address, '\xcc');
  file->AddSegment(".text.l3c", pages, /*executable=*/true);
  if (file->NextAddress() != constants_address) return absl::InternalError("pages out of order");
  file->AddSegment(".rodata.l3c_constants", linked->constants, /*executable=*/false);

  for (const l0::Kernel& kernel : program.plan.kernels) {
    const absl::StatusOr<uint64_t> offset = code.OffsetOf(kernel.name);
    if (!offset.ok()) return offset.status();
    program.kernels.push_back(*offset);
  }
  for (const l0::ControlUnit& unit : program.plan.control) {
    const absl::StatusOr<uint64_t> offset = code.OffsetOf(ControlName(unit));
    if (!offset.ok()) return offset.status();
    program.control.push_back(*offset);
  }
  const std::string tables = program::Write(program);
  anchor.code = static_cast<int64_t>(code_address - section->address);
  anchor.tables = static_cast<int64_t>(file->NextAddress() - section->address);
  anchor.tables_size = static_cast<int64_t>(tables.size());
  file->AddSegment(".rodata.l3c_plan", tables, /*executable=*/false);
  file->Patch(section->offset, BytesOf(anchor));
  return Built{std::move(*file).Finish(), linked->code.size() + linked->constants.size(),
               tables.size()};
}

}  // namespace

int Build(const Options& options) {
  const std::string features = FeaturesOf(options.cpu);
  if (features.empty()) return 2;
  if (!CanWriteFile(options.output)) return 1;
  Options target = options;
  if (options.cpu != "native") target.cpu_features = features;
  Compilation compilation(target);
  if (!compilation.Load() || !compilation.LowerTo(Layer::kL0)) return 1;
  if (const int code = TuneIfAsked(compilation, options); code != 0) return code;
  absl::StatusOr<elf::ObjectLinker> code = BuildCode(compilation.plan(), features);
  if (!code.ok()) {
    EnvironmentError(std::string(code.status().message()));
    return 1;
  }
  program::Program program;
  program.version = L3C_VERSION;
  program.file = AbsolutePath(options.file);
  program.features = features;
  program.digest = runtime::PlanDigest(compilation.plan());
  program.data = compilation.DataFolders();
  program.plan = compilation.plan();
  for (const auto& [layer, text] : compilation.NamedTexts()) {
    program.texts.push_back(program::Deflate(static_cast<uint8_t>(layer), text));
  }
  const absl::StatusOr<Built> built = Complete(std::move(program), *code);
  if (!built.ok()) {
    EnvironmentError(std::string(built.status().message()));
    return 1;
  }
  if (!WriteFile(options.output, built->file, /*executable=*/true)) return 1;
  const size_t kernels = compilation.plan().kernels.size();
  if (options.json) {
    PrintJsonLine({{"event", "done"},
                   {"ok", true},
                   {"path", options.output},
                   {"bytes", built->file.size()},
                   {"kernels", kernels},
                   {"code_bytes", built->code},
                   {"table_bytes", built->tables},
                   {"cpu_features", features}});
  } else {
    const auto bytes = [](size_t n) { return WithThousands(static_cast<int64_t>(n)); };
    std::cout << options.output << ": " << bytes(built->file.size()) << " bytes, "
              << bytes(built->code) << " of them the code of " << kernels << " kernels, "
              << bytes(built->tables) << " the plan\n";
  }
  return 0;
}

#else

int Build(const Options&) {
  EnvironmentError("this build has no kernel compiler, so it makes no programs");
  return 1;
}

#endif

}  // namespace l3c::tools
