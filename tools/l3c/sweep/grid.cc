#include "tools/l3c/sweep/grid.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "layers/support/parser.h"
#include "layers/support/units.h"
#include "rewrites/rewrites.h"

namespace l3c::tools::sweep {
namespace {

namespace fs = std::filesystem;
using support::Kind;

const std::vector<std::string> kFields = {"workloads", "search",    "numerics", "memory",
                                          "evidence",  "rules",     "without",  "budget",
                                          "shapes",    "extractor", "measure",  "limits"};

class GridParser : public support::ParserBase {
 public:
  GridParser(const support::SourceFile& source, support::Diagnostics& diagnostics)
      : ParserBase(source, diagnostics), folder_(fs::path(source.name()).parent_path()) {}

  std::optional<Grid> Run() {
    CheckHeader("grid");
    if (!ExpectWord("grid")) return std::nullopt;
    const auto name = ExpectName("the name of the grid");
    if (!name || !Expect("{")) return std::nullopt;
    grid_.name = name->text;
    const int depth = bracket_depth();
    while (!At("}") && !AtEnd()) {
      const uint32_t field = Here();
      if (!Field()) SkipToField(depth, field);
      Accept(",");
    }
    const support::Span end = Peek().span;
    if (!Expect("}")) return std::nullopt;
    if (!AtEnd()) ErrorExpected("the end of the file: a grid is a file of its own");
    if (diagnostics().has_errors()) return std::nullopt;
    if (grid_.workloads.empty()) {
      Error(name->span, "grid '" + grid_.name + "' has no workloads", Kind::kConsistency)
          .Label("expected `workloads: [\"FILE\", …]` in it");
    }
    double points = static_cast<double>(grid_.workloads.size());
    for (const Axis& axis : grid_.axes) points *= static_cast<double>(axis.values.size());
    if (points > static_cast<double>(kMaxPoints)) {
      Error(end, "the grid has more than " + std::to_string(kMaxPoints) + " points",
            Kind::kResourceBound);
    }
    if (diagnostics().has_errors()) return std::nullopt;
    std::sort(grid_.axes.begin(), grid_.axes.end(), [](const Axis& a, const Axis& b) {
      return std::find(kFields.begin(), kFields.end(), a.name) <
             std::find(kFields.begin(), kFields.end(), b.name);
    });
    return std::move(grid_);
  }

 private:
  bool Field() {
    const auto name = ExpectName("a field of the grid");
    if (!name) return false;
    if (std::find(kFields.begin(), kFields.end(), name->text) == kFields.end()) {
      ErrorUnknown("field", *name, kFields);
      return false;
    }
    if (!given_.insert(name->text).second) {
      Error(name->span, "'" + name->text + "' is given twice", Kind::kConsistency);
      return false;
    }
    if (!Expect(":")) return false;
    if (name->text == "workloads") return Workloads();
    if (name->text == "measure") return MeasureField();
    if (name->text == "limits") return Limits();
    Axis axis;
    axis.name = name->text;
    const bool ok = ParseList("[", "]", [&] { return ItemOf(axis); });
    if (!ok) return false;
    if (axis.values.empty()) {
      Error(name->span, "'" + name->text + "' has no values", Kind::kConsistency);
      return false;
    }
    std::set<std::string> labels;
    for (const Value& value : axis.values) {
      if (labels.insert(value.label).second) continue;
      Error(value.span, "'" + value.label + "' is given twice", Kind::kConsistency);
      return false;
    }
    grid_.axes.push_back(std::move(axis));
    return true;
  }

  bool Workloads() {
    return ParseList("[", "]", [&] {
      const support::Span span = Peek().span;
      const auto path = ExpectString("the file of a workload in quotes");
      if (!path) return false;
      Workload workload{PathOf(*path), fs::path(*path).stem().string(), span};
      std::error_code ignored;
      if (!fs::is_regular_file(workload.path, ignored)) {
        Error(span, "there is no file '" + workload.path + "'", Kind::kEnvironment);
        return false;
      }
      const std::string extension = fs::path(workload.path).extension().string();
      const std::vector<std::string> known = {".l3", ".l2", ".l1", ".l0", ".egg", ".json"};
      if (std::find(known.begin(), known.end(), extension) == known.end()) {
        Error(span, "'" + *path + "' is no program", Kind::kConsistency)
            .Label("expected .l3, .l2, .l1, .l0, .egg, or .json of a serialized e-graph");
        return false;
      }
      // Tables tell workloads apart by their names.
      for (const Workload& other : grid_.workloads) {
        if (other.path == workload.path) {
          Error(span, "this workload is given twice", Kind::kConsistency);
          return false;
        }
        if (other.name == workload.name) workload.name = *path;
      }
      grid_.workloads.push_back(std::move(workload));
      return true;
    });
  }

