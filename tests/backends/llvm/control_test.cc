// Control units by LLVM: as the interpreter and our own emitter run them, and what knowing the
// regions is good for.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "backends/elf/object_linker.h"
#include "backends/llvm/kernel_compiler.h"
#include "backends/x86/control_emitter.h"
#include "gtest/gtest.h"
#include "tests/backends/x86/random_control.h"

namespace l3c {
namespace {

using l0::ControlOp;
using l0::Operand;
using llvm_backend::CompiledModule;
using llvm_backend::KernelCompiler;
using testing::RandomControl;
using testing::RunTraced;

// L3C_CONTROL_PROGRAMS: how many; the nightly preset has 1000.
uint32_t Programs() {
  const char* count = std::getenv("L3C_CONTROL_PROGRAMS");
  return count != nullptr ? static_cast<uint32_t>(std::atoi(count)) : 60;
}

x86::ControlCode Linked(const CompiledModule& module, const std::string& name) {
  elf::ObjectLinker linker;
  const absl::Status added = linker.Add(module.object);
  EXPECT_TRUE(added.ok()) << added;
  // Code and constants as one piece.
  const uint64_t constants = (linker.code_size() + 63) / 64 * 64;
  const auto linked = linker.Link(0, constants, {});
  EXPECT_TRUE(linked.ok()) << linked.status();
  EXPECT_EQ(*linker.OffsetOf(name), 0u) << "the entry comes first";
  x86::ControlCode code;
  if (!linked.ok()) return code;
  std::string bytes = linked->code;
  bytes.resize(constants, '\xcc');
  bytes += linked->constants;
  code.bytes.resize(bytes.size());
  std::memcpy(code.bytes.data(), bytes.data(), bytes.size());
  return code;
}

TEST(LlvmControl, AgreesWithTheInterpreterAndOurOwnEmitter) {
  auto compiler = KernelCompiler::Create({});
  ASSERT_TRUE(compiler.ok());
  for (uint32_t seed = 0; seed < Programs(); ++seed) {
    const l0::ControlUnit unit = RandomControl(seed, seed % 3 == 0 ? 20 : 5);
    const auto module = (*compiler)->CompileControl(unit, "f");
    ASSERT_TRUE(module.ok()) << module.status();
    const x86::LoadedControl theirs(Linked(*module, "f"));
    const x86::LoadedControl ours(x86::EmitControl(unit, "f", false));
    for (const size_t stop_after : {SIZE_MAX, size_t{3}}) {
      const auto expected = RunTraced(unit, nullptr, stop_after);
      ASSERT_EQ(RunTraced(unit, theirs.function(), stop_after), expected) << "seed " << seed;
      ASSERT_EQ(RunTraced(unit, ours.function(), stop_after), expected) << "seed " << seed;
    }
  }
}

// for n = limits[0] turns: total[0] += limits[8]. The stores to `total` cannot change `limits`.
l0::ControlUnit Loop() {
  l0::ControlUnit unit;
  unit.name = "loop";
  for (const char* name : {"limits", "total"}) {
    l0::Region region;
    region.name = name;
    region.access = l0::RegionAccess::kReadWrite;
    region.size = 16;
    region.values = {5, 7};
    unit.regions.push_back(region);
  }
  unit.blocks = {{"entry", {}, {}}, {"turn", {}, {}}, {"done", {}, {}}};
  unit.blocks[0].instructions = {{.op = ControlOp::kJump, .target = 1}};
  const auto load = [](l0::Register result, l0::RegionId region, int64_t offset) {
    return l0::ControlInstruction{
        .op = ControlOp::kLoad, .result = result, .region = region, .a = Operand::Imm(offset)};
  };
  unit.blocks[1].instructions = {
      load(0, 0, 8),
      load(1, 1, 0),
      {.op = ControlOp::kArith, .result = 2, .a = Operand::Reg(1), .b = Operand::Reg(0)},
      {.op = ControlOp::kStore, .region = 1, .a = Operand::Imm(0), .b = Operand::Reg(2)},
      {.op = ControlOp::kCmp,
       .result = 3,
       .cmp = l0::CmpOp::kLt,
       .a = Operand::Reg(2),
       .b = Operand::Imm(1000)},
      {.op = ControlOp::kBranch, .a = Operand::Reg(3), .target = 1, .otherwise = 2}};
  unit.blocks[2].instructions = {{.op = ControlOp::kTerminate}};
  unit.registers = 4;
  return unit;
}

// Whether the only load of limits[8] stands before the loop.
bool IsHoisted(const std::string& ir) {
  const size_t address = ir.find("ptr %limits, i64 8");
  EXPECT_NE(address, std::string::npos) << ir;
  // The address has a name; the load is of it.
  const size_t line = ir.rfind('\n', address) + 1;
  const std::string name = ir.substr(line + 2, ir.find(" =", line) - line - 2);
  const size_t load = ir.find("load i64, ptr " + name + ",");
  const size_t loop = ir.find("\nturn:");
  EXPECT_NE(load, std::string::npos) << ir;
  EXPECT_NE(loop, std::string::npos) << ir;
  EXPECT_EQ(ir.find("load i64, ptr " + name + ",", load + 1), std::string::npos) << ir;
  return load < loop;
}

TEST(LlvmControl, RegionsLetLoadsLeaveLoops) {
  auto compiler = KernelCompiler::Create({});
  ASSERT_TRUE(compiler.ok());
  const l0::ControlUnit unit = Loop();
  const auto with = (*compiler)->CompileControl(unit, "f", /*scopes=*/true);
  const auto without = (*compiler)->CompileControl(unit, "f", /*scopes=*/false);
  ASSERT_TRUE(with.ok() && without.ok());
  EXPECT_TRUE(IsHoisted(with->ir)) << with->ir;
  EXPECT_FALSE(IsHoisted(without->ir)) << without->ir;
  for (const auto* module : {&*with, &*without}) {
    const x86::LoadedControl loaded(Linked(*module, "f"));
    EXPECT_EQ(RunTraced(unit, loaded.function(), SIZE_MAX), RunTraced(unit, nullptr, SIZE_MAX));
  }
}

}  // namespace
}  // namespace l3c
