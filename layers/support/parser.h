// What the recursive-descent parsers of the four layers share.
//
//   class Parser : public support::ParserBase {
//     void ParseData() {                         // at the word `data`
//       Next();
//       auto name = ExpectName("the name of the data");
//       if (!name || !Expect("{")) return SkipToDeclaration(kKeywords);
//       while (!At("}") && !AtEnd()) …
//     }
//   };
//
// Errors: Expect* reports "expected X, found Y" and returns nothing or false; nothing was consumed
// then. A second syntax error at the same token is dropped, so that a parser may fail its way out
// of several productions without a cascade. After Diagnostics::kMaxReported errors, or brackets or
// productions nested deeper than kMaxNesting, the parser stops: every later token is kEnd and
// nothing more is reported. Parsers recurse only inside brackets or under a `Nesting`, so the stack
// is bounded.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/support/diagnostics.h"
#include "layers/support/lexer.h"
#include "layers/support/source.h"
#include "layers/support/token.h"

namespace l3c::support {

class ParserBase {
 public:
  static constexpr int kMaxNesting = 256;
  static constexpr size_t kMaxLookahead = 4;

  // Checks that the file is text of acceptable size before the first token.
  ParserBase(const SourceFile& source, Diagnostics& diagnostics);
  // Parses a range of the file (the arguments of an escape hatch, say).
  ParserBase(const SourceFile& source, Diagnostics& diagnostics, Span range);

  const SourceFile& source() const { return source_; }
  Diagnostics& diagnostics() { return diagnostics_; }

  // If the first line is `# l3c LAYER vN`, reports another layer than `layer` or another version
  // than 1. Without such a line: nothing.
  void CheckHeader(std::string_view layer);

  // ---- Tokens -------------------------------------------------------------------------------
  const Token& Peek(size_t ahead = 0);  // ahead < kMaxLookahead
  Token Next();
  bool At(std::string_view punctuation) { return Peek().Is(punctuation); }
  bool AtWord(std::string_view word) { return Peek().IsWord(word); }
  bool AtName() { return Peek().kind == TokenKind::kWord; }
  bool AtNumber() { return Peek().kind == TokenKind::kNumber; }
  bool AtString() { return Peek().kind == TokenKind::kString; }
  bool AtEnd() { return Peek().kind == TokenKind::kEnd; }
  bool Accept(std::string_view punctuation);
  bool AcceptWord(std::string_view word);
  // `name:` or `name=` before a value: consumes both tokens.
  std::optional<Name> AcceptLabel();

  // ---- Expectations; `what` completes "expected …" ("a width", "the name of a model") --------
  bool Expect(std::string_view punctuation);
  bool ExpectWord(std::string_view word);
  std::optional<Name> ExpectName(std::string_view what);
  std::optional<std::string> ExpectString(std::string_view what);
  std::optional<bool> ExpectBool(std::string_view what);  // true | false
  // Whole numbers, with K, M, B or not; an optional leading `-`. Out of [min, max]: an error of
  // kind resource-bound.
  std::optional<int64_t> ExpectInteger(std::string_view what, int64_t min = 0,
                                       int64_t max = std::numeric_limits<int64_t>::max());
  std::optional<double> ExpectReal(std::string_view what);  // also -x, inf, -inf, nan
  std::optional<int64_t> ExpectBytes(std::string_view what);
  std::optional<double> ExpectRate(std::string_view what);  // bytes per second
  std::optional<double> ExpectSeconds(std::string_view what);

  // `open item, item, … close`, brackets of ( [ {; a comma may stand before `close`. `item` parses
  // one item and returns false after it has reported an error: then the list skips to its `close`
  // and past it. False when anything was reported.
  bool ParseList(std::string_view open, std::string_view close, const std::function<bool()>& item);

  // ---- Errors -------------------------------------------------------------------------------
  // The reference stays valid until the next error.
  Diagnostic& Error(Span span, std::string message, Kind kind = Kind::kSyntax);
  // "expected WHAT, found TOKEN" at the next token, labelled "expected WHAT".
  Diagnostic& ErrorExpected(std::string_view what);
  // "unknown WHAT 'NAME'" with the closest of `candidates` as fix, or, if none is close, all of
  // them.
  Diagnostic& ErrorUnknown(std::string_view what, const Name& name,
                           const std::vector<std::string>& candidates, Kind kind = Kind::kSyntax);
  bool stopped() const { return stopped_; }
  // Ends the parse: every later token is kEnd and no further error is reported.
  void Stop();

  // ---- Recovery -----------------------------------------------------------------------------
  // The number of brackets ( [ { open at this point.
  int bracket_depth() const { return bracket_depth_; }
  // Skips to a word of `keywords` that stands outside every bracket or at the left margin.
  void SkipToDeclaration(const std::vector<std::string>& keywords);
  // After a bad field of the block inside `depth` brackets, which began at `field` (Here() before
  // it): skips to the first token of a later line, or to the bracket that closes the block. Always
  // makes progress, so a field may begin with anything but the block's own closing bracket. One bad
  // line, one error:
  //   const uint32_t field = Here();
  //   if (!ParseField()) SkipToField(depth, field);
  void SkipToField(int depth, uint32_t field);
  // Skips past the bracket that closes depth `depth`.
  void SkipPastClose(int depth);

  // Guards a production that recurses without a bracket:
  //   Nesting nesting(*this); if (!nesting.ok()) return …;
  class Nesting {
   public:
    explicit Nesting(ParserBase& parser);
    ~Nesting() { --parser_.production_depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    bool ok() const { return ok_; }

   private:
    ParserBase& parser_;
    bool ok_;
  };

  // ---- Positions ----------------------------------------------------------------------------
  // Span from `begin` (a token's span.begin) to the end of the last token consumed.
  Span SpanFrom(uint32_t begin) const { return {begin, last_end_}; }
  uint32_t Here() { return Peek().span.begin; }

 private:
  void Fill(size_t count);
  // A number token, read by one of the parsers of units.h.
  template <class T>
  std::optional<T> ExpectUnit(std::string_view what,
                              std::optional<T> (*parse)(std::string_view, std::string*)) {
    if (!AtNumber()) {
      ErrorExpected(what);
      return std::nullopt;
    }
    const Token number = Next();
    std::string error;
    std::optional<T> value = parse(number.text, &error);
    if (!value) Error(number.span, std::move(error)).Label("expected " + std::string(what));
    return value;
  }

  const SourceFile& source_;
  Diagnostics& diagnostics_;
  Lexer lexer_;
  std::array<Token, kMaxLookahead> ahead_;
  size_t ahead_count_ = 0;
  uint32_t last_end_ = 0;
  uint32_t last_error_ = std::numeric_limits<uint32_t>::max();
  int bracket_depth_ = 0;
  int production_depth_ = 0;
  bool stopped_ = false;
  Diagnostic dropped_;  // what Error() returns for an error that is not reported
};

}  // namespace l3c::support