  bool MeasureField() {
    const auto what = ExpectName("optimise or run");
    if (!what) return false;
    if (what->text != "optimise" && what->text != "run") {
      ErrorUnknown("measure", *what, {"optimise", "run"});
      return false;
    }
    grid_.measure = what->text == "run" ? Measure::kRun : Measure::kOptimise;
    if (!At("(")) return true;
    std::vector<std::string> known = {"repeats", "threads", "seed"};
    if (grid_.measure == Measure::kRun) known.insert(known.begin(), "steps");
    return ParseList("(", ")", [&] {
      const auto label = ExpectName("a setting");
      if (!label) return false;
      if (std::find(known.begin(), known.end(), label->text) == known.end()) {
        ErrorUnknown("setting", *label, known);
        return false;
      }
      if (!Expect(":")) return false;
      const auto take = [&](int64_t& to, int64_t low, int64_t high) {
        const auto number = ExpectInteger("a whole number", low, high);
        if (number) to = *number;
        return number.has_value();
      };
      if (label->text == "steps") return take(grid_.steps, 2, 1'000'000);
      if (label->text == "repeats") return take(grid_.repeats, 1, 1000);
      if (label->text == "threads") return take(grid_.threads, 1, 1024);
      return take(grid_.seed, 0, int64_t{1} << 62);
    });
  }

  bool Limits() {
    return ParseList("(", ")", [&] {
      const auto label = ExpectName("time or memory");
      if (!label) return false;
      if (label->text != "time" && label->text != "memory") {
        ErrorUnknown("limit", *label, {"time", "memory"});
        return false;
      }
      if (!Expect(":")) return false;
      const support::Span span = Peek().span;
      if (label->text == "memory") {
        const auto bytes = ExpectBytes("bytes such as 4GB");
        if (!bytes) return false;
        grid_.memory_limit = *bytes;
        if (*bytes >= 16'000'000) return true;
        Error(span, "no program runs in less than 16MB", Kind::kResourceBound);
        return false;
      }
      const auto seconds = ExpectSeconds("a time such as 60s");
      if (!seconds) return false;
      grid_.seconds_limit = *seconds;
      if (*seconds > 0 && *seconds <= 1e6) return true;
      Error(span, "a point takes more than nothing and at most 1e6 s", Kind::kResourceBound);
      return false;
    });
  }

  bool ItemOf(Axis& axis) {
    const uint32_t begin = Here();
    const std::string& name = axis.name;
    bool ok = false;
    if (name == "search") ok = Word(axis, {"off", "greedy", "egraph"}, "--search");
    if (name == "numerics") ok = Word(axis, {"exact", "reassoc", "fast"}, "--numerics");
    if (name == "extractor") ok = Word(axis, {"tree", "greedy", "exact"}, "--extractor");
    if (name == "memory") ok = Memory(axis);
    if (name == "evidence") ok = Evidence(axis);
    if (name == "rules") ok = Rules(axis);
    if (name == "without") ok = Without(axis);
    if (name == "budget") ok = Budget(axis);
    if (name == "shapes") ok = Shapes(axis);
    if (ok) {
      for (Value& value : axis.values) {
        if (!value.span.known()) value.span = SpanFrom(begin);
      }
    }
    return ok;
  }

  bool Word(Axis& axis, const std::vector<std::string>& known, const char* option) {
    const auto word = ExpectName("one of its words");
    if (!word) return false;
    if (std::find(known.begin(), known.end(), word->text) == known.end()) {
      ErrorUnknown(axis.name, *word, known);
      return false;
    }
    axis.values.push_back({word->text, {option, word->text}, {}, word->span});
    return true;
  }

  // The word that stands for the setting left alone.
  bool Plain(Axis& axis, const char* word) {
    if (!AcceptWord(word)) return false;
    axis.values.push_back({word, {}, {}, {}});
    return true;
  }

  // Neither the word nor what the axis is made of.
  bool OtherWord(const Axis& axis, const std::vector<std::string>& known) {
    const auto word = ExpectName(axis.name);
    if (word) ErrorUnknown(axis.name, *word, known);
    return false;
  }

  bool Memory(Axis& axis) {
    if (Plain(axis, "none")) return true;
    if (AtName()) return OtherWord(axis, {"none"});
    const std::string text(Peek().text);
    const support::Span span = Peek().span;
    const auto bytes = ExpectBytes("none, or bytes such as 8MB");
    if (!bytes) return false;
    if (*bytes < 1) {
      Error(span, "a plan takes more than no memory", Kind::kResourceBound);
      return false;
    }
    axis.values.push_back({text, {"--memory", text}, {}, span});
    return true;
  }

  bool Evidence(Axis& axis) {
    if (Plain(axis, "current")) return true;
    if (AcceptWord("none")) {
      axis.values.push_back({"none", {"--evidence", "none"}, {}, {}});
      return true;
    }
    if (AtName()) return OtherWord(axis, {"current", "none"});
    if (AtString()) {
      const std::string path = PathOf(*ExpectString("a file"));
      axis.values.push_back({path, {"--evidence", path}, {}, {}});
      return true;
    }
    const auto revision = ExpectInteger("current, none, a revision or a file", 1);
    if (!revision) return false;
    const std::string text = std::to_string(*revision);
    axis.values.push_back({text, {"--evidence", text}, {}, {}});
    return true;
  }

