// include, input and output.
#include "egraph/text/loader.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>

#include "egraph/utf8.h"

namespace l3c::egraph {

bool Loader::FileName(uint32_t n, std::filesystem::path* path) {
  if (doc_.node(n).kind != Document::Kind::kText) return Error(Offset(n), "expected a string");
  if (options_.directory.empty()) {
    return Error(Offset(n), "this program may not read or write files", ErrorKind::kEnvironment);
  }
  if (doc_.String(n).find('\0') != std::string::npos) {
    return Error(Offset(n), "the name of a file has no NUL in it");
  }
  *path = std::filesystem::path(options_.directory) / doc_.String(n);
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(*path, error);
  if (std::filesystem::is_directory(status)) {
    return Error(Offset(n), "'" + path->string() + "' is a folder", ErrorKind::kEnvironment);
  }
  // Opening a pipe waits for somebody at its other end, who may never come.
  if (std::filesystem::is_fifo(status)) {
    return Error(Offset(n), "'" + path->string() + "' is a pipe", ErrorKind::kEnvironment);
  }
  return true;
}

bool Loader::ReadFile(uint32_t n, std::filesystem::path* path, std::string* text) {
  if (!FileName(n, path)) return false;
  std::ifstream in(*path, std::ios::binary);
  text->clear();
  char buffer[1 << 14];
  while (in.read(buffer, sizeof buffer) || in.gcount() > 0) {
    text->append(buffer, static_cast<size_t>(in.gcount()));
    if (text->size() > options_.max_bytes) {
      return Error(Offset(n),
                   "'" + path->string() + "' is larger than " + std::to_string(options_.max_bytes) +
                       " bytes",
                   ErrorKind::kResourceBound);
    }
  }
  return in.eof() ||
         Error(Offset(n), "cannot read '" + path->string() + "'", ErrorKind::kEnvironment);
}

bool Loader::WriteFile(uint32_t n, const std::string& text, std::ios::openmode mode) {
  std::filesystem::path path;
  if (!FileName(n, &path) || !CountOutput(n, text.size())) return false;
  std::ofstream out(path, std::ios::binary | std::ios::out | mode);
  out << text;
  return out.flush()
             ? true
             : Error(Offset(n), "cannot write '" + path.string() + "'", ErrorKind::kEnvironment);
}

bool Loader::IncludeCommand(uint32_t n) {
  std::filesystem::path path;
  std::string text;
  if (!Takes(n, 1, 1) || !ReadFile(Child(n, 1), &path, &text)) return false;
  if (depth_ == kMaxIncludes) {
    return Error(Offset(n), "files include each other deeper than " + std::to_string(kMaxIncludes),
                 ErrorKind::kResourceBound);
  }
  if (++included_ > kMaxIncluded) {
    return Error(Offset(n), "more than " + std::to_string(kMaxIncluded) + " files are included",
                 ErrorKind::kResourceBound);
  }
  Loader inner(graph_, path.string(), options_);
  inner.depth_ = depth_ + 1;
  inner.extracted_at_push_ = std::move(extracted_at_push_);
  inner.result_.extracted = std::move(result_.extracted);
  inner.leaders_ = std::move(leaders_);
  inner.output_ = output_;
  inner.included_ = included_;
  ProgramResult loaded = inner.Load(text);
  extracted_at_push_ = std::move(inner.extracted_at_push_);
  result_.extracted = std::move(loaded.extracted);
  leaders_ = std::move(inner.leaders_);
  output_ = inner.output_;
  included_ = inner.included_;
  terms_.reset();
  for (Printed& p : loaded.printed) result_.printed.push_back(std::move(p));
  for (RunReport& r : loaded.reports) result_.reports.push_back(std::move(r));
  result_.proven_checks += loaded.proven_checks;
  result_.proof_steps += loaded.proof_steps;
  for (std::string& why : loaded.unproven_checks) result_.unproven_checks.push_back(std::move(why));
  result_.status = std::move(loaded.status);
  if (!result_.status.ok && result_.status.included == nullptr) {
    result_.status.included = std::make_shared<const std::string>(std::move(text));
  }
  return result_.status.ok;
}

bool Loader::ReadField(SortId sort, std::string_view field, Value* value) {
  const char* last = field.data() + field.size();
  if (sort == kI64) {
    int64_t i = 0;
    const auto read = std::from_chars(field.data(), last, i);
    *value = graph_.I64(i);
    return read.ptr == last && read.ec == std::errc();
  }
  if (sort == kF64) {
    double d = 0;
    const auto read = std::from_chars(field.data(), last, d);
    *value = graph_.F64(d);
    return read.ptr == last && read.ec == std::errc();
  }
  *value = sort == kUnit ? graph_.Unit() : graph_.String(field);
  return true;
}

bool Loader::InputCommand(uint32_t n) {
  FunctionId f;
  std::filesystem::path path;
  std::string text;
  if (!Takes(n, 2, 2) || !FunctionName(Child(n, 1), &f) || !ReadFile(Child(n, 2), &path, &text)) {
    return false;
  }
  if (FindInvalidUtf8(text) != std::string_view::npos) {
    return Error(Offset(Child(n, 2)), "'" + path.string() + "' is not UTF-8",
                 ErrorKind::kEnvironment);
  }
  const Function& function = graph_.function(f);
  std::vector<SortId> columns = function.inputs;
  if (function.kind == FunctionKind::kFunction) columns.push_back(function.output);
  for (SortId sort : columns) {
    if (sort != kI64 && sort != kF64 && sort != kString && sort != kUnit) {
      return Error(Offset(Child(n, 1)),
                   "values of " + graph_.sort(sort).name + " cannot be read from a file",
                   ErrorKind::kSafety);
    }
  }
  size_t line_number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    std::vector<Value> row(columns.size());
    size_t from = 0;
    for (size_t c = 0; c < columns.size(); ++c) {
      const size_t tab = std::min(line.find('\t', from), line.size());
      if (from > line.size() ||
          !ReadField(columns[c], Trimmed(line.substr(from, tab - from)), &row[c]) ||
          (c + 1 == columns.size() && tab != line.size())) {
        return Error(Offset(Child(n, 2)),
                     "'" + path.string() + "' line " + std::to_string(line_number) + ": expected " +
                         std::to_string(columns.size()) + " columns of '" + function.name + "'");
      }
      from = tab + 1;
    }
    if (function.kind == FunctionKind::kFunction) {
      const Value value = row.back();
      row.pop_back();
      graph_.Set(f, row, value);
    } else if (function.kind == FunctionKind::kRelation) {
      graph_.Insert(f, row);
    } else {
      graph_.Add(f, row);
    }
    if (graph_.failure()) return Error(Offset(n), *graph_.failure(), ErrorKind::kConsistency);
  }
  return graph_.Rebuild() ||
         Error(Offset(n), graph_.failure().value_or("the input failed"), ErrorKind::kConsistency);
}

std::string_view Loader::Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \r") - first + 1);
}

bool Loader::OutputCommand(uint32_t n) {
  if (Count(n) < 3) return Error(Offset(n), "expected (output \"FILE\" EXPR...)");
  std::string text;
  for (uint32_t i = 2; i < Count(n); ++i) {
    EGraph::Global value;
    if (!Evaluate(n, Child(n, i), &value)) return false;
    const std::optional<std::string> term =
        Terms().Text(value.sort, graph_.Canonical(value.sort, value.value), TermLimit(text.size()));
    if (!term)
      return Error(Offset(Child(n, i)), "no term of finite cost to extract",
                   ErrorKind::kConsistency);
    text += *term + "\n";
  }
  return WriteFile(Child(n, 1), text, std::ios::app);
}

}  // namespace l3c::egraph
