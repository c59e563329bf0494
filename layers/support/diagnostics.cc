// The human-readable rendering. The machine-readable one is in sarif.cc.
#include "layers/support/diagnostics.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace l3c::support {
namespace {

constexpr size_t kTabWidth = 4;
// Columns of source text shown; of a longer line, a window around the caret.
constexpr size_t kWindow = 100;
// Bytes of a line looked at on either side of the error: bounds the work on a line of megabytes.
constexpr size_t kContext = 600;

struct Colors {
  const char* bold = "";
  const char* error = "";
  const char* note = "";
  const char* fix = "";
  const char* caret = "";
  const char* reset = "";
};

constexpr Colors kPlain;
constexpr Colors kAnsi = {"\033[1m",    "\033[1;31m", "\033[1;36m",
                          "\033[1;32m", "\033[1;32m", "\033[0m"};

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Columns a terminal gives to a code point: 0 for combining marks, 2 for wide East Asian and emoji.
size_t Width(uint32_t code) {
  if ((code >= 0x0300 && code <= 0x036F) || (code >= 0x200B && code <= 0x200F) ||
      (code >= 0xFE00 && code <= 0xFE0F)) {
    return 0;
  }
  if ((code >= 0x1100 && code <= 0x115F) || (code >= 0x2E80 && code <= 0xA4CF) ||
      (code >= 0xAC00 && code <= 0xD7A3) || (code >= 0xF900 && code <= 0xFAFF) ||
      (code >= 0xFF00 && code <= 0xFF60) || (code >= 0x1F300 && code <= 0x1FAFF)) {
    return 2;
  }
  return 1;
}

// One character of a source line as it is shown.
struct Cell {
  size_t byte;  // where in the line
  std::string shown;
  size_t width;
};

// Tabs become blanks, control characters and broken UTF-8 become visible escapes.
std::vector<Cell> Cells(std::string_view line, size_t begin, size_t end) {
  std::vector<Cell> cells;
  size_t column = 0;
  for (size_t i = begin; i < end;) {
    const auto byte = static_cast<unsigned char>(line[i]);
    Cell cell{i, "", 1};
    size_t length = 1;
    if (byte == '\t') {
      cell.width = kTabWidth - column % kTabWidth;
      cell.shown.assign(cell.width, ' ');
    } else if (byte >= 0x20 && byte < 0x7F) {
      cell.shown = line[i];
    } else {
      uint32_t code = 0;
      const size_t wanted = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC2 ? 2 : 0;
      bool valid = wanted > 0 && byte <= 0xF4 && i + wanted <= line.size();
      if (valid) {
        code = byte & (0xFFu >> (wanted + 1));
        for (size_t k = 1; k < wanted && valid; ++k) {
          valid = IsContinuation(line[i + k]);
          code = code << 6 | (static_cast<unsigned char>(line[i + k]) & 0x3Fu);
        }
      }
      if (valid && code >= 0xA0) {
        length = wanted;
        cell.shown = std::string(line.substr(i, wanted));
        cell.width = Width(code);
      } else {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "<%02X>", byte);
        cell.shown = escaped;
        cell.width = cell.shown.size();
      }
    }
    column += cell.width;
    cells.push_back(std::move(cell));
    i += length;
  }
  return cells;
}

