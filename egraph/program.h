// The text language (.egg): s-expressions that declare, add, run and check.
//
// egglog's language, with two extensions: `:numerics exact|reassoc|fast` on rewrite, birewrite and
// rule, and the command why-not. docs/egg-language.md lists what is understood, and the options of
// egglog that are read and change nothing. All else is an error at file:line:col.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/error_kind.h"
#include "egraph/run.h"

namespace l3c::egraph {

// The outcome of reading a program: fine, or the first error with its place.
struct ProgramStatus {
  bool ok = true;
  std::string file;
  uint32_t line = 0;    // 1-based
  uint32_t column = 0;  // 1-based, in characters
  std::string message;
  ErrorKind kind = ErrorKind::kSyntax;
  uint32_t begin = 0;  // bytes [begin, end) of the file's text hold what is wrong
  uint32_t end = 0;
  // The text, where it is that of a file that the program includes.
  std::shared_ptr<const std::string> included;

  explicit operator bool() const { return ok; }
  std::string ToString() const;  // "FILE:LINE:COL: error: MESSAGE", or "ok"
};

struct ProgramOptions {
  Budget budget;  // of each `run` and `run-schedule`
  // Inputs larger than this are refused, included files as well.
  size_t max_bytes = 8u << 20;
  // Of all that a program prints, and writes to files.
  size_t max_output = 256u << 20;
  // Where include, input, output and `:file` find and put files. Empty: such commands are errors,
  // so that a text from elsewhere touches nothing.
  std::string directory;
  // Where the graph keeps a log for proofs: every check that holds is proven too, and the proof
  // checked.
  bool prove_checks = false;
  // Whether what is printed of proofs is wanted as JSON too.
  bool json = false;
};

// What one command has printed.
struct Printed {
  enum class Kind : uint8_t {
    kSize,
    kSizes,
    kTerm,
    kVariants,
    kFunction,
    kStatistics,
    kProof,
    kWhyNot
  };
  Kind kind = Kind::kSize;
  std::string text;                                   // ends with a newline
  uint64_t cost = 0;                                  // kTerm
  std::vector<std::pair<std::string, size_t>> sizes;  // kSize (without a name), kSizes
  std::string json;  // kProof, kWhyNot, under ProgramOptions::json: the same as an object
};

struct ProgramResult {
  ProgramStatus status;
  // By extract, print-size, print-function, print-stats, prove, prove-exists and why-not.
  std::vector<Printed> printed;
  std::vector<RunReport> reports;  // one for each `run` and `run-schedule`, in order
  // Under prove_checks: how many checks were proven, in how many steps, and for each other one why
  // there is no proof of it.
  size_t proven_checks = 0;
  size_t proof_steps = 0;
  std::vector<std::string> unproven_checks;
  // The classes that extract was asked for, in order, without those of a graph that was popped.
  std::vector<Value> extracted;

  bool ok() const { return status.ok; }
  std::string output() const;  // the text of all that was printed
};

// Reads `text` and carries out its commands one by one on `graph`; `file` names the text in errors
// and in the provenance of rules. On an error the commands before it have taken effect. Sorts,
// functions, primitives and rulesets that the graph already has can be used, from C++ or from
// earlier texts.
ProgramResult LoadProgram(EGraph& graph, std::string_view text, std::string_view file,
                          const ProgramOptions& options = {});

// The text form of a value: a literal, or for classes the smallest term.
std::string FormatValue(const EGraph& graph, SortId sort, Value value);

}  // namespace l3c::egraph
