// Golden diagnostics: tests/errors/LAYER/ROW_CASE.LAYER is refused with exactly the text beside it,
// ROW_valid.LAYER with none. L3C_UPDATE_GOLDEN=1 writes the texts anew.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace l3c::testing {

struct GoldenCase {
  std::string name;  // of its file
  std::string text;
};

// The files of a layer ("l1"), by name.
std::vector<GoldenCase> GoldenCases(const std::string& layer);

// What is reported of a program, "" for nothing.
using Diagnose = std::function<std::string(const GoldenCase& program)>;

// Fails where a case reports something else than is recorded.
void ExpectAsRecorded(const std::string& layer, const std::vector<GoldenCase>& cases,
                      const Diagnose& diagnose);

// Fails where a row of the verifier's table has fewer than two cases that break it, or, with
// `neighbours`, none that does not.
void ExpectRowsCovered(const std::vector<GoldenCase>& cases,
                       const std::vector<std::string_view>& rows, bool neighbours);

}  // namespace l3c::testing
