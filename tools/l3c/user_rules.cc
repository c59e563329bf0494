#include "tools/l3c/user_rules.h"

#include <iostream>
#include <map>
#include <set>
#include <string>

#include "egraph/program.h"
#include "layers/rules/check.h"
#include "layers/support/source.h"
#include "tools/l3c/json_lines.h"

namespace l3c::tools {

std::optional<std::vector<search::AddedRules>> ReadUserRules(const Options& options) {
  std::vector<search::AddedRules> added;
  std::set<std::string> names;
  std::map<rules::Lowering, egraph::EGraph> together;  // files that will be loaded into one graph
  for (const std::string& name : options.rule_files) {
    if (!names.insert(name).second) continue;
    support::Diagnostics diagnostics;
    const auto fail = [&] {
      std::cerr << (options.sarif ? diagnostics.RenderSarif() : diagnostics.Render(options.color));
      PrintJsonDiagnostics(diagnostics);
      return std::nullopt;
    };
    const std::optional<support::SourceFile> source = support::SourceFile::Read(name, diagnostics);
    if (!source) return fail();
    const std::optional<rules::RuleFile> file = rules::ReadRuleFile(*source, diagnostics);
    if (!file) return fail();
    if (file->rules.empty()) {
      diagnostics.Error(support::Kind::kConsistency, {}, "'" + name + "' has no rules")
          .Fix("docs/rules.md says what a rule file holds");
      return fail();
    }
    if (file->stands_in) {
      diagnostics
          .Error(support::Kind::kConsistency, {},
                 "'" + name + "' declares the terms of " +
                     std::string(LoweringName(*file->lowering)) + " anew, which are built in")
          .Fix("keep the rules of your own alone; --rules adds them to the built-in ones");
      return fail();
    }
    if (const auto [it, first] = together.try_emplace(*file->lowering); first) {
      it->second = rules::NewGraph(*file);
    } else {
      const egraph::ProgramStatus status =
          egraph::LoadProgram(it->second, file->text, file->name).status;
      if (!status.ok) {
        diagnostics
            .Error(support::Kind::kConsistency, {},
                   "line " + std::to_string(status.line) + ": " + status.message +
                       " by another file of --rules")
            .Fix("rename one of them, or put the files together");
        return fail();
      }
    }
    rules::CheckOptions check;
    check.numerics = *egraph::ParseNumerics(options.numerics);
    const rules::CheckReport report = rules::CheckRules(*file, check);
    for (const rules::RuleVerdict& verdict : report.rules) {
      if (!verdict.grows.empty()) {
        std::cerr << "warning: " << name << ":" << source->Position(verdict.rule.span.begin).line
                  << ": the rule '" << verdict.rule.name << "' has no end: " << verdict.grows
                  << "\n";
      }
      if (verdict.kind != rules::RuleVerdict::Kind::kUntested) continue;
      // What the algebra makes is looked at again when it is lowered; other answers are not.
      if (verdict.rule.ruleset != "algebra") {
        diagnostics
            .Error(support::Kind::kConsistency, verdict.rule.span,
                   "the rule '" + verdict.rule.name + "' could not be tested: " + verdict.why)
            .Fix("correct its premises, or leave it out");
        continue;
      }
      std::cerr << "warning: " << name << ":" << source->Position(verdict.rule.span.begin).line
                << ": the rule '" << verdict.rule.name << "' could not be tested: " << verdict.why
                << "\n";
    }
    rules::ReportFaults(report, diagnostics);
    if (diagnostics.has_errors()) return fail();
    added.push_back({std::string(LoweringName(*file->lowering)), file->name, file->text});
  }
  return added;
}

}  // namespace l3c::tools
