#include "egraph/proof_text.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "egraph/f64_text.h"
#include "egraph/quoted_text.h"
#include "nlohmann/json.hpp"

namespace l3c::egraph {
namespace {

using Json = nlohmann::ordered_json;
using Kind = Proof::Step::Kind;

// A term of more symbols than this gets a name where it is used twice.
constexpr uint32_t kLongTerm = 6;
// No term is written out beyond this many symbols.
constexpr uint32_t kLongestTerm = 60;

class Printer {
 public:
  Printer(const EGraph& graph, const Proof& proof) : graph_(graph), proof_(proof) { ChooseNames(); }

  std::string Text() const {
    std::string text;
    for (uint32_t t = 0; t < proof_.terms.size(); ++t) {
      if (!names_[t].empty()) text += names_[t] + " = " + Written(t) + "\n";
    }
    if (!text.empty()) text += "\n";
    for (uint32_t s = 0; s < proof_.steps.size(); ++s) {
      text += std::to_string(s + 1) + ". " + Claim(s) + "\n     " + Reason(s) + "\n";
    }
    return text;
  }

  std::string Claim(uint32_t s) const {
    const Proof::Step& step = proof_.steps[s];
    const Proof::Term& lhs = proof_.terms[step.lhs];
    const bool relation = lhs.kind == Proof::Term::Kind::kCall &&
                          graph_.function(lhs.function).kind == FunctionKind::kRelation;
    if (relation) return Term(step.lhs);
    if (step.lhs == step.rhs) return Term(step.lhs) + " is there";
    return Term(step.lhs) + " = " + Term(step.rhs);
  }

  std::string Reason(uint32_t s) const {
    const Proof::Step& step = proof_.steps[s];
    switch (step.kind) {
      case Kind::kGivenTerm:
      case Kind::kGivenEquality:
      case Kind::kGivenFact:
        return "given";
      case Kind::kApply:
        return Applied(proof_.applications[step.source]);
      case Kind::kEqualArguments:
        return "the same as " + Refs(std::span(step.premises).first(1)) +
               " with equal arguments: " + Refs(std::span(step.premises).subspan(1));
      case Kind::kChain:
        return "along " + Refs(step.premises);
      case Kind::kThere:
        return "because of " + Refs(step.premises);
      case Kind::kContainer:
        return "equal elements: " + Refs(step.premises);
    }
    return "";
  }

  // The term by its name, if it has one.
  std::string Term(uint32_t t) const { return names_[t].empty() ? Written(t) : names_[t]; }

  std::string SlotName(const Proof::Application& app, size_t slot) const {
    if (app.kind == Proof::Application::Kind::kMerge) {
      const size_t count = graph_.function(FunctionId{app.subject}).inputs.size();
      return slot == count ? "old" : slot > count ? "new" : "argument " + std::to_string(slot + 1);
    }
    if (app.kind != Proof::Application::Kind::kRule) return "";
    const std::vector<std::string>& names = graph_.rule(RuleId{app.subject}).query.slot_names;
    return slot < names.size() ? names[slot] : "";
  }

  std::string Subject(const Proof::Application& app) const {
    switch (app.kind) {
      case Proof::Application::Kind::kRule: {
        const Rule& rule = graph_.rule(RuleId{app.subject});
        return "rule \"" + rule.name + "\" (" + rule.file + ":" + std::to_string(rule.line) + ")";
      }
      case Proof::Application::Kind::kStatement: {
        const Rule& rule = *graph_.proof_log()->statements()[app.subject];
        return rule.file + ":" + std::to_string(rule.line) + ": " + rule.name;
      }
      case Proof::Application::Kind::kMerge:
        return "the merge of '" + graph_.function(FunctionId{app.subject}).name + "'";
    }
    return "";
  }

