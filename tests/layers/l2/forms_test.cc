// docs/forms.md has a row for every form of the parser's own tables, with an example that uses the
// form and a test that exists.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "layers/l2/form.h"
#include "tests/layers/forms_page.h"

namespace l3c::l2 {
namespace {

using forms_page::Row;

TEST(L2Forms, EveryFormHasARow) {
  const std::map<std::string, Family> sections = {{"L2: sample methods", Family::kSample},
                                                  {"L2: layers", Family::kLayer},
                                                  {"L2: infer methods", Family::kInfer},
                                                  {"L2: norms", Family::kNorm},
                                                  {"L2: backward methods", Family::kBackward},
                                                  {"L2: updates", Family::kUpdate},
                                                  {"L2: losses", Family::kLoss}};
  const auto rows = forms_page::Rows();
  for (const auto& [section, family] : sections) {
    ASSERT_TRUE(rows.contains(section)) << section;
    std::vector<std::string> documented;
    for (const Row& row : rows.at(section)) documented.push_back(row.form);
    for (const std::string& name : EntryNames(family)) {
      if (name.starts_with("test_")) continue;  // registered by another test
      EXPECT_NE(std::find(documented.begin(), documented.end(), name), documented.end())
          << "docs/forms.md, section '" << section << "', lacks a row for `" << name << "`";
    }
    for (const std::string& name : documented) {
      // The two brackets of the grammar, which have no entry.
      if (name == "sequential" || name == "residual") continue;
      EXPECT_NE(FindEntry(family, name), nullptr)
          << section << ": there is no form `" << name << "`";
    }
  }
}

TEST(L2Forms, ExamplesUseTheirFormAndTestsExist) {
  for (const auto& [section, rows] : forms_page::Rows()) {
    if (!section.starts_with("L2: ")) continue;
    for (const Row& row : rows) forms_page::Check(row);
  }
}

}  // namespace
}  // namespace l3c::l2
