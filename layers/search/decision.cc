#include "layers/search/decision.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "nlohmann/json.hpp"

namespace l3c::search {
namespace {

using Json = nlohmann::ordered_json;

// As many losers as the text shows; the JSON has them all.
constexpr size_t kLosersShown = 2;
constexpr size_t kPlacesShown = 8;

std::string Short(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.4g", value);
  return buffer;
}

std::string WithUnit(double value, const std::string& unit) {
  return unit.empty() ? Short(value) : Short(value) + " " + unit;
}

// Beyond 2^53 a count is known to so many figures only.
constexpr double kExactCounts = 9007199254740992;

std::string CountText(double count) {
  if (std::isinf(count)) return "more than 10^308";
  if (count < kExactCounts) return std::to_string(static_cast<uint64_t>(count));
  return "about " + Short(count);
}

std::string CostText(const CostVector& cost) {
  std::string text;
  for (const CostComponent& c : cost) {
    if (!text.empty()) text += ", ";
    text += c.name + " " + WithUnit(c.value, c.unit);
    if (!c.evidence.empty()) text += " (" + c.evidence + ")";
  }
  return text;
}

std::string DifferenceText(const CostVector& difference) {
  std::string text;
  for (const CostComponent& c : difference) {
    if (c.value == 0) continue;
    if (!text.empty()) text += ", ";
    text += (c.value > 0 ? "+" : "") + WithUnit(c.value, c.unit) + " " + c.name;
  }
  return text.empty() ? "the same cost" : text;
}

// JSON has no infinity; a figure that is none is written as a string.
Json Number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Json CountJson(double count) {
  if (count < kExactCounts) return static_cast<uint64_t>(count);
  return std::min(count, std::numeric_limits<double>::max());
}

Json CostJson(const CostVector& cost) {
  Json json = Json::array();
  for (const CostComponent& c : cost) {
    json.push_back(
        {{"name", c.name}, {"value", Number(c.value)}, {"unit", c.unit}, {"evidence", c.evidence}});
  }
  return json;
}

Json PrunedJson(const std::vector<Pruned>& pruned) {
  Json json = Json::array();
  for (const Pruned& p : pruned) {
    json.push_back({{"what", p.what}, {"why", p.why}, {"count", p.count}});
  }
  return json;
}

void AppendPruned(const std::vector<Pruned>& pruned, const std::string& indent, std::string& out) {
  for (const Pruned& p : pruned) {
    out += indent + "pruned    " + p.what + ": " + p.why;
    if (p.count > 0) out += " (" + std::to_string(p.count) + ")";
    out += "\n";
  }
}

}  // namespace

CostVector Difference(const CostVector& loser, const CostVector& winner) {
  CostVector difference = loser;
  for (size_t i = 0; i < difference.size() && i < winner.size(); ++i) {
    difference[i].value -= winner[i].value;
  }
  return difference;
}

const Decision* Explanation::Find(std::string_view id) const {
  for (const Decision& decision : decisions) {
    if (decision.id == id) return &decision;
  }
  return nullptr;
}

std::string RenderRuleTraces(const Explanation& explanation) {
  std::string out;
  const auto places = [&](const char* label, const std::vector<std::string>& list) {
    for (size_t i = 0; i < std::min(list.size(), kPlacesShown); ++i) {
      out += "    " + std::string(i == 0 ? label : "         ") + " " + list[i] + "\n";
    }
    if (list.size() > kPlacesShown) {
      out += "              and " + std::to_string(list.size() - kPlacesShown) + " more\n";
    }
  };
  for (const RuleTrace& t : explanation.traces) {
    out += "  rule '" + t.rule.name + "' (" + t.numerics + ")  " + t.rule.file + ":" +
           std::to_string(t.rule.line) + "\n";
    if (t.matches > 0) out += "    fired     " + std::to_string(t.matches) + " times\n";
    places("won      ", t.won);
    places("lost     ", t.lost);
    if (t.matches > 0 && t.won.empty() && t.lost.empty()) {
      out += "    lost      nowhere: what it gave was known already, or nothing needs it\n";
    }
    if (!t.why_not.empty()) out += "    never     " + t.why_not + "\n";
  }
  return out;
}

std::string RenderExplanation(const Explanation& explanation) {
  std::string out = explanation.lowering + "\n";
  // Decisions of one lowering share the cost of the whole; it is shown where it changes.
  std::string shown;
  for (const Decision& d : explanation.decisions) {
    out += "  " + d.id + " = " + d.chosen + (d.forced ? "  [forced]" : "") + "\n";
    if (const std::string cost = CostText(d.cost); !cost.empty() && cost != shown) {
      out += "    cost      " + cost + "\n";
      shown = cost;
    }
    for (size_t i = 0; i < d.losers.size() && i < kLosersShown; ++i) {
      const Loser& loser = d.losers[i];
      out += "    loser     " + loser.label + ": " + DifferenceText(loser.difference);
      const bool tie = std::all_of(loser.difference.begin(), loser.difference.end(),
                                   [](const CostComponent& c) { return c.value == 0; });
      if (tie) {
        out += "; decided by the fixed order";
      } else if (!loser.decided_by.empty()) {
        out += "; decided by " + loser.decided_by;
      }
      out += "\n";
    }
    if (d.losers.size() > kLosersShown) {
      out += "              and " + std::to_string(d.losers.size() - kLosersShown) + " more\n";
    }
    for (const RuleUse& rule : d.rules) {
      out +=
          "    rule      " + rule.name + "  " + rule.file + ":" + std::to_string(rule.line) + "\n";
    }
    AppendPruned(d.pruned, "    ", out);
  }
  AppendPruned(explanation.pruned, "  ", out);
  for (const std::string& cut : explanation.cuts) out += "  cut       " + cut + "\n";
  out += RenderRuleTraces(explanation);
  const SearchReport& r = explanation.report;
  out += "  searched  " + CountText(r.candidates) + " candidates on " +
         std::to_string(r.egraph_nodes) + " e-nodes in " + std::to_string(r.egraph_classes) +
         " classes; " + std::to_string(r.scored) + " scored one by one\n";
  out += "  work      " + std::to_string(r.work);
  if (r.work_budget > 0) out += " of " + std::to_string(r.work_budget);
  out += "; stopped: " + r.stop_reason + "\n";
  return out;
}

std::string RenderExplanationJson(const Explanation& explanation) {
  std::string out;
  for (const Decision& d : explanation.decisions) {
    Json losers = Json::array();
    for (const Loser& loser : d.losers) {
      losers.push_back({{"label", loser.label},
                        {"cost", CostJson(loser.cost)},
                        {"difference", CostJson(loser.difference)},
                        {"decided_by", loser.decided_by}});
    }
    Json rules = Json::array();
    for (const RuleUse& rule : d.rules) {
      rules.push_back({{"name", rule.name}, {"file", rule.file}, {"line", rule.line}});
    }
    const Json line = {{"event", "decision"},
                       {"lowering", explanation.lowering},
                       {"id", d.id},
                       {"chosen", d.chosen},
                       {"forced", d.forced},
                       {"cost", CostJson(d.cost)},
                       {"losers", losers},
                       {"rules", rules},
                       {"pruned", PrunedJson(d.pruned)}};
    out += line.dump() + "\n";
  }
  for (const RuleTrace& t : explanation.traces) {
    const Json line = {{"event", "rule"},      {"lowering", explanation.lowering},
                       {"name", t.rule.name},  {"file", t.rule.file},
                       {"line", t.rule.line},  {"numerics", t.numerics},
                       {"matches", t.matches}, {"won", t.won},
                       {"lost", t.lost},       {"why_not", t.why_not}};
    out += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  const SearchReport& r = explanation.report;
  Json line = {{"event", "search"},
               {"lowering", explanation.lowering},
               {"egraph_nodes", r.egraph_nodes},
               {"egraph_classes", r.egraph_classes},
               {"work", r.work},
               {"work_budget", r.work_budget},
               {"stop_reason", r.stop_reason},
               {"candidates", CountJson(r.candidates)},
               {"scored", r.scored},
               {"pruned", PrunedJson(explanation.pruned)}};
  if (!explanation.cuts.empty()) line["cuts"] = explanation.cuts;
  return out + line.dump() + "\n";
}

}  // namespace l3c::search
