#include "cost/evidence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cost/calibrated.h"
#include "layers/l0/kernel_schedule.h"

namespace l3c::cost {
namespace {

EvidenceTarget Target() { return {"A processor", "avx2 fma", 2, 8, 1 << 20, 32 << 20}; }

Evidence Example() {
  Evidence evidence;
  evidence.target = Target();
  for (const FigureLimits& limits : kFigures) {
    evidence.figures[std::string(limits.name)] = {std::sqrt(limits.low * limits.high), 0.02, 7};
  }
  evidence.figures["fma_flops"].value = 1.7e11;
  evidence.figures["launch_seconds"].value = 2e-6;
  evidence.points = {{"product ab", {64, 256, 64}, {2e-5, 0.01, 7}},
                     {"product ab", {256, 256, 256}, {4e-4, 0.01, 7}},
                     {"sum rows", {256, 256, 1}, {1e-5, 0.03, 7}}};
  return evidence;
}

std::string Changed(const std::string& from, const std::string& to) {
  std::string text = PrintEvidence(Example());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string Refusal(const std::string& text) {
  return std::string(ParseEvidence(text, Fingerprint(Target())).status().message());
}

TEST(EvidenceFile, IsReadAsItWasWritten) {
  const std::string text = PrintEvidence(Example());
  const auto read = ParseEvidence(text, Fingerprint(Target()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PrintEvidence(*read), text);
  EXPECT_EQ(read->points.size(), 3);
  EXPECT_EQ(read->figures.at("fma_flops").value, 1.7e11);
}

TEST(EvidenceFile, OfAnotherMachineIsRefused) {
  EvidenceTarget other = Target();
  other.cores = 4;
  const auto read = ParseEvidence(PrintEvidence(Example()), Fingerprint(other));
  EXPECT_NE(read.status().message().find("another machine (A processor, 2 cores"),
            std::string::npos);
  // Nor does it help to write the fingerprint over.
  EXPECT_NE(Refusal(Changed("\"cores\": 2", "\"cores\": 3")).find("another machine"),
            std::string::npos);
}

TEST(EvidenceFile, NewerTruncatedAbsurdOrAnythingElseIsRefused) {
  EXPECT_EQ(Refusal(Changed("\"version\": 1", "\"version\": 2")),
            "it is of version 2, and this l3c knows version 1");
  const std::string text = PrintEvidence(Example());
  for (size_t cut = 0; cut + 2 < text.size(); cut += 7) {
    EXPECT_NE(Refusal(text.substr(0, cut)), "") << cut;
  }
  EXPECT_NE(Refusal(Changed("170000000000.0", "1.7e300")).find("'fma_flops' is absurd"),
            std::string::npos);
  EXPECT_NE(Refusal(Changed("170000000000.0", "-1")).find("'fma_flops' is absurd"),
            std::string::npos);
  EXPECT_NE(Refusal(Changed("170000000000.0", "\"fast\"")), "");
  EXPECT_NE(Refusal(Changed("\"fma_flops\"", "\"fma\"")).find("'figures.fma_flops' is missing"),
            std::string::npos);
  EXPECT_NE(Refusal(Changed("   64,", "   0,")).find("a point is absurd"), std::string::npos);
  EXPECT_NE(Refusal("[]"), "");
  EXPECT_NE(Refusal("{\"format\": \"l3c evidence\"}"), "");
}

TEST(EvidenceFile, DamageIsToldWithItsPlaceInOurWords) {
  const std::string text = PrintEvidence(Example());
  EXPECT_EQ(Refusal(""), "it ends at line 1, column 1 in the middle: it has been cut short");
  EXPECT_EQ(Refusal("{\n \"format\": \"l3c evidence\",\n \"version\""),
            "it ends at line 3, column 11 in the middle: it has been cut short");
  EXPECT_EQ(Refusal("{\n \"format\" \"l3c evidence\"}"),
            "it is no JSON at line 2, column 24: it has been damaged");
  EXPECT_EQ(Refusal("[]"), "it is no whole evidence file: it is no object but []");
  EXPECT_EQ(Refusal("{\"format\": \"l3c evidence\"}"),
            "it is no whole evidence file: 'version' is missing");
  EXPECT_EQ(Refusal(Changed("170000000000.0", "\"fast\"")),
            "it is no whole evidence file: 'figures.fma_flops.value' is no number but \"fast\"");
  EXPECT_EQ(Refusal(Changed("   64,", "   \"64\",")),
            "it is no whole evidence file: 'points[0].extents[0]' is no whole number but \"64\"");
  for (size_t cut = 0; cut + 2 < text.size(); cut += 7) {
    EXPECT_EQ(Refusal(text.substr(0, cut)).find("json"), std::string::npos) << cut;
  }
}

double Best(const CpuCostModel& model, const l0::Kernel& kernel) {
  double best = 1e9;
  for (const l0::Schedule& schedule : l0::CandidateSchedules(kernel, model.target())) {
    best = std::min(best, model.KernelSeconds(kernel, schedule));
  }
  return best;
}

TEST(Calibrated, SaysOfAMeasuredShapeWhatWasMeasuredAndHowItKnows) {
  CpuMachine machine;
  machine.lanes = 8;
  const CalibratedCostModel model(machine, Example());
  const l0::Kernel measured = ProbeKernel(Probe::kAb, {64, 256, 64});
  EXPECT_EQ(model.KernelEvidence(measured), "measured");
  EXPECT_NEAR(Best(model, measured) + model.LaunchSeconds(4), 2e-5, 1e-9);
  EXPECT_EQ(model.KernelEvidence(ProbeKernel(Probe::kAb, {128, 256, 128})), "interpolated");
  EXPECT_EQ(model.KernelEvidence(ProbeKernel(Probe::kAb, {128, 256, 4096})), "extrapolated");
  EXPECT_EQ(CpuCostModel(machine).KernelEvidence(measured), "analytical");
  EXPECT_NE(model.figures(), CpuCostModel(machine).figures());
}

TEST(Probes, AreLikeThemselves) {
  for (Probe probe : kProbes) {
    for (const Extents& extents : ProbeShapes(probe)) {
      const l0::Kernel kernel = ProbeKernel(probe, extents);
      const auto like = ProbeLike(kernel);
      ASSERT_TRUE(like.has_value());
      EXPECT_EQ(like->probe, probe) << ProbeName(probe);
      EXPECT_EQ(like->extents, extents);
    }
    EXPECT_EQ(FindProbe(ProbeName(probe)), probe);
  }
  EXPECT_FALSE(ProbeLike(ChainKernel("sqrt", 2, 64)).has_value());
}

TEST(Calibrated, DescribesTheNodeThatWasMeasured) {
  l1::SystemNode node;
  node.cores = 2;
  node.features = {"fma", "avx2"};
  EXPECT_TRUE(Describes(Example(), node));
  node.cores = 4;
  EXPECT_FALSE(Describes(Example(), node));
}

}  // namespace
}  // namespace l3c::cost
