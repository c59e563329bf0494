// The command line of a program that `l3c build` made: the run options of `l3c run`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tools/program/program.h"

namespace l3c::program {

struct Options {
  std::map<std::string, std::string> data;  // --data NAME=DIR
  std::optional<uint64_t> seed;             // --seed N
  std::optional<int64_t> epochs;            // --epochs N
  std::optional<int64_t> steps;             // --steps N
  int threads = 0;                          // --threads N; 0: all cores
  std::string io = "auto";                  // --io auto|uring|portable
  std::optional<int64_t> data_memory;       // --data-memory BYTES
  std::string timeline;                     // --timeline FILE
  bool synthetic = false;                   // --synthetic
  std::string output;                       // -o FOLDER
  bool overwrite = false;                   // --overwrite
  std::string resume;                       // --resume FOLDER
  bool json = false;                        // --json
  bool sarif = false;                       // --diagnostics=json
  bool color = false;
};

// As tools/l3c/options.h does: without options, it has printed what there is to print.
struct ParsedCommandLine {
  std::optional<Options> options;
  int exit_code = 0;
};
ParsedCommandLine ParseCommandLine(const Program& program, int argc, char** argv);

}  // namespace l3c::program
