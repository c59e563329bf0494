#include "layers/support/parser.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "layers/support/units.h"

namespace l3c::support {
namespace {

bool Opens(const Token& token) {
  return token.Is("(") || token.Is("[") || token.Is("{") || token.Is("#[");
}
bool Closes(const Token& token) { return token.Is(")") || token.Is("]") || token.Is("}"); }

}  // namespace

ParserBase::ParserBase(const SourceFile& source, Diagnostics& diagnostics)
    : source_(source), diagnostics_(diagnostics), lexer_(source, diagnostics) {
  if (!CheckIsText(source, diagnostics)) Stop();
}

ParserBase::ParserBase(const SourceFile& source, Diagnostics& diagnostics, Span range)
    : source_(source),
      diagnostics_(diagnostics),
      lexer_(source, diagnostics, range),
      last_end_(range.begin) {}

void ParserBase::CheckHeader(std::string_view layer) {
  const auto header = FindHeader(source_);
  if (!header) return;
  if (header->layer != layer) {
    Error(header->span, "this is an " + std::string(header->layer) + " file, not an " +
                            std::string(layer) + " file");
  } else if (header->version != 1) {
    Error(header->span, "unknown version " + std::to_string(header->version) + " of " +
                            std::string(layer) + " text")
        .Label("expected v1");
  }
}

void ParserBase::Fill(size_t count) {
  while (ahead_count_ < count) {
    Token end;
    end.span = {last_end_, last_end_};
    ahead_[ahead_count_++] = stopped_ ? end : lexer_.Next();
  }
}

const Token& ParserBase::Peek(size_t ahead) {
  Fill(ahead + 1);
  return ahead_[ahead];
}

Token ParserBase::Next() {
  Fill(1);
  const Token token = ahead_[0];
  std::move(ahead_.begin() + 1, ahead_.begin() + static_cast<std::ptrdiff_t>(ahead_count_),
            ahead_.begin());
  --ahead_count_;
  if (token.kind == TokenKind::kEnd) return token;
  last_end_ = token.span.end;
  if (Opens(token) && ++bracket_depth_ > kMaxNesting) {
    Error(token.span, "brackets are nested deeper than " + std::to_string(kMaxNesting) + " levels",
          Kind::kResourceBound);
    Stop();
  }
  // A stray closing bracket closes nothing.
  if (Closes(token) && bracket_depth_ > 0) --bracket_depth_;
  return token;
}

bool ParserBase::Accept(std::string_view punctuation) {
  if (!At(punctuation)) return false;
  Next();
  return true;
}

bool ParserBase::AcceptWord(std::string_view word) {
  if (!AtWord(word)) return false;
  Next();
  return true;
}

std::optional<Name> ParserBase::AcceptLabel() {
  if (!AtName() || (!Peek(1).Is(":") && !Peek(1).Is("="))) return std::nullopt;
  const Token name = Next();
  Next();
  return Name{std::string(name.text), name.span};
}

bool ParserBase::Expect(std::string_view punctuation) {
  if (Accept(punctuation)) return true;
  ErrorExpected("'" + std::string(punctuation) + "'");
  return false;
}

bool ParserBase::ExpectWord(std::string_view word) {
  if (AcceptWord(word)) return true;
  ErrorExpected("'" + std::string(word) + "'");
  return false;
}

std::optional<Name> ParserBase::ExpectName(std::string_view what) {
  if (!AtName()) {
    ErrorExpected(what);
    return std::nullopt;
  }
  const Token token = Next();
  return Name{std::string(token.text), token.span};
}

std::optional<std::string> ParserBase::ExpectString(std::string_view what) {
  if (!AtString()) {
    ErrorExpected(what);
    return std::nullopt;
  }
  return Unquote(Next().text);
}

std::optional<bool> ParserBase::ExpectBool(std::string_view what) {
  if (AcceptWord("true")) return true;
  if (AcceptWord("false")) return false;
  ErrorExpected(std::string(what) + " (true or false)");
  return std::nullopt;
}

std::optional<int64_t> ParserBase::ExpectInteger(std::string_view what, int64_t min, int64_t max) {
  const bool negative = At("-");
  const Token number = Peek(negative ? 1 : 0);
  if (number.kind != TokenKind::kNumber) {
    ErrorExpected(what);
    return std::nullopt;
  }
  const uint32_t begin = Here();
  if (negative) Next();
  Next();
  std::string error;
  auto value = ParseCount(number.text, &error);
  if (!value) {
    Error(number.span, std::move(error)).Label("expected " + std::string(what));
    return std::nullopt;
  }
  if (negative) value = -*value;
  if (*value < min || *value > max) {
    const std::string bound =
        *value < min ? "at least " + std::to_string(min) : "at most " + std::to_string(max);
    Error(SpanFrom(begin),
          std::string(what) + " must be " + bound + ", not " + std::to_string(*value),
          Kind::kResourceBound);
    return std::nullopt;
  }
  return value;
}

std::optional<double> ParserBase::ExpectReal(std::string_view what) {
  const bool negative = At("-");
  const Token number = Peek(negative ? 1 : 0);
  std::optional<double> value;
  std::string error;
  if (number.IsWord("inf")) {
    value = std::numeric_limits<double>::infinity();
  } else if (number.IsWord("nan")) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (number.kind == TokenKind::kNumber) {
    value = ParseReal(number.text, &error);
  } else {
    ErrorExpected(what);
    return std::nullopt;
  }
  if (negative) Next();
  Next();
  if (!value) {
    Error(number.span, std::move(error)).Label("expected " + std::string(what));
    return std::nullopt;
  }
  return negative ? -*value : *value;
}

std::optional<int64_t> ParserBase::ExpectBytes(std::string_view what) {
  return ExpectUnit(what, ParseBytes);
}

std::optional<double> ParserBase::ExpectRate(std::string_view what) {
  return ExpectUnit(what, ParseRate);
}

std::optional<double> ParserBase::ExpectSeconds(std::string_view what) {
  return ExpectUnit(what, ParseSeconds);
}

bool ParserBase::ParseList(std::string_view open, std::string_view close,
                           const std::function<bool()>& item) {
  if (!Expect(open)) return false;
  const int inside = bracket_depth_;
  while (!At(close)) {
    if (!item()) {
      SkipPastClose(inside);
      return false;
    }
    if (At(close)) break;
    if (Accept(",")) continue;
    ErrorExpected("',' or '" + std::string(close) + "'");
    SkipPastClose(inside);
    return false;
  }
  Next();
  return true;
}

Diagnostic& ParserBase::Error(Span span, std::string message, Kind kind) {
  const uint32_t here = ahead_count_ > 0 ? ahead_[0].span.begin : lexer_.offset();
  const bool repeated = kind == Kind::kSyntax && here == last_error_;
  if (stopped_ || repeated) {
    dropped_ = {};
    return dropped_;
  }
  if (kind == Kind::kSyntax) last_error_ = here;
  Diagnostic& error = diagnostics_.Error(kind, span, std::move(message));
  if (diagnostics_.all().size() >= Diagnostics::kMaxReported) Stop();
  return error;
}

Diagnostic& ParserBase::ErrorExpected(std::string_view what) {
  const Token token = Peek();
  Span span = token.span;
  if (token.kind == TokenKind::kEnd && span.begin > 0) {
    // Point at the last character of the file, not past it.
    span = {last_end_ > 0 ? last_end_ - 1 : 0, std::max(last_end_, 1u)};
  }
  Diagnostic& error = Error(span, "expected " + std::string(what) + ", found " + Describe(token));
  return error.Label("expected " + std::string(what));
}

namespace {

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Whether the name stands where names are declared: first on a line before a ':', or behind one
// word that is the first of its line ("let x", "kernel k("), other than at its own place.
bool IsDeclaredIn(const SourceFile& source, const Name& name) {
  constexpr std::string_view kBlanks = " \t";
  const std::string_view text = source.text();
  for (size_t at = text.find(name.text); at != std::string_view::npos;
       at = text.find(name.text, at + 1)) {
    const size_t end = at + name.text.size();
    if (at == name.span.begin) continue;
    if ((at > 0 && IsWordByte(text[at - 1])) || (end < text.size() && IsWordByte(text[end]))) {
      continue;
    }
    const size_t newline = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
    const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    std::string_view before = text.substr(line, at - line);
    before.remove_prefix(std::min(before.find_first_not_of(kBlanks), before.size()));
    const size_t next = text.find_first_not_of(kBlanks, end);
    if (before.empty()) {
      if (next != std::string_view::npos && text[next] == ':') return true;
      continue;
    }
    const size_t word = before.find_first_of(kBlanks);
    if (word == std::string_view::npos ||
        before.find_first_not_of(kBlanks, word) != std::string_view::npos) {
      continue;
    }
    const bool letters =
        std::all_of(before.begin(), before.begin() + static_cast<long>(word), IsWordByte);
    // Values that are stored or loaded are used, not declared.
    if (letters && before.substr(0, word) != "store" && before.substr(0, word) != "load")
      return true;
  }
  return false;
}

}  // namespace

Diagnostic& ParserBase::ErrorUnknown(std::string_view what, const Name& name,
                                     const std::vector<std::string>& candidates, Kind kind) {
  std::string message = "unknown " + std::string(what) + " '" + name.text + "'";
  // One fault is one error: a name is said to be unknown once, and not where its own declaration is
  // what an error before this one has spoilt.
  const std::vector<Diagnostic>& before = diagnostics_.all();
  const bool said = std::any_of(before.begin(), before.end(),
                                [&](const Diagnostic& error) { return error.message == message; });
  if (said || (!before.empty() && IsDeclaredIn(source_, name))) {
    static thread_local Diagnostic unsaid;
    unsaid = {};
    return unsaid;
  }
  Diagnostic& error = Error(name.span, std::move(message), kind);
  const std::string closest = ClosestMatch(name.text, candidates);
  if (!closest.empty()) return error.Fix("did you mean '" + closest + "'?");
  if (candidates.empty()) return error;
  constexpr size_t kMaxListed = 12;
  std::string list;
  for (size_t i = 0; i < std::min(candidates.size(), kMaxListed); ++i) {
    list += (i == 0 ? "'" : ", '") + candidates[i] + "'";
  }
  if (candidates.size() > kMaxListed) list += ", …";
  return error.Label("expected " + list);
}

void ParserBase::Stop() {
  stopped_ = true;
  ahead_count_ = 0;
}

void ParserBase::SkipToDeclaration(const std::vector<std::string>& keywords) {
  while (!AtEnd()) {
    const Token& token = Peek();
    const bool keyword = token.kind == TokenKind::kWord &&
                         std::find(keywords.begin(), keywords.end(), token.text) != keywords.end();
    const bool margin = token.first_on_line && source_.Position(token.span.begin).column == 1;
    if (keyword && (margin || bracket_depth_ <= 0)) break;
    Next();
  }
  bracket_depth_ = 0;
}

void ParserBase::SkipToField(int depth, uint32_t field) {
  if (Here() == field) Next();
  while (!AtEnd()) {
    if (bracket_depth_ <= depth && (Closes(Peek()) || Peek().first_on_line)) return;
    Next();
  }
}

void ParserBase::SkipPastClose(int depth) {
  while (!AtEnd() && bracket_depth_ >= depth) Next();
}

ParserBase::Nesting::Nesting(ParserBase& parser) : parser_(parser) {
  ok_ = ++parser_.production_depth_ <= kMaxNesting;
  if (ok_) return;
  parser_.Error(parser_.Peek().span,
                "this is nested deeper than " + std::to_string(kMaxNesting) + " levels",
                Kind::kResourceBound);
  parser_.Stop();
}

}  // namespace l3c::support
