#include "layers/support/source.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include <sys/stat.h>

#include "layers/support/diagnostics.h"

namespace l3c::support {

SourceFile::SourceFile(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)) {
  // Some editors begin a file with a byte order mark, which is no part of its text.
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text_.starts_with(kByteOrderMark)) text_.erase(0, kByteOrderMark.size());
  line_starts_.push_back(0);
  // Offsets are 32 bits wide; what lies past the bound is refused by whoever parses the text.
  const size_t indexed = std::min(text_.size(), kMaxBytes + 1);
  for (size_t i = 0; i < indexed; ++i) {
    if (text_[i] == '\n') line_starts_.push_back(static_cast<uint32_t>(i + 1));
  }
}

std::optional<SourceFile> SourceFile::Read(const std::string& path, Diagnostics& diagnostics) {
  auto fail = [&](const std::string& reason, Kind kind = Kind::kEnvironment) {
    diagnostics.Error(kind, {}, "cannot read '" + path + "': " + reason);
    return std::nullopt;
  };
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return fail(std::strerror(errno));
  if (S_ISDIR(status.st_mode)) return fail("it is a folder");
  // Opening a pipe waits for a writer that may never come, and a device may never end.
  if (!S_ISREG(status.st_mode)) return fail("it is not a regular file");
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                       &std::fclose);
  if (!file) return fail(std::strerror(errno));
  std::string text;
  // One byte more than allowed tells "too large" from "just fits", also where the file grows.
  text.resize(kMaxBytes + 1);
  const size_t read = std::fread(text.data(), 1, text.size(), file.get());
  if (std::ferror(file.get())) return fail(std::strerror(errno));
  if (read > kMaxBytes) {
    return fail(
        "larger than " + std::to_string(kMaxBytes >> 20) + " MiB, the bound on a source file",
        Kind::kResourceBound);
  }
  text.resize(read);
  text.shrink_to_fit();
  return SourceFile(path, std::move(text));
}

std::string_view SourceFile::Slice(Span span) const {
  const size_t begin = std::min<size_t>(span.begin, text_.size());
  const size_t end = std::min<size_t>(std::max(span.begin, span.end), text_.size());
  return std::string_view(text_).substr(begin, end - begin);
}

LineColumn SourceFile::Position(uint32_t offset) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const size_t line = static_cast<size_t>(after - line_starts_.begin());
  const std::string_view before =
      std::string_view(text_).substr(line_starts_[line - 1], offset - line_starts_[line - 1]);
  const auto characters = std::count_if(before.begin(), before.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  });
  return {static_cast<uint32_t>(line), static_cast<uint32_t>(characters) + 1};
}

std::string_view SourceFile::Line(uint32_t line) const {
  if (line == 0 || line > line_starts_.size()) return {};
  const size_t begin = line_starts_[line - 1];
  size_t end = line < line_starts_.size() ? line_starts_[line] - 1 : text_.size();
  if (end > begin && text_[end - 1] == '\r') --end;
  return std::string_view(text_).substr(begin, end - begin);
}

}  // namespace l3c::support
