#include "tools/l3c/tune/record.h"

#include "nlohmann/json.hpp"

namespace l3c::tools::tune {

using nlohmann::ordered_json;

std::string Trial::Label() const {
  if (greedy) return "the plan of --search greedy";
  std::string label;
  for (const auto& [id, choice] : forced) label += (label.empty() ? "" : "; ") + id + "=" + choice;
  return label;
}

std::string WriteRecord(const Record& record) {
  ordered_json trials = ordered_json::array();
  for (const Trial& trial : record.trials) {
    trials.push_back({{"forced", trial.forced},
                      {"greedy", trial.greedy},
                      {"predicted", trial.predicted},
                      {"ratios", trial.ratios},
                      {"refused", trial.refused},
                      {"checked", trial.checked}});
  }
  const ordered_json whole = {{"spent_seconds", record.spent_seconds},
                              {"base", record.base},
                              {"trials", trials},
                              {"done", record.done}};
  return whole.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::optional<Record> ReadRecord(std::string_view text) {
  try {
    const ordered_json whole = ordered_json::parse(text);
    Record record;
    record.spent_seconds = whole.at("spent_seconds").get<double>();
    record.base = whole.at("base").get<std::vector<double>>();
    record.done = whole.at("done").get<bool>();
    for (const ordered_json& from : whole.at("trials")) {
      Trial trial;
      trial.forced = from.at("forced").get<std::map<std::string, std::string>>();
      trial.greedy = from.at("greedy").get<bool>();
      trial.predicted = from.at("predicted").get<double>();
      trial.ratios = from.at("ratios").get<std::vector<double>>();
      trial.refused = from.at("refused").get<std::string>();
      trial.checked = from.at("checked").get<bool>();
      record.trials.push_back(std::move(trial));
    }
    return record;
  } catch (const ordered_json::exception&) {
    return std::nullopt;
  }
}

}  // namespace l3c::tools::tune
