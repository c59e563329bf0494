#include "layers/support/escape_hatch.h"

#include <algorithm>
#include <array>
#include <utility>

#include "layers/support/escape_hatch_list.h"

namespace l3c::support {
namespace {

// From the highest layer down.
constexpr std::array<std::string_view, 4> kLayers = {"l3", "l2", "l1", "l0"};

bool IsOneOf(const Token& token, std::initializer_list<std::string_view> spellings) {
  return token.kind == TokenKind::kPunctuation &&
         std::find(spellings.begin(), spellings.end(), token.text) != spellings.end();
}

bool IsOperand(const Token& token) {
  return token.kind != TokenKind::kPunctuation || IsOneOf(token, {")", "]", "}"});
}

// Whether `left` and `right`, written without a blank between them, would still be two tokens.
bool StayApart(const Token& left, const Token& right) {
  const SourceFile pair("", std::string(left.text) + std::string(right.text));
  Diagnostics ignored;
  Lexer lexer(pair, ignored);
  return lexer.Next().text == left.text && lexer.Next().text == right.text;
}

// `before` is what precedes `left`: it tells a sign from a subtraction.
bool WantsBlank(const Token& before, const Token& left, const Token& right) {
  if (left.kind == TokenKind::kNumber && right.Is(".")) return true;  // or 0 . 5 becomes 0.5
  if (IsOneOf(left, {"(", "[", "#[", ".", "::", "=", "!", "~"})) return false;
  if (IsOneOf(right, {")", "]", ",", ";", ":", ".", "::", "="})) return false;
  if (IsOneOf(right, {"(", "["})) return !IsOperand(left);
  if (left.Is("-")) return before.kind != TokenKind::kEnd && IsOperand(before);
  return true;
}

}  // namespace

std::string CanonicalSpacing(std::string_view text) {
  const SourceFile piece("", std::string(text));
  Diagnostics ignored;
  Lexer lexer(piece, ignored);
  std::string spaced;
  Token before, left;
  for (Token right = lexer.Next(); right.kind != TokenKind::kEnd; right = lexer.Next()) {
    if (!spaced.empty() && (WantsBlank(before, left, right) || !StayApart(left, right))) {
      spaced += ' ';
    }
    spaced +=
        right.kind == TokenKind::kString ? Quote(Unquote(right.text)) : std::string(right.text);
    before = left;
    left = right;
  }
  return spaced;
}

std::optional<EscapeHatch> ParseEscapeHatch(ParserBase& parser, std::string_view above) {
  const uint32_t begin = parser.Here();
  const int outside = parser.bracket_depth();
  if (!parser.Expect("#[")) return std::nullopt;
  const auto fail = [&]() -> std::optional<EscapeHatch> {
    parser.SkipPastClose(outside + 1);
    return std::nullopt;
  };
  EscapeHatch hatch;
  const auto layer = parser.ExpectName("the layer of an annotation");
  if (!layer) return fail();
  const auto from = std::find(kLayers.begin(), kLayers.end(), above);
  const std::vector<std::string> below(from == kLayers.end() ? kLayers.begin() : from + 1,
                                       kLayers.end());
  if (std::find(below.begin(), below.end(), layer->text) == below.end()) {
    if (std::find(kLayers.begin(), kLayers.end(), layer->text) != kLayers.end()) {
      std::string names;
      for (const std::string& name : below) names += (names.empty() ? "" : " or ") + name;
      parser
          .Error(layer->span, "an annotation of " + std::string(above) +
                                  " is for a layer below it; " + layer->text + " is none")
          .Fix(layer->text == above ? "write it as part of the program, or name " + names
                                    : "name " + names);
    } else {
      parser.ErrorUnknown("layer below " + std::string(above), *layer, below);
    }
    return fail();
  }
  if (!parser.Expect("::")) return fail();
  const auto directive = parser.ExpectName("a directive");
  if (!directive) return fail();
  hatch.layer = layer->text;
  hatch.directive = directive->text;
  if (parser.Accept("(")) {
    hatch.has_args = true;
    const int inside = parser.bracket_depth();
    hatch.args_span.begin = parser.Here();
    hatch.args_span.end = hatch.args_span.begin;
    while (!parser.AtEnd() && !(parser.bracket_depth() == inside && parser.At(")"))) {
      if (parser.bracket_depth() < inside) break;
      hatch.args_span.end = parser.Next().span.end;
    }
    if (!parser.Expect(")")) return fail();
    hatch.args = CanonicalSpacing(parser.source().Slice(hatch.args_span));
  }
  if (!parser.Expect("]")) return fail();
  hatch.span = parser.SpanFrom(begin);
  return hatch;
}

void AddEscapeHatch(ParserBase& parser, EscapeHatch hatch, std::vector<EscapeHatch>& hatches) {
  const auto first = std::find_if(hatches.begin(), hatches.end(), [&](const EscapeHatch& other) {
    return other.layer == hatch.layer && other.directive == hatch.directive;
  });
  if (first != hatches.end()) {
    parser
        .Error(hatch.span,
               "the annotation '" + hatch.layer + "::" + hatch.directive +
                   "' stands twice on one thing",
               Kind::kConsistency)
        .With({first->span, "first here"})
        .Fix("remove one of the two");
    return;
  }
  hatches.push_back(std::move(hatch));
}

std::string PrintEscapeHatch(const EscapeHatch& hatch) {
  std::string text = "#[" + hatch.layer + "::" + hatch.directive;
  if (hatch.has_args) text += "(" + hatch.args + ")";
  return text + "]";
}

}  // namespace l3c::support
