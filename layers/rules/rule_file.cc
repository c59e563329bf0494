#include "layers/rules/rule_file.h"

#include <algorithm>
#include <set>

#include "egraph/program.h"
#include "egraph/text/sexp.h"
#include "layers/l0/lower/value_terms.h"
#include "rewrites/rewrites.h"

namespace l3c::rules {
namespace {

using egraph::Document;
using support::Kind;
using support::Span;

constexpr Ruleset kRulesets[] = {
    {"algebra", Lowering::kKernels, "values of the tensor algebra that are equal"},
    {"store", Lowering::kKernels, "which values may be kept in memory"},
    {"choose", Lowering::kKernels, "ways to have a value in registers or in memory"},
    {"checkpoint", Lowering::kKernels, "ways to have what the backward pass reads"},
    {"placement", Lowering::kPlacement, "ways to have a value in a memory of the system"},
    {"l3_to_l2", Lowering::kMethod, "answers to what the specification leaves open"},
};

constexpr std::string_view kDeclarations[] = {
    "sort",     "datatype", "datatype*", "constructor",
    "function", "relation", "ruleset",   "unstable-combined-ruleset",
    "rule",     "rewrite",  "birewrite"};

bool IsRule(std::string_view head) {
  return head == "rule" || head == "rewrite" || head == "birewrite";
}

// The built-in files whose terms a file of the lowering may use.
std::span<const std::string_view> TermFiles(Lowering lowering) {
  static constexpr std::string_view kKernels[] = {"kernel_terms", "checkpointing"};
  static constexpr std::string_view kPlacement[] = {"placement"};
  static constexpr std::string_view kMethod[] = {"lower_l3_l2"};
  switch (lowering) {
    case Lowering::kKernels:
      return kKernels;
    case Lowering::kPlacement:
      return kPlacement;
    case Lowering::kMethod:
      return kMethod;
  }
  return {};
}

std::set<std::string, std::less<>> SortsOf(std::string_view text) {
  std::set<std::string, std::less<>> sorts;
  Document document;
  if (!document.Read(text)) return sorts;
  for (uint32_t n : document.top_level()) {
    if (!document.IsList(n) || document.node(n).child_count < 2) continue;
    const std::string_view head = document.Text(document.child(n, 0));
    if (head == "sort" || head == "datatype") {
      sorts.emplace(document.Text(document.child(n, 1)));
    }
  }
  return sorts;
}

// Whether both texts declare a sort of the same name.
bool DeclaresSortOf(std::string_view text, std::string_view terms) {
  const auto sorts = SortsOf(text);
  if (sorts.empty()) return false;
  const auto others = SortsOf(terms);
  return std::any_of(sorts.begin(), sorts.end(),
                     [&](const std::string& sort) { return others.contains(sort); });
}

const rewrites::RuleFile* TermFile(std::string_view name) {
  for (const rewrites::RuleFile& file : rewrites::All()) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

// Loads the terms, then the file; the first error of the file.
egraph::ProgramStatus LoadInto(egraph::EGraph& graph, Lowering lowering, std::string_view name,
                               std::string_view text) {
  graph.set_numerics(egraph::Numerics::kFast);
  if (lowering == Lowering::kKernels) l0::lower::DeclareValues(graph);
  for (std::string_view terms : TermFiles(lowering)) {
    const rewrites::RuleFile* file = TermFile(terms);
    if (file == nullptr || DeclaresSortOf(text, file->text)) continue;
    const egraph::ProgramResult loaded = egraph::LoadProgram(graph, file->text, file->path);
    if (!loaded.ok()) return loaded.status;
  }
  return egraph::LoadProgram(graph, text, name).status;
}

class Reader {
 public:
  Reader(const support::SourceFile& source, support::Diagnostics& diagnostics)
      : source_(source), diagnostics_(diagnostics) {}

  std::optional<RuleFile> Read() {
    if (!document_.Read(source_.text())) {
      Error({document_.error_offset(), document_.error_offset() + 1}, Kind::kSyntax,
            document_.error())
          .Fix("a rule file is a list of declarations and rules: docs/rules.md");
      return std::nullopt;
    }
    file_.name = source_.name();
    file_.text = std::string(source_.text());
    for (uint32_t n : document_.top_level()) {
      if (!ReadForm(n)) return std::nullopt;
    }
    if (!FindLowering()) return std::nullopt;
    if (!file_.lowering) return std::move(file_);
    if (!Try()) return std::nullopt;
    return std::move(file_);
  }

 private:
  support::Diagnostic& Error(Span span, Kind kind, std::string message) {
    if (span.end > source_.text().size()) span.end = static_cast<uint32_t>(source_.text().size());
    if (span.begin >= span.end && span.begin > 0) span.begin = span.end - (span.end > 0 ? 1 : 0);
    return diagnostics_.Error(kind, span, std::move(message));
  }

  Span SpanOf(uint32_t n) const { return {document_.node(n).begin, document_.node(n).end}; }

  // The first line, so that the caret stays on one.
  Span HeadSpan(Span span) const {
    const size_t end = source_.text().find('\n', span.begin);
    return {span.begin, std::min<uint32_t>(
                            span.end, static_cast<uint32_t>(std::min(end, source_.text().size())))};
  }

  bool ReadForm(uint32_t n) {
    const bool list = document_.IsList(n) && document_.node(n).child_count > 0 &&
                      document_.IsSymbol(document_.child(n, 0));
    const std::string_view head = list ? document_.Text(document_.child(n, 0)) : "";
    if (std::find(std::begin(kDeclarations), std::end(kDeclarations), head) ==
        std::end(kDeclarations)) {
      const Span at = list ? SpanOf(document_.child(n, 0)) : HeadSpan(SpanOf(n));
      std::vector<std::string> known(std::begin(kDeclarations), std::end(kDeclarations));
      const std::string close = support::ClosestMatch(head, known);
      Error(at, Kind::kSyntax,
            list
                ? "a rule file holds declarations and rules; '" + std::string(head) + "' is neither"
                : "expected a declaration or a rule, such as (rewrite LEFT RIGHT)")
          .Fix(close.empty() ? "'l3c egraph run' carries out programs with commands"
                             : "write '" + close + "'");
      return false;
    }
    if (!IsRule(head)) return true;
    RuleForm form{n, {}, SpanOf(n)};
    for (uint32_t i = 1; i + 1 < document_.node(n).child_count; ++i) {
      if (document_.Text(document_.child(n, i)) == ":ruleset")
        form.ruleset = document_.child(n, i + 1);
    }
    forms_.push_back(form);
    return true;
  }

  bool FindLowering() {
    const RuleForm* first = nullptr;
    std::string known;
    for (const Ruleset& ruleset : Rulesets()) {
      known += (known.empty() ? "" : ", ") + std::string(ruleset.name);
    }
    for (const RuleForm& form : forms_) {
      if (!form.ruleset) {
        Error(HeadSpan(form.span), Kind::kConsistency,
              "no lowering runs this rule: it names no ruleset")
            .Fix("add ':ruleset NAME', one of " + known);
        return false;
      }
      const std::string name(document_.Text(*form.ruleset));
      const Ruleset* ruleset = FindRuleset(name);
      if (ruleset == nullptr) {
        std::vector<std::string> names;
        for (const Ruleset& r : Rulesets()) names.emplace_back(r.name);
        const std::string close = support::ClosestMatch(name, names);
        Error(SpanOf(*form.ruleset), Kind::kConsistency,
              "no lowering runs the ruleset '" + name + "'")
            .Fix(close.empty() ? "the rulesets that are run: " + known
                               : "did you mean '" + close + "'?");
        return false;
      }
      if (file_.lowering && *file_.lowering != ruleset->lowering) {
        Error(SpanOf(*form.ruleset), Kind::kConsistency,
              "the rules of one file belong to one lowering; '" + name + "' is of " +
                  std::string(LoweringName(ruleset->lowering)))
            .With({SpanOf(*first->ruleset),
                   "the first is of " + std::string(LoweringName(*file_.lowering))})
            .Fix("put them into files of their own");
        return false;
      }
      if (!file_.lowering) first = &form;
      file_.lowering = ruleset->lowering;
    }
    return true;
  }

  bool Try() {
    egraph::EGraph graph;
    const egraph::ProgramStatus status = LoadInto(graph, *file_.lowering, file_.name, file_.text);
    if (!status.ok) {
      if (status.file != file_.name) {
        Error({}, Kind::kConsistency, status.ToString());
        return false;
      }
      const uint32_t at = OffsetOf(status.line, status.column);
      // The whole word under the caret.
      uint32_t end = at;
      const std::string_view text = source_.text();
      while (end < text.size() &&
             std::string_view(" \t\r\n()").find(text[end]) == std::string_view::npos)
        ++end;
      Error({at, std::max(end, at + 1)}, Kind::kConsistency, status.message);
      return false;
    }
    for (std::string_view terms : TermFiles(*file_.lowering)) {
      const rewrites::RuleFile* file = TermFile(terms);
      file_.stands_in |= file != nullptr && DeclaresSortOf(file_.text, file->text);
    }
    for (uint32_t r = 0; r < graph.rule_count(); ++r) {
      const egraph::Rule& rule = graph.rule(egraph::RuleId{r});
      if (rule.file != file_.name || rule.line == 0) continue;
      RuleInfo info;
      info.name = rule.name;
      info.ruleset = graph.ruleset_name(rule.ruleset);
      info.numerics = rule.numerics;
      info.id = egraph::RuleId{r};
      const uint32_t begin = OffsetOf(rule.line, rule.column);
      for (const RuleForm& form : forms_) {
        if (form.span.begin == begin) info.span = HeadSpan(form.span);
      }
      file_.rules.push_back(std::move(info));
    }
    return true;
  }

  // The engine counts columns in characters, spans count bytes.
  uint32_t OffsetOf(uint32_t line, uint32_t column) const {
    const std::string_view text = source_.text();
    size_t at = 0;
    for (uint32_t n = 1; n < line; ++n) {
      const size_t next = text.find('\n', at);
      if (next == std::string_view::npos) break;
      at = next + 1;
    }
    for (uint32_t n = 1; n < column && at < text.size(); ++n) {
      for (++at; at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;) ++at;
    }
    return static_cast<uint32_t>(at);
  }

  struct RuleForm {
    uint32_t node;
    std::optional<uint32_t> ruleset;
    Span span;
  };

  const support::SourceFile& source_;
  support::Diagnostics& diagnostics_;
  Document document_;
  RuleFile file_;
  std::vector<RuleForm> forms_;
};

}  // namespace

std::string_view LoweringName(Lowering lowering) {
  switch (lowering) {
    case Lowering::kMethod:
      return "l3->l2";
    case Lowering::kPlacement:
      return "l2->l1";
    case Lowering::kKernels:
      return "l1->l0";
  }
  return "";
}

std::span<const Ruleset> Rulesets() { return kRulesets; }

const Ruleset* FindRuleset(std::string_view name) {
  for (const Ruleset& ruleset : kRulesets) {
    if (ruleset.name == name) return &ruleset;
  }
  return nullptr;
}

std::optional<RuleFile> ReadRuleFile(const support::SourceFile& source,
                                     support::Diagnostics& diagnostics) {
  diagnostics.set_source(&source);
  return Reader(source, diagnostics).Read();
}

egraph::EGraph NewGraph(const RuleFile& file) {
  egraph::EGraph graph;
  if (file.lowering) LoadInto(graph, *file.lowering, file.name, file.text);
  return graph;
}

egraph::RulesetId AddRuleset(egraph::EGraph& graph, std::string name) {
  while (graph.FindRuleset(name).valid()) name += '-';
  return graph.DeclareRuleset(name);
}

}  // namespace l3c::rules