 private:
  std::string Applied(const Proof::Application& app) const {
    if (app.kind == Proof::Application::Kind::kStatement) return "stated at " + Subject(app);
    std::string text = "by " + Subject(app);
    std::string with;
    for (size_t i = 0; i < app.slots.size(); ++i) {
      const std::string name = SlotName(app, i);
      if (!name.empty())
        with += (with.empty() ? " with " : ", ") + name + " = " + Term(app.slots[i]);
    }
    text += with;
    std::vector<Proof::Ref> premises;
    for (const Proof::Ref& r : app.premises) {
      if (r.step == Proof::kNone) continue;
      if (std::find(premises.begin(), premises.end(), r) == premises.end()) premises.push_back(r);
    }
    if (!premises.empty()) text += "; because " + Refs(premises);
    return text;
  }

  static std::string Refs(std::span<const Proof::Ref> refs) {
    std::string text;
    for (const Proof::Ref& r : refs) {
      if (!text.empty()) text += ", ";
      text += std::to_string(r.step + 1);
      if (r.reversed) text += " backwards";
    }
    return text;
  }

  std::string Literal(const Proof::Term& term) const {
    if (const auto* i = std::get_if<int64_t>(&term.literal)) {
      return term.sort == kUnit ? "()" : std::to_string(*i);
    }
    if (const auto* b = std::get_if<bool>(&term.literal)) return *b ? "true" : "false";
    if (const auto* d = std::get_if<double>(&term.literal)) return F64Literal(*d);
    const std::string& s = std::get<std::string>(term.literal);
    return term.sort == kString ? QuotedText(s) : s;
  }

  // Parts that are named stand by their names; a term that is too long all the same is cut.
  std::string Written(uint32_t root) const {
    std::string text;
    uint32_t symbols = 0;
    struct Open {
      uint32_t term;
      size_t next;
    };
    std::vector<Open> stack{{root, 0}};
    while (!stack.empty()) {
      const uint32_t t = stack.back().term;
      const Proof::Term& term = proof_.terms[t];
      const size_t next = stack.back().next;
      if (next == 0) {
        if (term.kind == Proof::Term::Kind::kLiteral) {
          text += Literal(term);
          stack.pop_back();
          continue;
        }
        text += "(" + (term.kind == Proof::Term::Kind::kCall
                           ? graph_.function(term.function).name
                           : std::string(ContainerConstructor(graph_.sort(term.sort).container)));
      }
      if (next == term.args.size()) {
        text += ')';
        stack.pop_back();
        continue;
      }
      ++stack.back().next;
      const uint32_t arg = term.args[next];
      const Proof::Term& part = proof_.terms[arg];
      if (part.sort == kUnit && term.kind == Proof::Term::Kind::kContainer) continue;
      text += ' ';
      if (!names_[arg].empty()) {
        text += names_[arg];
      } else if (++symbols > kLongestTerm) {
        text += "…";
      } else {
        stack.push_back({arg, 0});
      }
    }
    return text;
  }

  void ChooseNames() {
    names_.resize(proof_.terms.size());
    std::vector<uint32_t> uses(proof_.terms.size(), 0);
    for (const Proof::Term& term : proof_.terms) {
      for (uint32_t arg : term.args) ++uses[arg];
    }
    for (const Proof::Step& step : proof_.steps) {
      ++uses[step.lhs];
      if (step.rhs != step.lhs) ++uses[step.rhs];
    }
    for (const Proof::Application& app : proof_.applications) {
      for (uint32_t t : app.slots) ++uses[t];
    }
    // Symbols of a term when its named parts count as one.
    std::vector<uint32_t> sizes(proof_.terms.size(), 1);
    uint32_t count = 0;
    for (uint32_t t = 0; t < proof_.terms.size(); ++t) {
      for (uint32_t arg : proof_.terms[t].args) sizes[t] += names_[arg].empty() ? sizes[arg] : 1;
      const bool value =
          proof_.terms[t].kind == Proof::Term::Kind::kCall &&
          graph_.function(proof_.terms[t].function).kind != FunctionKind::kConstructor;
      if (!value && sizes[t] > kLongTerm && uses[t] > 1) names_[t] = "t" + std::to_string(++count);
    }
  }

