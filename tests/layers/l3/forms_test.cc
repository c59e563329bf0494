// docs/forms.md has a row for every form of L3 that the parser knows, with an example that uses it
// and a test that exists.
#include "layers/l3/forms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/layers/forms_page.h"

namespace l3c::l3 {
namespace {

TEST(L3Forms, EveryFormHasARowWithAnExampleAndATest) {
  const std::map<std::string, std::vector<std::string>> sections = {
      {"L3: domains", DomainForms()},
      {"L3: properties", PropertyForms()},
      {"L3: losses", LossForms()},
      {"L3: goals", GoalForms()}};
  auto rows = forms_page::Rows();
  for (const auto& [name, forms] : sections) {
    std::vector<std::string> expected = forms, found;
    for (const forms_page::Row& row : rows[name]) {
      found.push_back(row.form);
      forms_page::Check(row);
    }
    std::sort(expected.begin(), expected.end());
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected) << "docs/forms.md, section '" << name << "'";
  }
}

}  // namespace
}  // namespace l3c::l3
