// Diagnostics in the manner of clang and rustc.
//
//   FILE:LINE:COL: error[KIND]: message
//       12 |   in: mnist.imagse
//          |             ^~~~~~ expected a field of data 'mnist'
//   note: FILE:2:5: 'images' is declared here
//   fix: replace with 'images'
//
// Every check of every layer is filed under one of the kinds below. A pass reports what it finds
// and goes on where it can; callers ask `has_errors()`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "layers/support/source.h"

namespace l3c::support {

enum class Kind { kSyntax, kSafety, kConsistency, kLiveness, kResourceBound, kEnvironment };
std::string_view KindName(Kind kind);  // "syntax", …, "resource-bound", "environment"

struct Note {
  Span span;  // unknown: the note has no place
  std::string message;
};

struct Diagnostic {
  Kind kind = Kind::kSyntax;
  Span span;            // unknown: concerns the whole file (or none)
  std::string message;  // one sentence, lower case, no full stop
  std::string label;    // text after the caret: what was expected; may be empty
  std::vector<Note> notes;
  std::string fix;  // the way out; may be empty

  Diagnostic& With(Note note) {
    notes.push_back(std::move(note));
    return *this;
  }
  Diagnostic& Label(std::string text) {
    label = std::move(text);
    return *this;
  }
  Diagnostic& Fix(std::string text) {
    fix = std::move(text);
    return *this;
  }
};

class Diagnostics {
 public:
  // After this many, one last line says that more were suppressed.
  static constexpr size_t kMaxReported = 20;

  Diagnostics() = default;
  explicit Diagnostics(const SourceFile* source) : source_(source) {}

  void set_source(const SourceFile* source) { source_ = source; }
  const SourceFile* source() const { return source_; }

  // The reference stays valid until the next Error().
  Diagnostic& Error(Kind kind, Span span, std::string message);

  bool has_errors() const { return !all_.empty(); }
  const std::vector<Diagnostic>& all() const { return all_; }

  // Human-readable text, ending in a newline; ANSI colours when `color`.
  std::string Render(bool color) const;
  // SARIF 2.1.0, one document.
  std::string RenderSarif() const;

 private:
  const SourceFile* source_ = nullptr;
  std::vector<Diagnostic> all_;
  size_t suppressed_ = 0;
  Diagnostic overflow_;  // the last one suppressed, for whoever holds Error()'s reference
};

// The candidate closest to `word` by edit distance, or "" when none is close enough to suggest.
std::string ClosestMatch(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace l3c::support
