#include "tools/l3c/sweep/points.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "layers/support/lexer.h"
#include "layers/support/units.h"
#include "runtime/durable_file.h"
#include "runtime/sha256.h"

namespace l3c::tools::sweep {
namespace {

namespace fs = std::filesystem;
using support::Kind;

WorkloadKind KindOf(const std::string& path) {
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".egg") return WorkloadKind::kEggProgram;
  if (extension == ".json") return WorkloadKind::kGraph;
  return WorkloadKind::kProgram;
}

bool Applies(const std::string& axis, WorkloadKind kind, const std::string& path) {
  if (kind == WorkloadKind::kGraph) return axis == "extractor";
  if (kind == WorkloadKind::kEggProgram) return axis == "budget";
  if (axis == "extractor") return false;
  // A plan has no decision left.
  return fs::path(path).extension() != ".l0" || axis == "shapes" || axis == "memory";
}

// The same text with other whole numbers, found by the lexer: none in a comment or a string.
// `missing` becomes a number that is nowhere in it.
std::string Reshape(const std::string& name, const std::string& text,
                    const std::vector<std::pair<int64_t, int64_t>>& shapes,
                    std::optional<int64_t>& missing) {
  const support::SourceFile source(name, text);
  support::Diagnostics ignored(&source);
  support::Lexer lexer(source, ignored);
  std::string made;
  std::map<int64_t, bool> found;
  uint32_t copied = 0;
  for (support::Token token = lexer.Next(); token.kind != support::TokenKind::kEnd;
       token = lexer.Next()) {
    if (token.kind != support::TokenKind::kNumber) continue;
    std::string error;
    if (token.text.find('.') != std::string_view::npos) continue;  // 512.0 is no whole number
    const std::optional<int64_t> number = support::ParseCount(token.text, &error);
    if (!number) continue;
    for (const auto& [from, to] : shapes) {
      if (from != *number) continue;
      made.append(text, copied, token.span.begin - copied);
      made += std::to_string(to);
      copied = token.span.end;
      found[from] = true;
    }
  }
  for (const auto& [from, to] : shapes) {
    if (!found.contains(from)) missing = from;
  }
  return made + text.substr(copied);
}

std::string Digest(const std::vector<std::string>& parts) {
  std::string whole;
  for (const std::string& part : parts) whole += std::to_string(part.size()) + ":" + part;
  return runtime::Sha256Of(whole).substr(0, 16);
}

class PointMaker {
 public:
  PointMaker(const Grid& grid, const std::string& folder, support::Diagnostics& diagnostics)
      : grid_(grid), folder_(folder), diagnostics_(diagnostics) {}

  std::optional<std::vector<Point>> Run() {
    for (const Workload& workload : grid_.workloads) {
      const absl::StatusOr<std::string> text =
          runtime::ReadText(workload.path, support::SourceFile::kMaxBytes * 8);
      if (!text.ok()) {
        diagnostics_.Error(Kind::kEnvironment, workload.span, std::string(text.status().message()));
        continue;
      }
      Of(workload, *text);
    }
    if (diagnostics_.has_errors()) return std::nullopt;
    return std::move(points_);
  }

 private:
  void Of(const Workload& workload, const std::string& text) {
    const WorkloadKind kind = KindOf(workload.path);
    if (kind != WorkloadKind::kProgram && grid_.measure == Measure::kRun) {
      diagnostics_
          .Error(Kind::kConsistency, workload.span, "'" + workload.name + "' is nothing to run")
          .Label("`measure: run` takes programs of l3, l2, l1 and l0");
      return;
    }
    std::vector<const Axis*> axes;
    for (const Axis& axis : grid_.axes) {
      if (Applies(axis.name, kind, workload.path)) axes.push_back(&axis);
    }
    std::vector<size_t> at(axes.size(), 0);
    while (true) {
      std::vector<const Value*> values;
      for (size_t a = 0; a < axes.size(); ++a) values.push_back(&axes[a]->values[at[a]]);
      Add(workload, kind, text, axes, values);
      size_t a = axes.size();
      while (a > 0 && ++at[a - 1] == axes[a - 1]->values.size()) at[--a] = 0;
      if (a == 0) return;
    }
  }

