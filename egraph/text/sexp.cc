#include "egraph/text/sexp.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>

#include "egraph/utf8.h"

namespace l3c::egraph {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool EndsToken(char c) { return IsSpace(c) || c == '(' || c == ')' || c == ';' || c == '"'; }

// Whether the token can only be a number: 12, -3, 0.5, 1e9, -.5.
bool LooksNumeric(std::string_view token) {
  size_t i = token[0] == '-' || token[0] == '+' ? 1 : 0;
  if (i < token.size() && token[i] == '.') ++i;
  return i < token.size() && token[i] >= '0' && token[i] <= '9';
}

}  // namespace

bool Document::Error(size_t offset, std::string message, ErrorKind kind) {
  error_kind_ = kind;
  error_offset_ = static_cast<uint32_t>(offset);
  error_ = std::move(message);
  return false;
}

uint32_t Document::ContinuationsBefore(uint32_t offset) const {
  const std::string_view part = text_.substr(size_t{offset} / kBlock * kBlock, offset % kBlock);
  return continuations_[offset / kBlock] +
         static_cast<uint32_t>(std::count_if(part.begin(), part.end(), ContinuesCharacter));
}

uint32_t Document::EndOf(uint32_t offset) const {
  if (offset >= text_.size()) return static_cast<uint32_t>(text_.size());
  size_t end = offset + 1;
  if (text_[offset] == '"') {
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    ++end;
  } else if (text_[offset] != '(' && text_[offset] != ')') {
    end = text_.find_first_of(" \t\r\n()\";", end);
  }
  return static_cast<uint32_t>(std::min(end, text_.size()));
}

Document::Position Document::PositionOf(uint32_t offset) const {
  offset = std::max(offset, line_starts_[0]);
  const auto it = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const auto line = static_cast<uint32_t>(it - line_starts_.begin());
  const uint32_t start = line_starts_[line - 1];
  const uint32_t continuations = ContinuationsBefore(offset) - ContinuationsBefore(start);
  return {line, offset - start - continuations + 1};
}

bool Document::ReadString(size_t& at) {
  const size_t begin = at++;
  std::string value;
  for (;;) {
    if (at >= text_.size()) return Error(begin, "string without an end");
    const char c = text_[at++];
    if (c == '"') break;
    if (c != '\\') {
      value += c;
      continue;
    }
    if (at >= text_.size()) return Error(begin, "string without an end");
    switch (const char escaped = text_[at++]) {
      case 'n':
        value += '\n';
        break;
      case 't':
        value += '\t';
        break;
      case 'r':
        value += '\r';
        break;
      case '\\':
      case '"':
        value += escaped;
        break;
      default:
        return Error(at - 2, "unknown escape in a string; \\n \\t \\r \\\\ \\\" are known");
    }
  }
  nodes_.push_back({Kind::kText, static_cast<uint32_t>(begin), static_cast<uint32_t>(at), 0, 0,
                    static_cast<uint32_t>(strings_.size())});
  strings_.push_back(std::move(value));
  return true;
}

bool Document::ReadToken(size_t& at) {
  const size_t begin = at;
  while (at < text_.size() && !EndsToken(text_[at])) ++at;
  const std::string_view token = text_.substr(begin, at - begin);
  Node node{Kind::kSymbol, static_cast<uint32_t>(begin), static_cast<uint32_t>(at)};
  const auto control = std::find_if(token.begin(), token.end(),
                                    [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  if (control != token.end()) {
    return Error(begin + static_cast<size_t>(control - token.begin()), "control character");
  }
  if (LooksNumeric(token)) {
    const char* first = token.data() + (token[0] == '+' ? 1 : 0);
    const char* last = token.data() + token.size();
    int64_t i = 0;
    const auto as_int = std::from_chars(first, last, i);
    if (as_int.ptr == last) {
      if (as_int.ec != std::errc()) return Error(begin, "integer out of the range of i64");
      node.kind = Kind::kInt;
      node.literal = static_cast<uint32_t>(ints_.size());
      ints_.push_back(i);
    } else {
      double d = 0;
      const auto as_float = std::from_chars(first, last, d);
      if (as_float.ptr != last || as_float.ec != std::errc()) {
        return Error(begin, "'" + std::string(WholeCharacters(token, 40)) + "' is not a number");
      }
      node.kind = Kind::kFloat;
      node.literal = static_cast<uint32_t>(floats_.size());
      floats_.push_back(d);
    }
  } else if (token == "NaN" || token == "inf" || token == "-inf") {
    node.kind = Kind::kFloat;
    node.literal = static_cast<uint32_t>(floats_.size());
    const double infinity = std::numeric_limits<double>::infinity();
    floats_.push_back(token == "NaN" ? std::nan("") : token == "inf" ? infinity : -infinity);
  }
  nodes_.push_back(node);
  return true;
}

bool Document::Read(std::string_view text) {
  text_ = text;
  // Some editors begin a file with a byte order mark, which is no part of its text.
  const size_t begin = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  line_starts_.assign(1, static_cast<uint32_t>(begin));
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    line_starts_.push_back(static_cast<uint32_t>(at + 1));
  }
  continuations_.assign(1, 0);
  for (size_t at = kBlock; at <= text.size(); at += kBlock) {
    continuations_.push_back(ContinuationsBefore(static_cast<uint32_t>(at - 1)) +
                             (ContinuesCharacter(text[at - 1]) ? 1 : 0));
  }
  if (const size_t at = FindInvalidUtf8(text); at != std::string_view::npos) {
    return Error(at, "the text is not UTF-8 here");
  }
  std::vector<uint32_t> open;     // lists without their ')' yet
  std::vector<uint32_t> pending;  // children of the open lists, outermost first
  std::vector<size_t> pending_begin;
  for (size_t at = begin; at < text.size();) {
    const char c = text[at];
    if (IsSpace(c)) {
      ++at;
      continue;
    }
    if (c == ';') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '(') {
      if (open.size() == kMaxDepth) {
        return Error(at, "parentheses nested deeper than " + std::to_string(kMaxDepth),
                     ErrorKind::kResourceBound);
      }
      open.push_back(static_cast<uint32_t>(nodes_.size()));
      pending_begin.push_back(pending.size());
      nodes_.push_back({Kind::kList, static_cast<uint32_t>(at)});
      ++at;
      continue;
    }
    uint32_t done;
    if (c == ')') {
      if (open.empty()) return Error(at, "')' without a '('");
      done = open.back();
      open.pop_back();
      ++at;
      Node& list = nodes_[done];
      list.end = static_cast<uint32_t>(at);
      list.first_child = static_cast<uint32_t>(children_.size());
      list.child_count = static_cast<uint32_t>(pending.size() - pending_begin.back());
      children_.insert(children_.end(),
                       pending.begin() + static_cast<ptrdiff_t>(pending_begin.back()),
                       pending.end());
      pending.resize(pending_begin.back());
      pending_begin.pop_back();
    } else {
      done = static_cast<uint32_t>(nodes_.size());
      if (!(c == '"' ? ReadString(at) : ReadToken(at))) return false;
    }
    if (open.empty()) {
      top_level_.push_back(done);
    } else {
      pending.push_back(done);
    }
  }
  if (!open.empty()) return Error(nodes_[open.back()].begin, "'(' without a ')'");
  return true;
}

}  // namespace l3c::egraph
