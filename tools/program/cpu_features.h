// Which instructions a CPU has, by LLVM's names for them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace l3c::program {

// The names in "+avx2,+fma,-avx512f" that are asked for; those with a minus are not.
std::vector<std::string> RequiredFeatures(std::string_view features);

// Whether HasFeature can tell: the features that generated code may be made for.
bool IsKnownFeature(std::string_view name);

// Whether this CPU has it and the system lets programs use it. False for unknown names.
bool HasFeature(std::string_view name);

// The known features that this CPU has, as "+a,+b".
std::string FeaturesHere();

// Those of a level of the x86-64 ABI: "x86-64", "x86-64-v2", "-v3", "-v4"; "" for other names.
std::string_view FeaturesOfLevel(std::string_view level);

}  // namespace l3c::program
