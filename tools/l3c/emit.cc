// emit: what a program becomes below L0, as text files in a folder.
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>
#include <vector>

#include "layers/l0/control_text.h"
#include "layers/support/printer.h"
#include "nlohmann/json.hpp"
#include "tools/l3c/commands.h"
#include "tools/l3c/compile.h"
#include "tools/l3c/files.h"
#include "tools/l3c/json_lines.h"
#ifdef L3C_HAS_LLVM
#include "tools/l3c/kernel_text.h"
#endif

namespace l3c::tools {
namespace {

struct EmittedText {
  std::string file;
  std::string text;
};

std::vector<EmittedText> ControlTexts(const l0::Plan& plan) {
  std::vector<std::string> sequences;
  for (const l0::Sequence& sequence : plan.sequences) sequences.push_back(sequence.name);
  std::vector<EmittedText> texts;
  for (const l0::ControlUnit& unit : plan.control) {
    support::Printer printer;
    l0::PrintControl(unit, sequences, printer);
    texts.push_back({unit.name + ".control", printer.Take()});
  }
  return texts;
}

bool CodeTexts(const l0::Plan& plan, bool assembly, std::vector<EmittedText>& texts) {
#ifdef L3C_HAS_LLVM
  absl::StatusOr<std::vector<CodeText>> code = WriteCode(plan);
  if (!code.ok()) return EnvironmentError(std::string(code.status().message()));
  for (CodeText& text : *code) {
    texts.push_back(
        {text.name + (assembly ? ".s" : ".ll"), std::move(assembly ? text.assembly : text.ir)});
  }
  return true;
#else
  (void)plan, (void)assembly, (void)texts;
  return EnvironmentError("this build has no kernel compiler", "--target control needs none");
#endif
}

}  // namespace

int Emit(const Options& options) {
  if (!CanMakeFolder(options.output)) return 1;
  Compilation compilation(options);
  if (!compilation.Load() || !compilation.LowerTo(Layer::kL0)) return 1;
  const l0::Plan& plan = compilation.plan();
  std::vector<EmittedText> texts;
  if (options.target == "control") {
    texts = ControlTexts(plan);
  } else if (!CodeTexts(plan, options.target == "asm", texts)) {
    return 1;
  }
  const std::filesystem::path folder = options.output;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder)) {
    EnvironmentError("cannot make the folder '" + folder.string() +
                         "': " + (error ? error.message() : "a file of that name exists"),
                     "choose another folder with -o");
    return 1;
  }
  for (const EmittedText& text : texts) {
    const std::filesystem::path path = folder / text.file;
    if (!WriteFile(path, text.text)) return 1;
    if (options.json) {
      PrintJsonLine({{"event", "file"}, {"path", path.string()}, {"bytes", text.text.size()}});
    } else {
      std::cout << path.string() << "\n";
    }
  }
  return 0;
}

}  // namespace l3c::tools
