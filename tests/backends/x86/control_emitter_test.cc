// Control units by our own emitter: as the interpreter runs them, in so many instructions.
#include "backends/x86/control_emitter.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>

#include "backends/elf/object_linker.h"
#include "backends/x86/register_allocation.h"
#include "gtest/gtest.h"
#include "layers/l0/control_build.h"
#include "tests/backends/x86/random_control.h"

namespace l3c::x86 {
namespace {

using l0::ControlEnd;
using l0::ControlInstruction;
using l0::ControlOp;
using l0::Operand;
using l0::RegionAccess;
using testing::RandomControl;
using testing::RunTraced;

constexpr size_t kNever = SIZE_MAX;

TEST(ControlEmitter, AgreesWithTheInterpreter) {
  int ends[4] = {};
  int spilled = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    const l0::ControlUnit unit = RandomControl(seed, seed % 3 == 0 ? 20 : 5);
    const ControlCode code = EmitControl(unit, "f", false);
    const LoadedControl loaded(code);
    ASSERT_NE(loaded.function(), nullptr);
    for (const size_t stop_after : {kNever, size_t{3}}) {
      const auto expected = RunTraced(unit, nullptr, stop_after);
      ASSERT_EQ(RunTraced(unit, loaded.function(), stop_after), expected) << "seed " << seed;
      ++ends[static_cast<size_t>(expected.outcome.end)];
    }
    spilled += code.slots > 0 ? 1 : 0;
  }
  // All ways to end were taken, and values went to the stack.
  EXPECT_GT(ends[static_cast<size_t>(ControlEnd::kTerminated)], 500);
  EXPECT_GT(ends[static_cast<size_t>(ControlEnd::kStopped)], 50);
  EXPECT_GT(ends[static_cast<size_t>(ControlEnd::kOutOfBounds)], 20);
  EXPECT_GT(spilled, 20);
}

// Without values on the stack, every operation is one to three instructions (a comparison together
// with the branch that alone reads it may share theirs, a jump to what follows is none).
TEST(ControlEmitter, TakesOneToThreeInstructions) {
  int units = 0;
  std::set<ControlOp> ops;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    const l0::ControlUnit unit = RandomControl(seed, 5);
    const ControlCode code = EmitControl(unit, "f", false);
    if (code.slots > 0) continue;
    ++units;
    for (size_t b = 0; b < unit.blocks.size(); ++b) {
      for (size_t i = 0; i < unit.blocks[b].instructions.size(); ++i) {
        const ControlInstruction& instruction = unit.blocks[b].instructions[i];
        const int count = code.instructions[b][i];
        const bool goes_on = (instruction.op == ControlOp::kJump && instruction.target == b + 1) ||
                             (instruction.op == ControlOp::kBranch && instruction.a.immediate);
        EXPECT_LE(count, 3) << "seed " << seed << " block " << b << " instruction " << i;
        if (!goes_on) {
          EXPECT_GE(count, 1) << "seed " << seed << " block " << b << " instruction " << i;
        }
        ops.insert(instruction.op);
      }
    }
  }
  EXPECT_GT(units, 500);
  EXPECT_EQ(ops.size(), 10u);
}

// `live` values made one after another, then all added up.
l0::ControlUnit Sum(int live) {
  l0::ControlUnit unit;
  unit.name = "sum";
  l0::Region region;
  region.name = "words";
  region.access = RegionAccess::kReadWrite;
  region.size = 8 * (live + 1);
  for (int i = 0; i < live; ++i) region.values.push_back(int64_t{1} << i);
  unit.regions = {region};
  auto& block = unit.blocks.emplace_back(l0::ControlBlock{"entry", {}, {}}).instructions;
  for (int i = 0; i < live; ++i) {
    block.push_back({.op = ControlOp::kLoad,
                     .result = static_cast<l0::Register>(i),
                     .region = 0,
                     .a = Operand::Imm(8 * i)});
  }
  l0::Register sum = 0;
  l0::Register next = static_cast<l0::Register>(live);
  for (int i = 1; i < live; ++i) {
    block.push_back({.op = ControlOp::kArith,
                     .result = next,
                     .arith = l0::ArithOp::kAdd,
                     .a = Operand::Reg(sum),
                     .b = Operand::Reg(static_cast<l0::Register>(i))});
    sum = next++;
  }
  block.push_back(
      {.op = ControlOp::kStore, .region = 0, .a = Operand::Imm(8 * live), .b = Operand::Reg(sum)});
  block.push_back({.op = ControlOp::kTerminate});
  unit.registers = next;
  return unit;
}

TEST(ControlEmitter, SpillsNothingAtFiveLiveValues) {
  for (int live = 1; live <= 20; ++live) {
    const l0::ControlUnit unit = Sum(live);
    const ControlCode code = EmitControl(unit, "f", false);
    EXPECT_EQ(code.slots > 0, live > 8) << live;
    const LoadedControl loaded(code);
    EXPECT_EQ(RunTraced(unit, loaded.function(), kNever), RunTraced(unit, nullptr, kNever)) << live;
  }
}

