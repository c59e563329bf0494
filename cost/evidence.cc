#include "cost/evidence.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace l3c::cost {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kFormat = "l3c evidence";
constexpr int64_t kMaxExtent = int64_t{1} << 30;
// A probe does at least an operation for each point of its extents.
constexpr double kMaxOperationsPerSecond = 1e15;
constexpr double kMaxSeconds = 1000;  // of a point

absl::Status Refuse(const std::string& why) { return absl::InvalidArgumentError(why); }

std::string TargetText(const EvidenceTarget& target) {
  std::string text = target.cpu + "\n" + target.features;
  for (int64_t n : {target.cores, int64_t{target.lanes}, target.l2_bytes, target.l3_bytes}) {
    text += "\n" + std::to_string(n);
  }
  return text;
}

ordered_json Printed(const Measurement& m) {
  return {{"value", m.value}, {"spread", m.spread}, {"samples", m.samples}};
}

// What Read() refuses, in words.
struct Damage {
  std::string what;
};

// A value of the file and where it stands there, as in points[3].seconds.
class Part {
 public:
  Part(const json& value, std::string where) : value_(value), where_(std::move(where)) {}

  Part At(std::string_view name) const {
    if (!value_.is_object()) IsNo("object");
    const auto found = value_.find(name);
    const std::string where = (where_.empty() ? "" : where_ + ".") + std::string(name);
    if (found == value_.end()) throw Damage{"'" + where + "' is missing"};
    return {*found, where};
  }
  bool Has(std::string_view name) const { return value_.is_object() && value_.contains(name); }
  std::vector<Part> Elements() const {
    if (!value_.is_array()) IsNo("list");
    std::vector<Part> elements;
    for (size_t i = 0; i < value_.size(); ++i) {
      elements.emplace_back(value_[i], where_ + "[" + std::to_string(i) + "]");
    }
    return elements;
  }
  std::string Text() const {
    if (!value_.is_string()) IsNo("text");
    return value_.get<std::string>();
  }
  double Real() const {
    if (!value_.is_number()) IsNo("number");
    return value_.get<double>();
  }
  int64_t Integer() const {
    if (!value_.is_number_integer()) IsNo("whole number");
    return value_.get<int64_t>();
  }
  int Int() const {
    const int64_t value = Integer();
    if (value != static_cast<int>(value)) IsNo("whole number of that size");
    return static_cast<int>(value);
  }
  std::string Dump() const { return value_.dump(); }

 private:
  [[noreturn]] void IsNo(const std::string& wanted) const {
    constexpr size_t kShown = 40;  // of what stands there
    std::string found = value_.dump(-1, ' ', /*ensure_ascii=*/true);
    if (found.size() > kShown) found = found.substr(0, kShown) + " …";
    throw Damage{(where_.empty() ? "it" : "'" + where_ + "'") + " is no " + wanted + " but " +
                 found};
  }

  const json& value_;
  const std::string where_;
};

bool ReadMeasurement(const Part& from, double low, double high, Measurement& to) {
  to = {from.At("value").Real(), from.At("spread").Real(), from.At("samples").Int()};
  return std::isfinite(to.value) && to.value >= low && to.value <= high &&
         std::isfinite(to.spread) && to.spread >= 0 && to.samples > 0;
}

