#include "layers/l0/kernel_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <utility>

#include "layers/l0/kernel_text.h"
#include "layers/l0/kernel_verify.h"
#include "layers/support/parser.h"
#include "layers/support/source.h"

namespace l3c::l0 {
namespace {

namespace fs = std::filesystem;
using support::Kind;

class FileReader {
 public:
  FileReader(const support::EscapeHatch& hatch, const Kernel& declared,
             support::Diagnostics& diagnostics)
      : hatch_(hatch), declared_(declared), diagnostics_(diagnostics) {}

  std::optional<FileKernel> Read(const std::string& folder) {
    if (hatch_.directive != "kernel") {
      Error(Kind::kSyntax, "'" + hatch_.directive + "' is no directive of l0")
          .Fix("#[l0::kernel(\"FILE\")] takes a kernel from a file");
      return std::nullopt;
    }
    if (!ReadArguments()) return std::nullopt;
    path_ = fs::path(folder) / name_;
    FileKernel read;
    if (path_.extension() == ".uop") {
      read.kernel = ReadUops();
    } else if (path_.extension() == ".ll") {
      read.code = ReadIr();
    } else if (path_.extension() == ".so") {
      read.code = ReadObject();
    } else {
      Error(Kind::kEnvironment, "'" + name_ + "' is no file of a kernel")
          .Fix(
              "kernels are taken from .uop (the text of one kernel, as in a plan), .ll (IR as "
              "text) "
              "and .so (a shared object)");
    }
    if (!read.kernel && !read.code) return std::nullopt;
    return read;
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
      if (DescribeParam(given[i]) == DescribeParam(wanted[i])) continue;
      Error(Kind::kConsistency, "parameter '" + given[i].name + "' of the kernel of '" + name_ +
                                    "' is " + DescribeParam(given[i]) + "; '" + wanted[i].name +
                                    "' is declared " + DescribeParam(wanted[i]))
          .With({declared_.span, "declared here"});
      return false;
    }
    return true;
  }

  // "FILE" or "FILE", SYMBOL
  bool ReadArguments() {
    const std::string& args = hatch_.args;
    const std::optional<std::string> path = KernelPath(hatch_);
    if (!path) {
      Error(Kind::kSyntax, "l0::kernel takes the name of a file")
          .Fix("write it in quotes: #[l0::kernel(\"fast.uop\")]");
      return false;
    }
    name_ = *path;
    const size_t end = name_.size() + 1;
    symbol_ = declared_.name;
    if (end + 1 == args.size()) return true;
    const std::string_view rest = std::string_view(args).substr(end + 1);
    const auto word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    };
    if (!rest.starts_with(", ") || rest.size() == 2 ||
        !std::all_of(rest.begin() + 2, rest.end(), word) || name_.ends_with(".uop")) {
      Error(Kind::kSyntax, "behind the file l0::kernel takes the name of a function in it")
          .Fix("#[l0::kernel(\"libfast.so\", dense_fast)]; a file of UOps holds one kernel");
      return false;
    }
    symbol_ = rest.substr(2);
    return true;
  }

  // Nothing after an error.
  std::optional<support::SourceFile> ReadText() {
    support::Diagnostics reading;
    std::optional<support::SourceFile> source = support::SourceFile::Read(path_.string(), reading);
    if (!source) Error(Kind::kEnvironment, reading.all().front().message);
    return source;
  }

  std::optional<Kernel> ReadUops() {
    const std::optional<support::SourceFile> source = ReadText();
    if (!source) return std::nullopt;
    support::Diagnostics reading(&*source);
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

  std::optional<KernelCode> ReadIr() {
    const std::optional<support::SourceFile> source = ReadText();
    if (!source) return std::nullopt;
    KernelCode code;
    code.form = KernelCode::Form::kLlvm;
    code.symbol = symbol_;
    code.span = hatch_.span;
    for (const char c : source->text()) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte == '\r') continue;
      if ((byte < ' ' && byte != '\n' && byte != '\t') || byte > '~') {
        Error(Kind::kSyntax, "'" + name_ + "' is no text of IR")
            .Fix("bitcode is turned into text by llvm-dis");
        return std::nullopt;
      }
      code.text += c;
    }
    if (!code.text.ends_with('\n')) code.text += '\n';
    return code;
  }

  std::optional<KernelCode> ReadObject() {
    std::error_code error;
    KernelCode code;
    code.form = KernelCode::Form::kObject;
    code.symbol = symbol_;
    code.path = fs::absolute(path_, error).lexically_normal().string();
    code.span = hatch_.span;
    const std::optional<uint64_t> digest =
        fs::is_regular_file(code.path, error) ? DigestOfFile(code.path) : std::nullopt;
    if (!digest) {
      Error(Kind::kEnvironment, "cannot read '" + path_.string() + "'");
      return std::nullopt;
    }
    code.digest = *digest;
    // An ELF file of type ET_DYN.
    std::array<char, 18> head = {};
    std::ifstream(code.path, std::ios::binary).read(head.data(), head.size());
    if (std::string_view(head.data(), 4) !=
            "\x7f"
            "ELF" ||
        head[16] != 3) {
      Error(Kind::kEnvironment, "'" + name_ + "' is no shared object")
          .Fix("cc -O2 -shared -fPIC -o " + name_ + " kernel.c makes one");
      return std::nullopt;
    }
    return code;
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
  std::string name_;    // of the file, as written
  std::string symbol_;  // of code in it
  fs::path path_;
};

}  // namespace

std::optional<std::string> KernelPath(const support::EscapeHatch& hatch) {
  const std::string& args = hatch.args;
  const size_t end = args.size() < 3 || args.front() != '"' ? std::string::npos : args.find('"', 1);
  if (end == std::string::npos || end == 1) return std::nullopt;
  return args.substr(1, end - 1);
}

std::optional<FileKernel> KernelFromFile(const support::EscapeHatch& hatch, const Kernel& declared,
                                         const std::string& folder,
                                         support::Diagnostics& diagnostics) {
  return FileReader(hatch, declared, diagnostics).Read(folder);
}

}  // namespace l3c::l0
