#include "layers/l0/kernel_file.h"

#include <filesystem>
#include <utility>

#include "layers/l0/kernel_text.h"
#include "layers/l0/kernel_verify.h"
#include "layers/support/parser.h"
#include "layers/support/source.h"

namespace l3c::l0 {
namespace {

using support::Kind;

std::string Describe(const Param& param) {
  constexpr const char* kAccess[] = {"in", "out", "inout"};
  return std::string(kAccess[static_cast<size_t>(param.access)]) + " " +
         std::string(tensor::DTypeName(param.dtype)) + " " + tensor::ShapeToString(param.shape);
}

class FileKernel {
 public:
  FileKernel(const support::EscapeHatch& hatch, const Kernel& declared,
         support::Diagnostics& diagnostics)
      : hatch_(hatch), declared_(declared), diagnostics_(diagnostics) {}

  std::optional<Kernel> Read(const std::string& folder) {
    if (hatch_.directive != "kernel") {
      Error(Kind::kSyntax, "'" + hatch_.directive + "' is no directive of l0")
          .Fix("#[l0::kernel(\"FILE\")] takes the UOps of a kernel from a file");
      return std::nullopt;
    }
    const std::string& args = hatch_.args;
    if (args.size() < 3 || args.front() != '"' || args.find('"', 1) != args.size() - 1) {
      Error(Kind::kSyntax, "l0::kernel takes the name of a file")
          .Fix("write it in quotes: #[l0::kernel(\"fast.uop\")]");
      return std::nullopt;
    }
    name_ = args.substr(1, args.size() - 2);
    const std::filesystem::path path = std::filesystem::path(folder) / name_;
    if (path.extension() != ".uop") {
      Error(Kind::kEnvironment, "'" + name_ + "' is no file of UOps")
          .Fix("kernels are taken from .uop files: the text of one kernel, as in a plan");
      return std::nullopt;
    }
    support::Diagnostics reading;
    std::optional<support::SourceFile> source = support::SourceFile::Read(path.string(), reading);
    if (!source) {
      Error(Kind::kEnvironment, reading.all().front().message);
      return std::nullopt;
    }
    reading.set_source(&*source);
    support::ParserBase parser(*source, reading);
    std::optional<Kernel> kernel;
    if (parser.AtWord("kernel")) {
      kernel = ParseKernel(parser);
      if (kernel && !parser.AtEnd()) parser.ErrorExpected("the end of the file after one kernel");
    } else {
      parser.ErrorExpected("'kernel'");
    }
    if (kernel && !reading.has_errors()) {
      if (!SameBoundary(*kernel)) return std::nullopt;
      VerifyKernel(*kernel, reading);
    }
    if (reading.has_errors() || !kernel) {
      Forward(*source, reading);
      return std::nullopt;
    }
    kernel->name = declared_.name;
    kernel->origin = declared_.origin;
    kernel->span = hatch_.span;
    for (Uop& uop : kernel->uops) uop.span = hatch_.span;
    return kernel;
  }

 private:
  support::Diagnostic& Error(Kind kind, std::string message) {
    return diagnostics_.Error(kind, hatch_.span, std::move(message));
  }

  bool SameBoundary(const Kernel& kernel) {
    const auto& given = kernel.params;
    const auto& wanted = declared_.params;
    if (given.size() != wanted.size()) {
      Error(Kind::kConsistency,
            "the kernel of '" + name_ + "' has " + std::to_string(given.size()) + " parameters; '" +
                declared_.name + "' is declared with " + std::to_string(wanted.size()))
          .With({declared_.span, "declared here"});
      return false;
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (Describe(given[i]) == Describe(wanted[i])) continue;
      Error(Kind::kConsistency, "parameter '" + given[i].name + "' of the kernel of '" + name_ +
                                    "' is " + Describe(given[i]) + "; '" + wanted[i].name +
                                    "' is declared " + Describe(wanted[i]))
          .With({declared_.span, "declared here"});
      return false;
    }
    return true;
  }

  // The first fault of the file, at the annotation.
  void Forward(const support::SourceFile& source, const support::Diagnostics& reading) {
    const support::Diagnostic& first = reading.all().front();
    std::string place = source.name();
    if (first.span.known()) {
      const support::LineColumn at = source.Position(first.span.begin);
      place += ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
    }
    Error(first.kind,
          place + ": " + first.message + (first.label.empty() ? "" : " (" + first.label + ")"))
        .Fix(first.fix);
  }

  const support::EscapeHatch& hatch_;
  const Kernel& declared_;
  support::Diagnostics& diagnostics_;
  std::string name_;
};

}  // namespace

std::optional<Kernel> KernelFromFile(const support::EscapeHatch& hatch, const Kernel& declared,
                                     const std::string& folder, support::Diagnostics& diagnostics) {
  return FileKernel(hatch, declared, diagnostics).Read(folder);
}

}  // namespace l3c::l0
