// The words of the language that stand for a choice, as the parser knows them: what docs/forms.md
// has a row for each.
#pragma once

#include <string>
#include <vector>

namespace l3c::l3 {

const std::vector<std::string>& DomainForms();    // tensor, sequence, …
const std::vector<std::string>& PropertyForms();  // depth, width, …
const std::vector<std::string>& LossForms();      // divergence, norm, …
const std::vector<std::string>& GoalForms();      // minimize, maximize, …

}  // namespace l3c::l3
