// The convergence priors: every figure that ranks a method says where it comes from.
#include "layers/l2/priors.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "nlohmann/json.hpp"

namespace l3c::l2 {
namespace {

nlohmann::json File() {
  std::ifstream in(std::string(L3C_SOURCE_DIR) + "/cost/priors.json");
  std::stringstream text;
  text << in.rdbuf();
  return nlohmann::json::parse(text.str());
}

std::string Refusal(const nlohmann::json& json) {
  try {
    ParsePriors(json.dump());
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(L2Priors, EveryGroupNamesItsSources) {
  const nlohmann::json file = File();
  EXPECT_EQ(Refusal(file), "");
  int groups = 0;
  for (const auto& [name, group] : file.items()) {
    if (!group.is_object() || name == "machine" || name == "steps") continue;
    ++groups;
    for (const char* key : {"basis", "sources"}) {
      nlohmann::json broken = file;
      broken[name].erase(key);
      EXPECT_EQ(Refusal(broken), "priors: '" + name + "' names no basis or no sources");
    }
    nlohmann::json empty = file;
    empty[name]["sources"] = nlohmann::json::array();
    EXPECT_NE(Refusal(empty), "") << name;
  }
  EXPECT_EQ(groups, 13);
}

}  // namespace
}  // namespace l3c::l2
