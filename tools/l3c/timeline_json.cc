#include "tools/l3c/timeline_json.h"

#include <cstdio>
#include <iostream>

#include "nlohmann/json.hpp"
#include "tools/l3c/files.h"

namespace l3c::tools {
namespace {

using l0::CommandKind;

// What the command is, and what it does it to.
std::pair<std::string, std::string> Names(const l0::Plan& plan, const l0::Command& command) {
  switch (command.kind) {
    case CommandKind::kLaunch:
      return {"launch", plan.kernels[command.kernel].name};
    case CommandKind::kLoad:
      return {"load", plan.samplers[command.sampler].name};
    case CommandKind::kCopy:
      return {"copy", plan.buffers[command.args[1]].name};
    case CommandKind::kWait:
      return {"wait", plan.tokens[command.token].name};
    case CommandKind::kSignal:
      return {"signal", plan.tokens[command.token].name};
    case CommandKind::kReport:
      return {"report", command.split};
    case CommandKind::kPublish:
      return {"publish", command.split};
    case CommandKind::kCheckpoint:
      return {"checkpoint", "checkpoint"};
    case CommandKind::kComplete:
      return {"complete", "complete"};
  }
  return {};
}

std::string Microseconds(int64_t nanoseconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(nanoseconds / 1000),
                static_cast<long long>(nanoseconds % 1000));
  return text;
}

std::string Quoted(const std::string& text) { return nlohmann::json(text).dump(); }

}  // namespace

bool WriteTimeline(const l0::Plan& plan, const runtime::Timeline& timeline,
                   const std::string& path) {
  std::string json = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (size_t s = 0; s < timeline.streams(); ++s) {
    const std::string track = "\"pid\":1,\"tid\":" + std::to_string(s + 1);
    json += "{\"name\":\"thread_name\",\"ph\":\"M\"," + track +
            ",\"args\":{\"name\":" + Quoted(plan.streams[s].name) + "}},\n";
    for (const runtime::TimelineSpan& span : timeline.Spans(static_cast<l0::StreamId>(s))) {
      const l0::Sequence& sequence = plan.sequences[span.sequence];
      const auto [kind, name] = Names(plan, sequence.commands[span.command]);
      json += "{\"name\":" + Quoted(name) + ",\"cat\":\"" + kind +
              "\",\"ph\":\"X\",\"ts\":" + Microseconds(span.begin) +
              ",\"dur\":" + Microseconds(span.end - span.begin) + "," + track +
              ",\"args\":{\"sequence\":" + Quoted(sequence.name) +
              ",\"argument\":" + std::to_string(span.argument) + "}},\n";
    }
  }
  json +=
      "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":" + Quoted(plan.name) +
      "}}\n]}\n";
  if (timeline.dropped() > 0) {
    std::cerr << "note: the timeline keeps the first commands of the run; " << timeline.dropped()
              << " later ones are left out\n";
  }
  return WriteFile(path, json);
}

}  // namespace l3c::tools
