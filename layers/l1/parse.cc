#include <algorithm>

#include "layers/l1/program_parser.h"
#include "layers/l1/text.h"

namespace l3c::l1 {

const std::vector<std::string>& Keywords() {
  static const std::vector<std::string> keywords = {"system",       "data",     "actor",   "stage",
                                                    "tensor_graph", "pipeline", "schedule"};
  return keywords;
}

std::optional<Program> ProgramParser::Parse() {
  CheckHeader("l1");
  while (!AtEnd()) {
    if (AtWord("system")) {
      ParseSystem();
    } else if (AtWord("data")) {
      ParseData();
    } else if (AtWord("actor")) {
      ParseActor();
    } else if (AtWord("stage")) {
      ParseStage();
    } else if (AtWord("tensor_graph")) {
      ParseGraph();
    } else if (AtWord("pipeline")) {
      ParsePipeline();
    } else if (AtWord("schedule")) {
      ParseSchedule();
    } else {
      Unexpected();
    }
  }
  if (stopped()) return std::nullopt;
  if (diagnostics().has_errors()) return std::nullopt;
  if (!system_seen_) {
    Error({}, "there is no system: an L1 file says what hardware it is for", Kind::kSafety);
  } else if (!schedule_seen_ && !IsSystemFragment(program_)) {
    Error({}, "there is no schedule: nothing says what runs", Kind::kSafety);
  }
  if (diagnostics().has_errors()) return std::nullopt;
  IndexForwards();
  while (TypeParams()) continue;
  BuildGraphs();
  IndexEnds();
  while (TypeParams()) continue;
  ReportUntyped();
  BuildHandlers();
  ResolveReferences();
  if (!diagnostics().has_errors()) BuildStages();
  if (diagnostics().has_errors()) return std::nullopt;
  return std::move(program_);
}

void ProgramParser::Unexpected() {
  const support::Token token = Peek();
  if (token.kind == support::TokenKind::kWord) {
    ErrorUnknown("declaration", {std::string(token.text), token.span}, Keywords(), Kind::kSyntax);
  } else {
    ErrorExpected("a declaration (system, data, actor, stage, tensor_graph, pipeline, schedule)");
  }
  Next();
  SkipToDeclaration(Keywords());
}

// Reports a second declaration of a name in one of the name spaces.
bool ProgramParser::Declare(std::map<std::string, Span>& space, const Name& name,
                            std::string_view what) {
  const auto [it, fresh] = space.emplace(name.text, name.span);
  if (fresh) return true;
  Error(name.span, std::string(what) + " '" + name.text + "' is declared twice", Kind::kConsistency)
      .With({it->second, "'" + name.text + "' is first declared here"});
  return false;
}

// At a declaration's keyword in the first column: the block before it was not closed.
bool ProgramParser::AtMargin() {
  const support::Token& token = Peek();
  return token.first_on_line && source().Position(token.span.begin).column == 1 &&
         std::find(Keywords().begin(), Keywords().end(), token.text) != Keywords().end();
}

// A block's fields, each recovered on its own: `{ field … }`, at the brace.
bool ProgramParser::Block(const std::function<bool()>& field) {
  if (!Expect("{")) return false;
  const int inside = bracket_depth();
  while (!At("}") && !AtEnd() && !AtMargin()) {
    const uint32_t at = Here();
    if (!field()) SkipToField(inside, at);
  }
  return Expect("}");
}

bool ProgramParser::ParseReference(std::vector<Reference>& references, std::string_view what) {
  const uint32_t begin = Here();
  const auto name = ExpectName(what);
  if (!name) return false;
  Reference reference{name->text, {}};
  if (Accept(".")) {
    const auto member = ExpectName("a message of the actor");
    if (!member) return false;
    reference.name += "." + member->text;
  }
  reference.span = SpanFrom(begin);
  references.push_back(std::move(reference));
  return true;
}

bool ProgramParser::ParseReads(std::vector<std::pair<Name, Name>>& reads) {
  if (!Expect(":")) return false;
  do {
    const auto actor = ExpectName("an actor");
    if (!actor || !Expect(".")) return false;
    const auto window = ExpectName("a window of the actor");
    if (!window) return false;
    for (const auto& [other, same] : reads) {
      if (other.text != actor->text || same.text != window->text) continue;
      Error(window->span, "window '" + actor->text + "." + window->text + "' is read twice",
            Kind::kConsistency)
          .With({same.span, "it is here already"});
    }
    reads.emplace_back(*actor, *window);
  } while (Accept(","));
  return true;
}

std::optional<Program> ParseProgram(const support::SourceFile& source,
                                    support::Diagnostics& diagnostics) {
  return ProgramParser(source, diagnostics).Parse();
}

}  // namespace l3c::l1
