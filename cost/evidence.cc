#include "cost/evidence.h"

#include <cmath>

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

bool ReadMeasurement(const json& from, double low, double high, Measurement& to) {
  to = {from.at("value").get<double>(), from.at("spread").get<double>(),
        from.at("samples").get<int>()};
  return std::isfinite(to.value) && to.value >= low && to.value <= high &&
         std::isfinite(to.spread) && to.spread >= 0 && to.samples > 0;
}

absl::StatusOr<Evidence> Read(const json& file, std::string_view fingerprint) {
  Evidence evidence;
  if (file.at("format").get<std::string>() != kFormat) return Refuse("it is no evidence file");
  if (const int version = file.at("version").get<int>(); version != Evidence::kVersion) {
    return Refuse("it is of version " + std::to_string(version) + ", and this l3c knows version " +
                  std::to_string(Evidence::kVersion));
  }
  evidence.revision = file.at("revision").get<int64_t>();
  if (evidence.revision < 1) {
    return Refuse("its revision is absurd: " + file.at("revision").dump());
  }
  const json& target = file.at("target");
  evidence.target = {target.at("cpu").get<std::string>(),  target.at("features").get<std::string>(),
                     target.at("cores").get<int64_t>(),    target.at("lanes").get<int>(),
                     target.at("l2_bytes").get<int64_t>(), target.at("l3_bytes").get<int64_t>()};
  const auto named = target.at("fingerprint").get<std::string>();
  if (named != fingerprint || Fingerprint(evidence.target) != fingerprint) {
    return Refuse("it was measured on another machine (" + evidence.target.cpu + ", " +
                  std::to_string(evidence.target.cores) + " cores, fingerprint " + named +
                  "; this one is " + std::string(fingerprint) + ")");
  }
  const json& figures = file.at("figures");
  for (const FigureLimits& limits : kFigures) {
    const std::string name(limits.name);
    if (!figures.contains(name) && limits.optional) continue;
    if (!figures.contains(name)) return Refuse("figure '" + name + "' is missing");
    if (!ReadMeasurement(figures.at(name), limits.low, limits.high, evidence.figures[name])) {
      return Refuse("figure '" + name + "' is absurd: " + figures.at(name).dump());
    }
  }
  for (const json& from : file.at("points")) {
    EvidencePoint point;
    point.probe = from.at("probe").get<std::string>();
    point.extents = from.at("extents").get<std::array<int64_t, 3>>();
    bool sound = ReadMeasurement(from.at("seconds"), 1e-10, kMaxSeconds, point.seconds);
    double operations = 1;
    for (int64_t extent : point.extents) {
      sound = sound && extent >= 1 && extent <= kMaxExtent;
      operations *= static_cast<double>(extent);
    }
    sound = sound && operations / point.seconds.value <= kMaxOperationsPerSecond;
    if (!sound) return Refuse("a point is absurd: " + from.dump());
    evidence.points.push_back(std::move(point));
  }
  return evidence;
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
  const json file = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (file.is_discarded()) return Refuse("it is no whole JSON text: it may have been cut short");
  try {
    return Read(file, fingerprint);
  } catch (const json::exception& error) {
    // A member that is missing or of another type.
    return Refuse("it is no whole evidence file: " + std::string(error.what()));
  }
}

}  // namespace l3c::cost