  void Add(const Workload& workload, WorkloadKind kind, const std::string& text,
           const std::vector<const Axis*>& axes, const std::vector<const Value*>& values) {
    Point point;
    point.workload = workload.name;
    point.kind = kind;
    point.file = workload.path;
    std::string contents = text;
    for (size_t a = 0; a < axes.size(); ++a) {
      const Value& value = *values[a];
      point.settings.emplace_back(axes[a]->name, value.label);
      if (axes[a]->name == "budget") {
        if (!AddBudget(value, kind, point)) return;
      } else {
        point.arguments.insert(point.arguments.end(), value.arguments.begin(),
                               value.arguments.end());
      }
      if (axes[a]->name == "rules" && value.arguments.size() == 2) {
        const auto rules = runtime::ReadText(value.arguments[1], support::SourceFile::kMaxBytes);
        if (rules.ok()) contents += *rules;
      }
      if (value.shapes.empty()) continue;
      std::optional<int64_t> missing;
      point.text = Reshape(workload.path, text, value.shapes, missing);
      contents += *point.text;
      if (missing) {
        if (told_.emplace(&value, true).second) {
          diagnostics_
              .Error(Kind::kConsistency, value.span,
                     "'" + workload.name + "' has no number " + std::to_string(*missing))
              .With({workload.span, "this workload"});
        }
        return;
      }
    }
    std::vector<std::string> parts = {contents, fs::path(workload.path).extension().string(),
                                      grid_.measure == Measure::kRun ? "run" : "optimise"};
    for (const auto& [axis, label] : point.settings) parts.push_back(axis + "=" + label);
    for (const std::string& argument : point.arguments) parts.push_back(argument);
    if (grid_.measure == Measure::kRun) {
      for (int64_t n : {grid_.steps, grid_.threads}) parts.push_back(std::to_string(n));
    }
    parts.push_back(std::to_string(grid_.seed));
    point.key = Digest(parts);
    if (point.text) {
      const std::string name = workload.name + "-" + Digest({*point.text}).substr(0, 8) +
                               fs::path(workload.path).extension().string();
      point.file = (fs::path(folder_) / "programs" / fs::path(name).filename()).string();
    }
    points_.push_back(std::move(point));
  }

  // The engine by itself has options of its own for what a search's budget counts.
  bool AddBudget(const Value& value, WorkloadKind kind, Point& point) {
    for (const std::string& argument : value.arguments) {
      const size_t equals = argument.find('=');
      const std::string what = argument.substr(0, equals);
      const bool engine = kind == WorkloadKind::kEggProgram;
      const bool known =
          what == "work" || what == "nodes" ||
          (engine ? what == "matches" || what == "iterations" : what == "candidates");
      if (!known) {
        if (told_.emplace(&value, true).second) {
          diagnostics_
              .Error(Kind::kConsistency, value.span,
                     "a budget of " + what + " is not for '" + point.workload + "'")
              .Label(engine ? "an .egg program has work, nodes, matches and iterations"
                            : "a program has work, nodes and candidates");
        }
        return false;
      }
      if (engine) {
        point.arguments.push_back("--max-" + what);
        point.arguments.push_back(argument.substr(equals + 1));
      } else {
        point.arguments.push_back("--budget");
        point.arguments.push_back(argument);
      }
    }
    return true;
  }

  const Grid& grid_;
  const std::string& folder_;
  support::Diagnostics& diagnostics_;
  std::map<const Value*, bool> told_;  // one error a value, not one a point
  std::vector<Point> points_;
};

}  // namespace

const std::string& Point::Setting(const std::string& axis) const {
  static const std::string* none = new std::string();
  for (const auto& [name, label] : settings) {
    if (name == axis) return label;
  }
  return *none;
}

std::optional<std::vector<Point>> PointsOf(const Grid& grid, const std::string& folder,
                                           support::Diagnostics& diagnostics) {
  return PointMaker(grid, folder, diagnostics).Run();
}

}  // namespace l3c::tools::sweep
