#include "tools/l3c/sweep/bounded_process.h"

#include <unistd.h>

#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace l3c::tools::sweep {
namespace {

ProcessResult RunScript(const std::string& script, const ProcessLimits& limits) {
  BoundedProcess process;
  EXPECT_TRUE(process.Start({"/bin/sh", "-c", script}, {"SAID=it"}, limits));
  while (true) {
    if (const auto result = process.Poll()) return *result;
    usleep(1000);
  }
}

// Not where it is gone, or has ended and nobody has asked for its code yet.
bool Runs(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  return !text.empty() && text.find(") Z ") == std::string::npos;
}

TEST(BoundedProcess, GivesOutputAndTime) {
  const ProcessResult result = RunScript("echo $SAID; echo more >&2", {});
  EXPECT_EQ(result.failure, "");
  EXPECT_EQ(result.output, "it\n");
  EXPECT_GT(result.peak_rss_bytes, 0);
}

TEST(BoundedProcess, SaysWhyItFailed) {
  EXPECT_EQ(RunScript("echo 'x: error: no plan' >&2; echo done >&2; exit 1", {}).failure,
            "exit code 1: x: error: no plan");
  EXPECT_NE(RunScript("kill -SEGV $$", {}).failure.find("signal 11"), std::string::npos);
  EXPECT_EQ(RunScript("exec /nowhere", {}).failure.substr(0, 13), "exit code 127");
}

TEST(BoundedProcess, EndsWhatTakesTooLong) {
  // Its own child holds the pipe open: it is ended as well.
  const ProcessResult result = RunScript("sleep 60 & echo $!; sleep 60", {0.1, 1'000'000'000});
  EXPECT_EQ(result.failure.substr(0, 5), "time:");
  EXPECT_LT(result.seconds, 20);
  const pid_t grandchild = std::stoi(result.output);
  for (int i = 0; i < 2000 && Runs(grandchild); ++i) usleep(1000);
  EXPECT_FALSE(Runs(grandchild));
}

TEST(BoundedProcess, EndsWhatTakesTooMuch) {
  const ProcessResult result = RunScript("exec sleep 20", {20, 1000});
  EXPECT_EQ(result.failure.substr(0, 7), "memory:");
}

}  // namespace
}  // namespace l3c::tools::sweep
