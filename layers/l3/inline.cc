#include "layers/l3/inline.h"

#include <cctype>
#include <utility>

#include "layers/l3/expression.h"
#include "layers/l3/resolve.h"
#include "layers/support/parser.h"
#include "layers/support/source.h"

namespace l3c::l3 {
namespace {

using support::Kind;

// Spans of another file mean nothing in the specification: everything points at the term.
void Place(Expr& expr, Span span) {
  expr.span = span;
  for (Expr& arg : expr.args) Place(arg, span);
}

// "losses/soft-hinge.expr" → "soft_hinge".
std::string NameOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  std::string name = path.substr(slash == std::string::npos ? 0 : slash + 1);
  name = name.substr(0, name.find('.'));
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "loss_" + name;
  return name;
}

// "hinge.expr:2:5: error[syntax]: …", the first line of what was reported.
std::string FirstLine(const support::Diagnostics& diagnostics) {
  const std::string all = diagnostics.Render(false);
  return all.substr(0, all.find('\n'));
}

bool Inline(Term& term, const ReadText& read, support::Diagnostics& diagnostics) {
  const auto text = read(term.custom_name);
  if (!text) {
    diagnostics
        .Error(Kind::kEnvironment, term.kind_span,
               "the file \"" + term.custom_name + "\" of this loss cannot be read")
        .Fix("paths are relative to the specification's folder");
    return false;
  }
  const support::SourceFile source(term.custom_name, *text);
  support::Diagnostics own(&source);
  support::ParserBase parser(source, own);
  auto value = ParseExpr(parser);
  if (value && !parser.AtEnd()) parser.ErrorExpected("the end of the expression");
  if (!value || own.has_errors()) {
    diagnostics.Error(Kind::kSyntax, term.kind_span, FirstLine(own))
        .Label("this loss is defined there");
    return false;
  }
  Place(*value, term.kind_span);
  term.value = std::move(*value);
  term.custom_name = NameOf(term.custom_name);
  term.custom_file = false;
  return true;
}

}  // namespace

bool InlineFiles(Module& module, const ReadText& read, support::Diagnostics& diagnostics) {
  bool any = false;
  bool ok = true;
  for (Loss& loss : module.losses) {
    for (Term& term : loss.terms) {
      if (!term.custom_file || term.value) continue;
      any = true;
      ok = Inline(term, read, diagnostics) && ok;
    }
  }
  return ok && (!any || ResolveReferences(module, diagnostics));
}

}  // namespace l3c::l3
