// What is wrong with a text, in the terms of all diagnostics of l3c.
#pragma once

#include <cstdint>
#include <string_view>

namespace l3c::egraph {

enum class ErrorKind : uint8_t {
  kSyntax,         // not the form that belongs there
  kSafety,         // names and sorts that do not fit
  kConsistency,    // what was asked for does not hold
  kResourceBound,  // a limit
  kEnvironment     // files
};

// "syntax", …, "resource-bound", "environment"
constexpr std::string_view ErrorKindName(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kSyntax:
      return "syntax";
    case ErrorKind::kSafety:
      return "safety";
    case ErrorKind::kConsistency:
      return "consistency";
    case ErrorKind::kResourceBound:
      return "resource-bound";
    case ErrorKind::kEnvironment:
      return "environment";
  }
  return "";
}

}  // namespace l3c::egraph