absl::StatusOr<Evidence> Read(const Part& file, std::string_view fingerprint) {
  Evidence evidence;
  if (file.At("format").Text() != kFormat) return Refuse("it is no evidence file");
  if (const int version = file.At("version").Int(); version != Evidence::kVersion) {
    return Refuse("it is of version " + std::to_string(version) + ", and this l3c knows version " +
                  std::to_string(Evidence::kVersion));
  }
  evidence.revision = file.At("revision").Integer();
  if (evidence.revision < 1) {
    return Refuse("its revision is absurd: " + file.At("revision").Dump());
  }
  const Part target = file.At("target");
  evidence.target = {target.At("cpu").Text(),         target.At("features").Text(),
                     target.At("cores").Integer(),    target.At("lanes").Int(),
                     target.At("l2_bytes").Integer(), target.At("l3_bytes").Integer()};
  const std::string named = target.At("fingerprint").Text();
  if (named != fingerprint || Fingerprint(evidence.target) != fingerprint) {
    return Refuse("it was measured on another machine (" + evidence.target.cpu + ", " +
                  std::to_string(evidence.target.cores) + " cores, fingerprint " + named +
                  "; this one is " + std::string(fingerprint) + ")");
  }
  const Part figures = file.At("figures");
  for (const FigureLimits& limits : kFigures) {
    const std::string name(limits.name);
    if (!figures.Has(name) && limits.optional) continue;
    const Part figure = figures.At(name);
    if (!ReadMeasurement(figure, limits.low, limits.high, evidence.figures[name])) {
      return Refuse("figure '" + name + "' is absurd: " + figure.Dump());
    }
  }
  for (const Part& from : file.At("points").Elements()) {
    EvidencePoint point;
    point.probe = from.At("probe").Text();
    const std::vector<Part> extents = from.At("extents").Elements();
    bool sound = extents.size() == point.extents.size() &&
                 ReadMeasurement(from.At("seconds"), 1e-10, kMaxSeconds, point.seconds);
    double operations = 1;
    for (size_t i = 0; sound && i < extents.size(); ++i) {
      point.extents[i] = extents[i].Integer();
      sound = point.extents[i] >= 1 && point.extents[i] <= kMaxExtent;
      operations *= static_cast<double>(point.extents[i]);
    }
    sound = sound && operations / point.seconds.value <= kMaxOperationsPerSecond;
    if (!sound) return Refuse("a point is absurd: " + from.Dump());
    evidence.points.push_back(std::move(point));
  }
  return evidence;
}

// Of the byte before which so many were read.
std::string LineAndColumn(std::string_view text, size_t bytes) {
  const std::string_view before = text.substr(0, bytes > 0 ? bytes - 1 : 0);
  const size_t newline = before.rfind('\n');
  const size_t column =
      newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
  return "line " + std::to_string(1 + std::count(before.begin(), before.end(), '\n')) +
         ", column " + std::to_string(column + 1);
}

}  // namespace

std::string Fingerprint(const EvidenceTarget& target) {
  // 64-bit FNV-1a.
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : TargetText(target)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(hash >> shift) & 15];
  return text;
}

std::string PrintEvidence(const Evidence& evidence) {
  const EvidenceTarget& target = evidence.target;
  ordered_json file = {{"format", kFormat},
                       {"version", Evidence::kVersion},
                       {"revision", evidence.revision},
                       {"target",
                        {{"fingerprint", Fingerprint(target)},
                         {"cpu", target.cpu},
                         {"features", target.features},
                         {"cores", target.cores},
                         {"lanes", target.lanes},
                         {"l2_bytes", target.l2_bytes},
                         {"l3_bytes", target.l3_bytes}}}};
  ordered_json& figures = file["figures"] = ordered_json::object();
  for (const FigureLimits& limits : kFigures) {
    const auto found = evidence.figures.find(std::string(limits.name));
    if (found != evidence.figures.end()) figures[found->first] = Printed(found->second);
  }
  ordered_json& points = file["points"] = ordered_json::array();
  for (const EvidencePoint& point : evidence.points) {
    points.push_back(
        {{"probe", point.probe}, {"extents", point.extents}, {"seconds", Printed(point.seconds)}});
  }
  return file.dump(1) + "\n";
}

absl::StatusOr<Evidence> ParseEvidence(std::string_view text, std::string_view fingerprint) {
  json file;
  try {
    file = json::parse(text);
  } catch (const json::parse_error& error) {
    const std::string where = LineAndColumn(text, error.byte);
    return Refuse(error.byte > text.size()
                      ? "it ends at " + where + " in the middle: it has been cut short"
                      : "it is no JSON at " + where + ": it has been damaged");
  } catch (const json::exception&) {
    return Refuse("it holds a number that is none");  // out of range
  }
  try {
    return Read({file, ""}, fingerprint);
  } catch (const Damage& damage) {
    return Refuse("it is no whole evidence file: " + damage.what);
  }
}

}  // namespace l3c::cost
