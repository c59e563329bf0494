// Mutations of a valid plan: each is caught, and filed under the right property.
#include "layers/l0/plan_verify.h"

#include <functional>

#include "gtest/gtest.h"
#include "layers/l0/plan_text.h"
#include "tests/layers/l0/plan/linear.h"

namespace l3c::l0 {
namespace {

using support::Kind;
using testing::LinearText;
using testing::Parse;
using testing::Replace;

void ExpectCaught(const Plan& plan, const support::SourceFile* source, Kind kind,
                  const std::string& message) {
  support::Diagnostics diagnostics(source);
  EXPECT_FALSE(VerifyPlan(plan, diagnostics));
  bool found = false;
  for (const support::Diagnostic& diagnostic : diagnostics.all()) {
    found =
        found || (diagnostic.kind == kind && diagnostic.message.find(message) != std::string::npos);
  }
  EXPECT_TRUE(found) << "expected " << support::KindName(kind) << ": " << message << "\n"
                     << diagnostics.Render(false);
}

TEST(PlanVerify, ScalarsShareALine) {
  support::Diagnostics diagnostics;
  const std::string text =
      Replace(LinearText(), "scratch at 128 size 4 ", "scratch at 4   size 4 ");
  EXPECT_TRUE(VerifyPlan(Parse(text), diagnostics)) << diagnostics.Render(false);
}

TEST(PlanVerify, AcceptsTheLinearPlan) {
  support::Diagnostics diagnostics;
  EXPECT_TRUE(VerifyPlan(Parse(LinearText()), diagnostics)) << diagnostics.Render(false);
}

struct TextMutation {
  std::string name;
  Kind kind;
  std::string message;
  std::vector<std::pair<std::string, std::string>> edits;
};

void PrintTo(const TextMutation& mutation, std::ostream* out) { *out << mutation.name; }

class PlanMutations : public ::testing::TestWithParam<TextMutation> {};

TEST_P(PlanMutations, AreCaught) {
  std::string text = LinearText();
  for (const auto& [from, to] : GetParam().edits) {
    const std::string edited = Replace(text, from, to);
    ASSERT_TRUE(edited != text) << from;
    text = edited;
  }
  const support::SourceFile source("mutated.l0", text);
  ExpectCaught(Parse(text), &source, GetParam().kind, GetParam().message);
}

constexpr Kind kSafety = Kind::kSafety;
constexpr Kind kConsistency = Kind::kConsistency;
constexpr Kind kLiveness = Kind::kLiveness;
constexpr Kind kResource = Kind::kResourceBound;

const TextMutation kMutations[] = {
    // memory
    {"PoolOverCapacity",
     kResource,
     "bytes of 512",
     {{"256B of 1MB", "256B of 512B"},
      {"256B of 1MB", "256B of 512B"},
      {"512B of 1MB", "512B of 512B"}}},
    {"ShardsUneven",
     kConsistency,
     "a batch of 8 cannot take evenly of 3 shards",
     {{"epoch_shuffle(batch: 8, drop_last: false)",
       "epoch_shuffle(batch: 8, drop_last: false, shards: 3)"}}},
    {"CapacitiesDiffer", kConsistency, "another capacity", {{"256B of 1MB", "256B of 2MB"}}},
    {"SlotOutsidePool", kResource, "ends at byte", {{"at 192 size 4", "at 256 size 4"}}},
    {"SlotUnaligned", kSafety, "no multiple of 64", {{"at 192 size 4", "at 200 size 4"}}},
    {"SlotOfAnArenaUnaligned",
     kSafety,
     "no multiple of 4",
     {{"scratch at 128 size 4 ", "scratch at 130 size 4 "}}},
    {"LineWrittenInBlocks",
     kSafety,
     "'p' and 'e' lie in one line of 64 bytes while the first is written in 4 blocks of kernel "
     "'predict'",
     {{"scratch at 64  size 32 live 2..5", "scratch at 32  size 32 live 1..5"}}},
    {"LineWrittenBesideReading",
     kSafety,
     "'e' and 'p' lie in one line of 64 bytes while the first is written in 8 blocks of kernel "
     "'error'",
     {{"scratch at 64  size 32", "scratch at 32  size 32"}}},
    {"SlotTooSmall", kConsistency, "bytes of elements", {{"at 0   size 16", "at 0   size 12"}}},
    {"PersistentOverlap",
     kSafety,
     "'w' and 'b' share bytes",
     {{"state   at 64 ", "state   at 0 "}}},
    {"StagingOverlap", kSafety, "share bytes", {{"staging at 256 size", "staging at 0 size"}}},
    {"ArenaOverlap", kSafety, "'p' and 'e' share bytes", {{"scratch at 64 ", "scratch at 0 "}}},
    {"UseAfterLife", kSafety, "outside its life", {{"live 2..5", "live 2..4"}}},
    {"UseBeforeLife", kSafety, "outside its life", {{"live 2..5", "live 3..5"}}},
    {"LifeBackwards", kConsistency, "before it begins", {{"live 2..5", "live 5..2"}}},
    {"PersistentWithLife",
     kConsistency,
     "lives for the whole run",
     {{"at 192 size 4", "at 192 size 4 live 0..3"}}},
    {"UnusedBuffer",
     kLiveness,
     "'spare' takes memory",
     {{"parameters {", "buffers { spare : f32 [1] in state at 192 size 4 }\nparameters {"}}},
    // what is read has been written
    {"ReadBeforeWrite",
     kSafety,
     "before the sequence has written it",
     {{"    launch predict(x_0, w, b -> p)\n", ""},
      {"live 1..2", "live 0..2"},
      {"live 2..5", "live 1..5"},
      {"live 3..7", "live 2..7"},
      {"live 3..7", "live 2..7"}}},
    {"NoInitialValue",
     kSafety,
     "'w', which nothing has written",
     {{"    w   = normal(0.0, 0.5), seed 3, key 11\n", ""}}},
    {"HalfWritten",
     kSafety,
     "reads buffer 'p', of whose 8 elements only 4 have been written, the last of them by kernel "
     "'predict'",
     {{"axis i : grid 8 block 2", "axis i : grid 4 block 2"}}},
    {"WrittenWithGaps",
     kSafety,
     "reads buffer 'e', of whose 8 elements only 4 have been written",
     {{"axis i : grid 8 block 1", "axis i : grid 4 block 1"}, {"store e[i]", "store e[2*i]"}}},
    {"WrittenUnderAGuard",
     kSafety,
     "reads buffer 'e', of whose 8 elements only 7 have been written",
     {{"store e[i], %5", "store e[i], %5 if 0 <= i < 7"}}},
    {"StagingNotLoaded",
     kSafety,
     "'m_0', which nothing has written",
     {{"mask m_0", ""}, {"mask m_0", ""}}},
    {"InitTwice", kConsistency, "initialised twice", {{"b   = zeros", "w   = zeros"}}},
    {"InitOfArena", kSafety, "lies in an arena", {{"b   = zeros", "p = zeros b = zeros"}}},
    {"InitImpossible",
     kConsistency,
     "impossible parameters",
     {{"normal(0.0, 0.5)", "normal(0.0, -0.5)"}}},
    // launches
    {"ArgumentType", kSafety, "holds i32, not f32", {{"n   : f32 []", "n   : i32 []"}}},
    {"ArgumentExtent",
     kSafety,
     "has the extents [8], not [4]",
     {{"launch predict(x_0, w, b -> p)", "launch predict(x_0, m_0, b -> p)"}}},
    {"ArgumentAliases",
     kSafety,
     "one of the two is written",
     {{"launch error(p, y_0, m_0 -> e)", "launch error(e, y_0, m_0 -> e)"}}},
    {"KernelOutOfBounds", kSafety, "", {{"%0 = load x[4*i + j]", "%0 = load x[4*i + j + 1]"}}},
    {"KernelUnused",
     kLiveness,
     "kernel 'spare' is never launched",
     {{"kernel predict",
       "kernel spare(a: in f32 [1], b: out f32 [1]) {\n%0 = load a[0]\nstore b[0], %0\n}\n"
       "kernel predict"}}},
    {"LaunchOnLoader",
     kConsistency,
     "no compute stream",
     {{"compute_0 : compute on", "compute_0 : loader on"}}},
    {"LoadOnCompute",
     kConsistency,
     "no loader stream",
     {{"loader    : loader  on", "loader    : compute on"}}},
    // data
    {"LoadOfUnknownField", kSafety, "has no field 'z'", {{"{ x -> x_0", "{ z -> x_0"}}},
    {"LoadIntoWrongSize",
     kSafety,
     "field 'x' of a batch is 32 elements",
     {{"{ x -> x_0, y -> y_0 }", "{ x -> y_0, y -> x_0 }"}}},
    {"LoadTwiceIntoOne", kSafety, "written twice by one load", {{"mask m_0", "mask y_0"}}},
    {"BatchDiffers",
     kSafety,
     "of a batch is",
     {{"epoch_shuffle(batch: 8", "epoch_shuffle(batch: 4"}}},
    // metrics and checkpoints
    {"MetricUnknown", kConsistency, "reads 'cubes'", {{"= squares / rows", "= cubes / rows"}}},
    {"MetricOfOtherSplit",
     kConsistency,
     "no report of split 'dev'",
     {{"loss(test)  = squares", "loss(dev)  = squares"}}},
    {"NeverPublished",
     kLiveness,
     "split 'train' is never published",
     {{"    publish train", "    publish test"}}},
    {"ReportOfVector", kSafety, "is not one f32", {{"{ squares: l, rows", "{ squares: e, rows"}}},
    {"CheckpointOfArena", kConsistency, "does not persist", {{"    w, b\n", "    w, b, p\n"}}},
    {"CheckpointTwice", kConsistency, "kept twice", {{"    v_w, v_b\n", "    v_w, w\n"}}},
    // tokens
    {"WaitNeverSignalled",
     kLiveness,
     "'ready_0' is waited for and never signalled",
     {{"    signal ready_0\n", ""}, {"    signal ready_0\n", ""}}},
    {"SignalNeverWaited",
     kLiveness,
     "never waited for",
     {{"    wait ready_0\n", ""}, {"    wait ready_0\n", ""}}},
    {"TokenUnused",
     kLiveness,
     "neither waited for nor signalled",
     {{"    free_0  : 1", "    spare : 1\n    free_0  : 1"}}},
    {"TwoWaiters",
     kSafety,
     "more than one stream",
     {{"    wait ready_0\n    launch predict(x_0, w, b -> p)",
       "    wait free_0\n    launch predict(x_0, w, b -> p)"}}},
    {"DeadlockAtOnce", kLiveness, "waits for ever", {{"free_0  : 1", "free_0  : 0"}}},
    {"DeadlockLater", kLiveness, "waits for ever", {{"    signal free_1\n", ""}}},
    {"Unbalanced",
     kLiveness,
     "do not balance",
     {{"    signal free_1\n    report test",
       "    signal free_1\n    signal free_1\n    report test"}}},
    {"RaceOnStaging",
     kSafety,
     "may still",
     {{"    wait free_0\n    load train", "    load train"}}},
    {"RaceBeforeReady", kSafety, "may still", {{"ready_0 : 0", "ready_0 : 1"}}},
    {"TooFewStagingSets",
     kResource,
     "2 batches of sampler 'train' in flight",
     {{"{ x -> x_1, y -> y_1 } mask m_1", "{ x -> x_0, y -> y_0 } mask m_0"}}},
    // control
    {"StoreToReadOnly",
     kSafety,
     "which is read-only",
     {{"store.8 cursor[step]", "store.8 limits[steps]"}}},
    {"OffsetOutside",
     kSafety,
     "lie outside region 'limits'",
     {{"load.8 limits[steps]", "load.8 limits[40]"}}},
    {"OffsetUnaligned",
     kSafety,
     "is not a multiple of 8",
     {{"load.8 limits[steps]", "load.8 limits[4]"}}},
    {"WidthOdd", kSafety, "an access of 3 bytes", {{"load.8 limits[steps]", "load.3 limits[0]"}}},
    {"AssignedTwice",
     kSafety,
     "%10 is assigned twice",
     {{"%9 = cmp.eq", "%10 = cmp.eq"}, {"arith.or %9,", "arith.or %10,"}}},
    {"UsedUnassigned",
     kSafety,
     "is not assigned on every path",
     {{"%12 = arith.or %9, %11", "%12 = arith.or %9, %25"}}},
    {"NotDominated",
     kSafety,
     "is not assigned on every path",
     {{"%77 = cmp.lt %76, %75", "%77 = cmp.lt %1, %75"}}},
    {"BlockWithoutEnd", kLiveness, "does not end in", {{"        jump after_epoch\n", ""}}},
    {"BlockGoesOn",
     kLiveness,
     "goes on after its end",
     {{"        terminate\n", "        terminate\n        terminate\n"}}},
    {"BlockUnreached",
     kLiveness,
     "is never reached",
     {{"    block leave {", "    block lost {\n        terminate\n    }\n    block leave {"}}},
    {"NoWayOut",
     kLiveness,
     "no path leads to terminate",
     {{"    block finish {\n        terminate", "    block finish {\n        jump finish"}}},
    {"LoopWithoutPush",
     kLiveness,
     "without a push or a pop",
     {{"branch %0 ? eval_poll_1 : resume", "branch %0 ? resume : entry"}}},
    {"PushToCompletion",
     kSafety,
     "no queue to push to",
     {{"queue_push loader_q, %3", "queue_push compute_0_done, %3"}}},
    {"PushToWrongStream",
     kSafety,
     "is pushed to a queue of stream",
     {{"queue_push loader_q, %3", "queue_push compute_0_q, %3"}}},
    {"PushOfNothing",
     kSafety,
     "names no sequence",
     {{"queue_push loader_q, %3", "queue_push loader_q, %1"}}},
    {"PopFromQueue",
     kSafety,
     "no queue to pop from",
     {{"queue_pop compute_0_done", "queue_pop compute_0_q"}}},
    {"PopForEver", kLiveness, "waits for ever", {{"    complete\n", ""}}},
    {"CompletionUnheard",
     kLiveness,
     "no queue comes from",
     {{"    publish train\n", "    publish train\n    complete\n"},
      {"@publish_test", "@publish_train"},
      {"queue_push compute_0_q, @publish_test", "queue_push compute_0_q, @publish_train"}}},
    {"SequenceUnused",
     kLiveness,
     "'spare' is pushed by no control unit",
     {{"sequence save on", "sequence spare on compute_0 {\npublish test\n}\nsequence save on"}}},
    {"SignalsWritable",
     kConsistency,
     "belongs to the host",
     {{"region signals : ro 8", "region signals : rw 8"}}},
    {"TwoQueuesToOneStream",
     kConsistency,
     "second queue",
     {{"queue loader_q : 4 -> loader",
       "queue loader_q : 4 -> loader\n    queue l2 : 4 -> loader"}}},
    {"IgnoresStop",
     kLiveness,
     "goes on long after a stop",
     {{"steps: 15", "steps: 4000000000"},
      {"branch %13 ? stop : step_1", "branch %13 ? step_1 : step_1"},
      {"branch %26 ? stop : step_0", "branch %26 ? step_0 : step_0"},
      {"branch %48 ? stop : eval_1", "branch %48 ? eval_1 : eval_1"},
      {"branch %56 ? stop : eval_0", "branch %56 ? eval_0 : eval_0"},
      {"branch %74 ? finish : step_0", "branch %74 ? step_0 : step_0"},
      {"branch %78 ? stop : step_0", "branch %78 ? step_0 : step_0"},
      {"jump finish", "jump stop"}}},
};

INSTANTIATE_TEST_SUITE_P(All, PlanMutations, ::testing::ValuesIn(kMutations),
                         [](const auto& param_info) { return param_info.param.name; });

// What text cannot say: the parser would have refused it.
TEST(PlanVerify, CatchesIdsOutOfRange) {
  using Mutate = std::function<void(Plan&)>;
  const Mutate mutations[] = {
      [](Plan& p) { p.buffers[0].pool = 3; },
      [](Plan& p) { p.init[0].buffer = 100; },
      [](Plan& p) { p.samplers[0].source = 1; },
      [](Plan& p) { p.parameters[0] = 14; },
      [](Plan& p) { p.optimiser_state[0] = 99; },
      [](Plan& p) { p.sequences[0].stream = 2; },
      [](Plan& p) { p.sequences[0].commands[0].token = 4; },
      [](Plan& p) { p.sequences[0].commands[1].sampler = 2; },
      [](Plan& p) { p.sequences[0].commands[1].fields[0].second = 99; },
      [](Plan& p) { p.sequences[0].commands[1].mask[0] = 99; },
      [](Plan& p) { p.sequences[1].commands[1].kernel = 5; },
      [](Plan& p) { p.sequences[1].commands[1].args[0] = 99; },
      [](Plan& p) { p.sequences[1].commands[1].args.pop_back(); },
      [](Plan& p) { p.sequences[1].commands[7].values[0].second = 99; },
      [](Plan& p) { p.control[0].blocks[0].instructions[0].region = 99; },
      [](Plan& p) { p.control[0].blocks[0].instructions[1].target = 99; },
      [](Plan& p) { p.control[0].blocks[0].instructions[0].result = 1 << 30; },
      [](Plan& p) { p.control[0].blocks[1].instructions[2].b.value = 99; },
      [](Plan& p) { p.control[0].regions[3].stream = "elsewhere"; },
  };
  for (size_t i = 0; i < std::size(mutations); ++i) {
    Plan plan = Parse(LinearText());
    mutations[i](plan);
    SCOPED_TRACE(i);
    ExpectCaught(plan, nullptr, kSafety, "");
  }
}

TEST(PlanVerify, CatchesNamesThatTextCannotHold) {
  Plan plan = Parse(LinearText());
  plan.buffers[0].name = "w.0";
  ExpectCaught(plan, nullptr, kConsistency, "letters, digits and underscores");
  plan = Parse(LinearText());
  plan.name = "";
  ExpectCaught(plan, nullptr, kConsistency, "is not a name");
}

// Input made to be slow: refused by a bound, not by patience.
TEST(PlanVerify, BoundsItsOwnWork) {
  std::string buffers = "buffers {\n";
  for (int i = 0; i < 20000; ++i) {
    buffers += "many_" + std::to_string(i) + " : f32 [1] in scratch at 0 size 4 live 0..1\n";
  }
  std::string blocks = "terminate\n    }\n";
  for (int i = 0; i < 20000; ++i) {
    blocks += "block many_" + std::to_string(i) + " { jump many_" + std::to_string(i / 2) + " }\n";
  }
  blocks += "block last { terminate";
  const std::string text = LinearText();
  ExpectCaught(Parse(Replace(text, "parameters {", buffers + "}\nparameters {")), nullptr,
               kResource, "pairs of buffers share bytes");
  ExpectCaught(Parse(Replace(text, "terminate", blocks)), nullptr, kResource, "blocks");
  ExpectCaught(Parse(Replace(text, "free_0  : 1", "free_0  : 2000000000")), nullptr, kResource,
               "begins with more than");
}

TEST(PlanVerify, RejectsAnEmptyPlan) { ExpectCaught(Plan{}, nullptr, kConsistency, "name"); }

}  // namespace
}  // namespace l3c::l0