  const EGraph& graph_;
  const Proof& proof_;
  std::vector<std::string> names_;  // by term
};

// A text as a JSON string.
std::string JsonString(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Calls `add` for each item, with commas between what it appends.
template <typename Items, typename Add>
void AppendList(const Items& items, std::string* json, Add add) {
  *json += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!std::exchange(first, false)) *json += ',';
    add(item);
  }
  *json += ']';
}

void AppendNumbers(const std::vector<uint32_t>& numbers, std::string* json) {
  AppendList(numbers, json, [&](uint32_t n) { *json += std::to_string(n); });
}

void AppendRefs(const std::vector<Proof::Ref>& refs, std::string* json) {
  AppendList(refs, json, [&](const Proof::Ref& r) {
    if (r.step == Proof::kNone) {
      *json += "null";
    } else {
      *json += "{\"step\":" + std::to_string(r.step) +
               ",\"reversed\":" + (r.reversed ? "true}" : "false}");
    }
  });
}

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kGivenTerm:
    case Kind::kGivenEquality:
    case Kind::kGivenFact:
      return "given";
    case Kind::kApply:
      return "apply";
    case Kind::kEqualArguments:
      return "congruence";
    case Kind::kChain:
      return "chain";
    case Kind::kThere:
      return "there";
    case Kind::kContainer:
      return "container";
  }
  return "";
}

}  // namespace

std::string PrintProof(const EGraph& graph, const Proof& proof) {
  return Printer(graph, proof).Text();
}

// Written out at once: as a tree of JSON values a long proof takes a hundred times its text.
std::string ProofJson(const EGraph& graph, const Proof& proof) {
  const Printer printer(graph, proof);
  std::string json = "{\"size\":" + std::to_string(proof.steps.size()) +
                     ",\"first_size\":" + std::to_string(proof.first_steps) + ",\"terms\":";
  AppendList(proof.terms, &json, [&](const Proof::Term& term) {
    json += "{\"sort\":" + JsonString(graph.sort(term.sort).name);
    if (term.kind == Proof::Term::Kind::kLiteral) {
      json += ",\"literal\":";
      std::visit(
          [&](const auto& value) {
            json += Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
          },
          term.literal);
    } else {
      json += ",\"head\":" +
              JsonString(term.kind == Proof::Term::Kind::kCall
                             ? std::string_view(graph.function(term.function).name)
                             : ContainerConstructor(graph.sort(term.sort).container)) +
              ",\"args\":";
      AppendNumbers(term.args, &json);
    }
    json += '}';
  });
  json += ",\"applications\":";
  AppendList(proof.applications, &json, [&](const Proof::Application& app) {
    json += "{\"by\":" + JsonString(printer.Subject(app)) + ",\"substitution\":";
    size_t slot = 0;
    AppendList(app.slots, &json, [&](uint32_t term) {
      json += "{\"name\":" + JsonString(printer.SlotName(app, slot++)) +
              ",\"term\":" + std::to_string(term) + "}";
    });
    json += ",\"reads\":";
    AppendNumbers(app.reads, &json);
    json += ",\"premises\":";
    AppendRefs(app.premises, &json);
    json += '}';
  });
  json += ",\"steps\":";
  uint32_t number = 0;
  AppendList(proof.steps, &json, [&](const Proof::Step& step) {
    json += "{\"kind\":" + JsonString(KindName(step.kind)) +
            ",\"lhs\":" + std::to_string(step.lhs) + ",\"rhs\":" + std::to_string(step.rhs);
    if (step.kind == Kind::kApply) json += ",\"application\":" + std::to_string(step.source);
    json += ",\"premises\":";
    AppendRefs(step.premises, &json);
    json += ",\"text\":" + JsonString(printer.Claim(number++)) + "}";
  });
  json += ",\"goals\":";
  AppendNumbers(proof.goals, &json);
  return json + "}";
}

}  // namespace l3c::egraph
