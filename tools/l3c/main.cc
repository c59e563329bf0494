// l3c: the command line.
#include <cstdio>
#include <exception>
#include <new>

#include "tools/l3c/commands.h"
#include "tools/l3c/options.h"

int main(int argc, char** argv) {
  using namespace l3c::tools;
  const ParsedCommandLine command_line = ParseCommandLine(argc, argv);
  if (!command_line.options) return command_line.exit_code;
  const Options& options = *command_line.options;
  try {
    switch (options.verb) {
      case Verb::kCheck: return Check(options);
      case Verb::kOptimize: return Optimize(options);
      case Verb::kLower: return Lower(options);
      case Verb::kRun: return Run(options);
      case Verb::kEval: return Eval(options);
      case Verb::kEGraphRun: return EGraphRun(options);
      case Verb::kEGraphExtract: return EGraphExtract(options);
    }
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "error[environment]: out of memory\n");
  } catch (const std::exception& error) {
    // Nothing throws on bad input; what arrives here is a defect of l3c.
    std::fprintf(stderr, "internal error: %s\nplease report it with the input\n", error.what());
  }
  return 1;
}
