// l3c rules: the built-in rule sets, and whether a file of rules holds.
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>
#include <string>

#include "layers/rules/check.h"
#include "layers/rules/rule_file.h"
#include "layers/support/diagnostics.h"
#include "layers/support/source.h"
#include "nlohmann/json.hpp"
#include "rewrites/rewrites.h"
#include "tools/l3c/commands.h"
#include "tools/l3c/json_lines.h"

namespace l3c::tools {
namespace {

using Json = nlohmann::ordered_json;
using Verdict = rules::RuleVerdict;

void PrintErrors(const support::Diagnostics& diagnostics, const Options& options) {
  std::cout.flush();
  std::cerr << (options.sarif ? diagnostics.RenderSarif() : diagnostics.Render(options.color));
  PrintJsonDiagnostics(diagnostics);
}

// A file, or a built-in rule set by its name.
std::optional<support::SourceFile> Open(const std::string& name,
                                        support::Diagnostics& diagnostics) {
  for (const rewrites::RuleFile& file : rewrites::All()) {
    if (file.name == name) {
      return support::SourceFile(std::string(file.path), std::string(file.text));
    }
  }
  return support::SourceFile::Read(name, diagnostics);
}

Json RuleJson(const support::SourceFile& source, const Verdict& verdict) {
  const support::LineColumn at = source.Position(verdict.rule.span.begin);
  Json json{{"event", "rule"},
            {"file", source.name()},
            {"line", at.line},
            {"column", at.column},
            {"rule", verdict.rule.name},
            {"ruleset", verdict.rule.ruleset},
            {"numerics", NumericsName(verdict.rule.numerics)},
            {"verdict", VerdictName(verdict.kind)},
            {"cases", verdict.cases},
            {"draws", verdict.draws}};
  if (!verdict.why.empty()) json["why"] = verdict.why;
  if (!verdict.grows.empty()) json["grows"] = verdict.grows;
  if (verdict.counterexample) {
    json["counterexample"] = {{"case", verdict.failing_case},
                              {"reason", verdict.counterexample->reason},
                              {"lines", verdict.counterexample->lines}};
    json["fix"] = verdict.fix;
  }
  return json;
}

std::string RuleText(const support::SourceFile& source, const Verdict& verdict, int64_t wanted) {
  const support::LineColumn at = source.Position(verdict.rule.span.begin);
  std::string text = source.name() + ":" + std::to_string(at.line) + ": " + verdict.rule.name +
                     " (" + std::string(NumericsName(verdict.rule.numerics)) + "): ";
  switch (verdict.kind) {
    case Verdict::Kind::kHolds:
      text += "holds in " + std::to_string(verdict.cases) + " cases";
      if (verdict.cases < wanted) {
        text += ", all that " + std::to_string(verdict.draws) + " instances of its patterns gave";
      }
      break;
    case Verdict::Kind::kFails:
      text += "fails in case " + std::to_string(verdict.failing_case);
      break;
    case Verdict::Kind::kUntested:
      text += "not tested: " + verdict.why;
      break;
    case Verdict::Kind::kFacts:
      text += "states facts, which are tested with the rules that use them";
      break;
    case Verdict::Kind::kLeftOut:
      text += "left out";
      break;
  }
  if (!verdict.grows.empty()) text += "; no end: " + verdict.grows;
  return text + "\n";
}

}  // namespace

int Rules(const Options& options) {
  size_t width = 0;
  for (const rewrites::RuleFile& file : rewrites::All()) {
    width = std::max(width, file.path.size());
  }
  for (const rewrites::RuleFile& embedded : rewrites::All()) {
    const support::SourceFile source{std::string(embedded.path), std::string(embedded.text)};
    support::Diagnostics diagnostics;
    const std::optional<rules::RuleFile> file = rules::ReadRuleFile(source, diagnostics);
    if (!file) {
      PrintErrors(diagnostics, options);
      return 1;
    }
    // By ruleset, in the order of the file.
    std::vector<std::string> rulesets;
    std::map<std::string, std::map<egraph::Numerics, int>> counts;
    for (const rules::RuleInfo& rule : file->rules) {
      if (!counts.contains(rule.ruleset)) rulesets.push_back(rule.ruleset);
      ++counts[rule.ruleset][rule.numerics];
    }
    if (rulesets.empty() && !options.json) {
      std::cout << std::left << std::setw(static_cast<int>(width) + 2) << file->name
                << "declarations alone\n";
    }
    for (const std::string& ruleset : rulesets) {
      int total = 0;
      std::string numerics;
      Json classes = Json::object();
      for (const auto& [of_class, count] : counts[ruleset]) {
        total += count;
        numerics += (numerics.empty() ? "" : ", ") + std::to_string(count) + " " +
                    std::string(NumericsName(of_class));
        classes[std::string(NumericsName(of_class))] = count;
      }
      const rules::Ruleset& known = *rules::FindRuleset(ruleset);
      if (options.json) {
        PrintJsonLine({{"event", "ruleset"},
                       {"file", file->name},
                       {"ruleset", ruleset},
                       {"lowering", LoweringName(known.lowering)},
                       {"rules", total},
                       {"numerics", classes},
                       {"meaning", known.meaning}});
      } else {
        std::cout << std::left << std::setw(static_cast<int>(width) + 2) << file->name
                  << std::setw(11) << ruleset << std::setw(8) << LoweringName(known.lowering)
                  << std::right << std::setw(3) << total << " rules: " << numerics << "\n";
      }
    }
  }
  if (options.json) {
    PrintJsonLine({{"event", "done"}, {"ok", true}});
  } else {
    std::cout << "'l3c rules check FILE.egg' tests rules of your own; docs/rules.md\n";
  }
  return 0;
}

int RulesCheck(const Options& options) {
  rules::CheckOptions check;
  check.cases = options.cases;
  check.seed = options.seed.value_or(0);
  int64_t tested = 0, failed = 0, untested = 0;
  bool readable = true;
  for (const std::string& name : options.rule_files) {
    support::Diagnostics diagnostics;
    const std::optional<support::SourceFile> source = Open(name, diagnostics);
    std::optional<rules::RuleFile> file;
    if (source) file = rules::ReadRuleFile(*source, diagnostics);
    if (file && file->rules.empty()) {
      diagnostics.Error(support::Kind::kConsistency, {}, "'" + name + "' has no rules")
          .Fix("write (rewrite LEFT RIGHT :ruleset algebra :numerics exact); docs/rules.md");
      file.reset();
    }
    if (!file) {
      PrintErrors(diagnostics, options);
      readable = false;
      continue;
    }
    const rules::CheckReport report = rules::CheckRules(*file, check);
    for (const Verdict& verdict : report.rules) {
      tested += verdict.kind == Verdict::Kind::kHolds;
      failed += verdict.kind == Verdict::Kind::kFails;
      untested += verdict.kind == Verdict::Kind::kUntested;
      if (options.json) {
        PrintJsonLine(RuleJson(*source, verdict));
      } else {
        std::cout << RuleText(*source, verdict, check.cases);
      }
    }
    rules::ReportFaults(report, diagnostics);
    if (diagnostics.has_errors()) PrintErrors(diagnostics, options);
  }
  const bool ok = readable && failed == 0;
  if (options.json) {
    PrintJsonLine({{"event", "done"},
                   {"ok", ok},
                   {"holds", tested},
                   {"fails", failed},
                   {"untested", untested}});
  } else if (readable) {
    std::cout << tested << " hold, " << failed << " fail, " << untested << " not tested\n";
  }
  return ok ? 0 : 1;
}

}  // namespace l3c::tools