// The source line of `span` and, below it, the underline with its label.
void RenderSnippet(const SourceFile& source, Span span, const std::string& label,
                   const char* underline_color, const Colors& colors, std::string& out) {
  const LineColumn begin = source.Position(span.begin);
  const std::string_view line = source.Line(begin.line);
  const auto line_begin = static_cast<size_t>(line.data() - source.text().data());
  const size_t from = std::min<size_t>(span.begin - line_begin, line.size());
  const size_t to = std::min<size_t>(line.size(), from + (span.end - span.begin));

  size_t first = from > kContext ? from - kContext : 0;
  while (first > 0 && IsContinuation(line[first])) --first;
  size_t last = std::min(line.size(), from + kContext);
  while (last < line.size() && IsContinuation(line[last])) ++last;
  const std::vector<Cell> cells = Cells(line, first, last);

  // Columns before the caret, and the width of what is underlined.
  size_t before = 0, underlined = 0, total = 0;
  for (const Cell& cell : cells) {
    if (cell.byte < from) before += cell.width;
    if (cell.byte >= from && cell.byte < to) underlined += cell.width;
    total += cell.width;
  }
  // The window of columns to show: all of a short line, else with the caret a third of the way in.
  size_t left = 0;
  if (total > kWindow && before > kWindow / 3) {
    left = std::min(before - kWindow / 3, total - std::min(total, kWindow));
  }
  const bool cut_left = first > 0 || left > 0;
  bool cut_right = last < line.size();
  std::string text;
  size_t column = 0, hidden = 0;
  for (const Cell& cell : cells) {
    if (column < left) {
      hidden += cell.width;
    } else if (column + cell.width <= left + kWindow) {
      text += cell.shown;
    } else {
      cut_right = true;
      break;
    }
    column += cell.width;
  }
  size_t indent = before - std::min(before, hidden);
  if (cut_left) {
    text.insert(0, "… ");
    indent += 2;
  }
  if (cut_right) text += " …";
  text.erase(text.find_last_not_of(' ') + 1);

  char number[16];
  std::snprintf(number, sizeof number, "%6u | ", begin.line);
  out += number;
  out += text;
  out += "\n       | ";
  out.append(indent, ' ');
  out += underline_color;
  out += '^';
  const size_t room = kWindow + 4 > indent ? kWindow + 4 - indent : 1;
  out.append(std::min(std::max<size_t>(underlined, 1), room) - 1, '~');
  if (!label.empty()) out += " " + label;
  out += colors.reset;
  out += '\n';
}

void RenderPlace(const SourceFile& source, Span span, std::string& out) {
  const LineColumn place = source.Position(span.begin);
  out +=
      source.name() + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": ";
}

}  // namespace

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kSyntax:
      return "syntax";
    case Kind::kSafety:
      return "safety";
    case Kind::kConsistency:
      return "consistency";
    case Kind::kLiveness:
      return "liveness";
    case Kind::kResourceBound:
      return "resource-bound";
    case Kind::kEnvironment:
      return "environment";
  }
  return "";
}

Diagnostic& Diagnostics::Error(Kind kind, Span span, std::string message) {
  Diagnostic diagnostic;
  diagnostic.kind = kind;
  diagnostic.span = span;
  diagnostic.message = std::move(message);
  if (all_.size() >= kMaxReported) {
    ++suppressed_;
    overflow_ = std::move(diagnostic);
    return overflow_;
  }
  all_.push_back(std::move(diagnostic));
  return all_.back();
}

std::string Diagnostics::Render(bool color) const {
  const Colors& colors = color ? kAnsi : kPlain;
  std::string out;
  for (const Diagnostic& diagnostic : all_) {
    out += colors.bold;
    const bool placed = source_ != nullptr && diagnostic.span.known();
    if (placed) {
      RenderPlace(*source_, diagnostic.span, out);
    } else if (source_ != nullptr) {
      out += source_->name() + ": ";
    }
    out += colors.error;
    out += "error[" + std::string(KindName(diagnostic.kind)) + "]: ";
    out += colors.reset;
    out += colors.bold;
    out += diagnostic.message;
    out += colors.reset;
    out += '\n';
    if (placed) {
      RenderSnippet(*source_, diagnostic.span, diagnostic.label, colors.caret, colors, out);
    }
    for (const Note& note : diagnostic.notes) {
      out += colors.note;
      out += "note: ";
      out += colors.reset;
      const bool known = source_ != nullptr && note.span.known();
      if (known) RenderPlace(*source_, note.span, out);
      out += note.message + '\n';
      if (known) RenderSnippet(*source_, note.span, "", colors.note, colors, out);
    }
    if (!diagnostic.fix.empty()) {
      out += colors.fix;
      out += "fix: ";
      out += colors.reset;
      out += diagnostic.fix + '\n';
    }
  }
  if (suppressed_ > 0) {
    out += std::to_string(suppressed_) + (suppressed_ == 1 ? " more error" : " more errors") +
           " not shown\n";
  }
  return out;
}

}  // namespace l3c::support