// The units that every plan has.
TEST(ControlEmitter, RunsTrainingWithoutSpills) {
  l0::Plan plan;
  plan.streams = {{"loader", l0::StreamKind::kLoader, "cpu_0", {}},
                  {"compute_0", l0::StreamKind::kCompute, "cpu_0", {}}};
  const auto add = [&plan](const char* name, l0::StreamId stream) {
    l0::Sequence sequence;
    sequence.name = name;
    sequence.stream = stream;
    plan.sequences.push_back(sequence);
    return static_cast<l0::SequenceId>(plan.sequences.size() - 1);
  };
  l0::PhaseControl phase;
  phase.steps = 47;
  phase.steps_per_epoch = 9;
  phase.eval_batches = 3;
  phase.eval_every = 1;
  phase.checkpoint_every = 2;
  phase.load = {add("load_0", 0), add("load_1", 0)};
  phase.train = {add("train_0", 1), add("train_1", 1)};
  phase.publish_train = add("publish_train", 1);
  phase.load_eval = {add("load_eval", 0)};
  phase.eval = {add("eval", 1)};
  phase.publish_test = add("publish_test", 1);
  const l0::SequenceId checkpoint = add("checkpoint", 1);
  plan.sequences[checkpoint].commands.resize(1);
  plan.sequences[checkpoint].commands[0].kind = l0::CommandKind::kComplete;
  const l0::ControlUnit unit = l0::BuildTrainingControl(plan, {{phase, phase}, checkpoint});
  const ControlCode code = EmitControl(unit, "train", false);
  EXPECT_EQ(code.slots, 0);
  EXPECT_EQ(AllocateRegisters(unit, 5).slots, 0);
  const LoadedControl loaded(code);
  for (size_t stop_after : {kNever, size_t{0}, size_t{20}, size_t{131}}) {
    const auto expected = RunTraced(unit, nullptr, stop_after);
    EXPECT_EQ(RunTraced(unit, loaded.function(), stop_after), expected);
    EXPECT_EQ(expected.outcome.end,
              stop_after == kNever ? ControlEnd::kTerminated : ControlEnd::kStopped);
  }
}

TEST(ControlEmitter, EndsLoopsThatTouchNoQueue) {
  l0::ControlUnit unit = Sum(2);
  // entry → turn, turn → turn or end; the word at 0 is never 0.
  unit.blocks[0].instructions.back() = {.op = ControlOp::kJump, .target = 1};
  unit.blocks.push_back({"turn", {}, {}});
  unit.blocks.push_back({"end", {}, {}});
  unit.blocks[1].instructions = {
      {.op = ControlOp::kLoad, .result = unit.registers, .region = 0, .a = Operand::Imm(0)},
      {.op = ControlOp::kBranch, .a = Operand::Reg(unit.registers), .target = 1, .otherwise = 2}};
  unit.blocks[2].instructions = {{.op = ControlOp::kTerminate}};
  ++unit.registers;
  EXPECT_EQ(l0::IdleLoopBlocks(unit), (std::vector<bool>{false, true, false}));
  const LoadedControl loaded(EmitControl(unit, "f", false));
  EXPECT_EQ(RunTraced(unit, loaded.function(), kNever).outcome.end, ControlEnd::kIdle);
  EXPECT_EQ(RunTraced(unit, nullptr, kNever).outcome.end, ControlEnd::kIdle);
}

// What `l3c emit --target asm` shows is what runs: assembled by another assembler, it does the
// same.
TEST(ControlEmitter, ListsWhatRuns) {
  if (std::system("as --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no assembler";
  const std::string base = ::testing::TempDir() + "l3c_control_listing";
  for (uint32_t seed = 1; seed < 12; ++seed) {
    const l0::ControlUnit unit = RandomControl(seed, seed % 2 == 0 ? 20 : 5);
    const ControlCode code = EmitControl(unit, "control.f", true);
    std::ofstream(base + ".s") << code.assembly;
    ASSERT_EQ(std::system(("as -o " + base + ".o " + base + ".s").c_str()), 0) << code.assembly;
    std::ifstream in(base + ".o", std::ios::binary);
    const std::vector<char> object{std::istreambuf_iterator<char>(in), {}};
    elf::ObjectLinker linker;
    const absl::Status added = linker.Add(object);
    ASSERT_TRUE(added.ok()) << added;
    ASSERT_EQ(*linker.OffsetOf("control.f"), 0u);
    const auto linked = linker.Link(0, 0, {});
    ASSERT_TRUE(linked.ok()) << linked.status();
    ControlCode assembled;
    for (const char byte : linked->code) assembled.bytes.push_back(static_cast<std::byte>(byte));
    const LoadedControl loaded(assembled);
    EXPECT_EQ(RunTraced(unit, loaded.function(), kNever), RunTraced(unit, nullptr, kNever)) << seed;
  }
  std::remove((base + ".s").c_str());
  std::remove((base + ".o").c_str());
}

}  // namespace
}  // namespace l3c::x86