  bool Rules(Axis& axis) {
    if (Plain(axis, "none")) return true;
    if (AtName()) return OtherWord(axis, {"none"});
    const support::Span span = Peek().span;
    const auto file = ExpectString("none, or a file of rules in quotes");
    if (!file) return false;
    const std::string path = PathOf(*file);
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) {
      Error(span, "there is no file '" + path + "'", Kind::kEnvironment);
      return false;
    }
    axis.values.push_back({fs::path(path).stem().string(), {"--rules", path}, {}, span});
    return true;
  }

  const rewrites::RuleFile* FindRuleFile(const std::string& name, support::Span span) {
    const rewrites::RuleFile* file = rewrites::Find(name);
    if (file != nullptr) return file;
    std::vector<std::string> known;
    for (const rewrites::RuleFile& other : rewrites::All()) known.emplace_back(other.name);
    ErrorUnknown("rule file", {name, span}, known, Kind::kConsistency);
    return nullptr;
  }

  bool Without(Axis& axis) {
    if (Plain(axis, "none")) return true;
    const bool each = AcceptWord("each");
    if (!each && AtName()) return OtherWord(axis, {"none", "each"});
    if (each && !Expect("(")) return false;
    const support::Span span = Peek().span;
    const auto name = ExpectString("a rule file or FILE/RULE in quotes");
    if (!name || (each && !Expect(")"))) return false;
    const size_t slash = name->find('/');
    const rewrites::RuleFile* file = FindRuleFile(name->substr(0, slash), span);
    if (file == nullptr) return false;
    const std::vector<std::string> rules = rewrites::RuleNames(*file);
    if (each) {
      if (rules.empty()) {
        Error(span, "no rule of '" + *name + "' has a name", Kind::kConsistency);
        return false;
      }
      for (const std::string& rule : rules) {
        const std::string label = *name + "/" + rule;
        axis.values.push_back({label, {"--without", label}, {}, span});
      }
      return true;
    }
    if (slash != std::string::npos) {
      const std::string rule = name->substr(slash + 1);
      if (std::find(rules.begin(), rules.end(), rule) == rules.end()) {
        ErrorUnknown("rule of '" + name->substr(0, slash) + "'", {rule, span}, rules,
                     Kind::kConsistency);
        return false;
      }
    }
    axis.values.push_back({*name, {"--without", *name}, {}, span});
    return true;
  }

  bool Budget(Axis& axis) {
    if (Plain(axis, "default")) return true;
    if (AtName()) return OtherWord(axis, {"default"});
    const std::vector<std::string> known = {"work", "nodes", "candidates", "matches", "iterations"};
    Value value;
    const uint32_t begin = Here();
    const bool ok = ParseList("(", ")", [&] {
      const auto label = ExpectName("what is counted");
      if (!label) return false;
      if (std::find(known.begin(), known.end(), label->text) == known.end()) {
        ErrorUnknown("budget", *label, known);
        return false;
      }
      if (!Expect(":")) return false;
      const auto count = ExpectInteger("a count above 0", 1, int64_t{1} << 62);
      if (!count) return false;
      value.label += (value.label.empty() ? "" : ",") + label->text + "=" + std::to_string(*count);
      value.arguments.push_back(label->text + "=" + std::to_string(*count));
      return true;
    });
    if (!ok) return false;
    value.span = SpanFrom(begin);
    if (value.arguments.empty()) {
      Error(value.span, "this budget is empty", Kind::kConsistency)
          .Label("`default` leaves it alone");
      return false;
    }
    axis.values.push_back(std::move(value));
    return true;
  }

  bool Shapes(Axis& axis) {
    if (Plain(axis, "given")) return true;
    if (AtName()) return OtherWord(axis, {"given"});
    Value value;
    const uint32_t begin = Here();
    const bool ok = ParseList("(", ")", [&] {
      const support::Span span = Peek().span;
      const auto from = ExpectInteger("a whole number of the workload's text", 1);
      if (!from || !Expect(":")) return false;
      const auto to = ExpectInteger("what stands in its place", 1);
      if (!to) return false;
      for (const auto& [other, ignored] : value.shapes) {
        if (other != *from) continue;
        Error(span, std::to_string(*from) + " is given twice", Kind::kConsistency);
        return false;
      }
      value.shapes.emplace_back(*from, *to);
      value.label +=
          (value.label.empty() ? "" : ",") + std::to_string(*from) + "→" + std::to_string(*to);
      return true;
    });
    if (!ok) return false;
    value.span = SpanFrom(begin);
    if (value.shapes.empty()) {
      Error(value.span, "this shape changes nothing", Kind::kConsistency)
          .Label("`given` leaves the text alone");
      return false;
    }
    axis.values.push_back(std::move(value));
    return true;
  }

  std::string PathOf(const std::string& path) const {
    return (folder_ / path).lexically_normal().string();
  }

  const fs::path folder_;
  std::set<std::string> given_;
  Grid grid_;
};

}  // namespace

std::optional<Grid> ParseGrid(const support::SourceFile& source,
                              support::Diagnostics& diagnostics) {
  return GridParser(source, diagnostics).Run();
}

}  // namespace l3c::tools::sweep
