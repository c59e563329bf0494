// Code of a kernel that is given as IR: what is taken gives the bits of the UOps, what may not be
// is refused with the reason.
#include "backends/llvm/own_ir.h"

#include <gtest/gtest.h>

#include "backends/elf/object_linker.h"
#include "backends/llvm/kernel_compiler.h"
#include "tests/backends/llvm/kernel_runner.h"

namespace l3c {
namespace {

constexpr char kUops[] =
    R"(kernel wave(x: in f32 [40], y: out f32 [40]) {
    axis i : grid 40 block 16
    %0 = load x[i]
    %1 = neg %0
    store y[i], %1
})";

constexpr char kSignature[] =
    "@wave_signature = constant [32 x i8] c\"(in f32 [40], out f32 [40]) exact\\00\"\n";

// y = -x by way of a copy in memory, in 16-element blocks.
constexpr char kBody[] = R"(
define void @wave(ptr %buffers, i64 %first, i64 %last) #0 {
entry:
  %x = load ptr, ptr %buffers
  %y_at = getelementptr ptr, ptr %buffers, i64 1
  %y = load ptr, ptr %y_at
  %begin = shl i64 %first, 4
  %wide_end = shl i64 %last, 4
  %end = call i64 @llvm.smin.i64(i64 %wide_end, i64 40)
  %count = sub i64 %end, %begin
  %size = shl i64 %count, 2
  %from = getelementptr float, ptr %x, i64 %begin
  %to = getelementptr float, ptr %y, i64 %begin
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %at = getelementptr float, ptr %y, i64 %i
  %value = load float, ptr %at
  %negative = call float @turned(float %value)
  store float %negative, ptr %at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
define internal float @turned(float %v) {
  %r = fneg float %v
  ret float %r
}
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
attributes #0 = { "target-cpu"="skylake-avx512" "target-features"="+avx512f" uwtable }
)";

std::string Text() {
  std::string text = kSignature;
  const std::string words = "(in f32 [40], out f32 [40]) exact";
  text.replace(text.find("32 x"), 2, std::to_string(words.size() + 1));
  return text + kBody;
}

l0::KernelCode CodeOf(std::string text) {
  l0::KernelCode code;
  code.symbol = "wave";
  code.text = std::move(text);
  return code;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(OwnIr, GivesTheBitsOfTheUops) {
  const l0::Kernel kernel = testing::ParseOne(kUops);
  const auto how_near = llvm_backend::CheckIr(CodeOf(Text()), kernel);
  ASSERT_TRUE(how_near.ok()) << how_near.status();
  EXPECT_EQ(*how_near, l0::CodeClass::kExact);
  const auto jit = testing::NewJit();
  ASSERT_NE(jit, nullptr);
  const absl::Status status = jit->CompileIr(CodeOf(Text()), kernel);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_FALSE(jit->CompileIr(CodeOf(Text()), kernel).ok()) << "compiled twice";
  testing::Buffers wanted(kernel, 1);
  testing::Buffers got(kernel, 1);
  l0::Run(kernel, wanted.Pointers().data(), 0, 3);
  for (const int64_t block : {2, 0, 1}) {
    jit->Find("wave")(got.Pointers().data(), block, block + 1);
  }
  EXPECT_TRUE(wanted == got);
}

// For a CPU of less than this one, under another name, as a part of a program.
TEST(OwnIr, IsCompiledForTheCpuThatIsAskedFor) {
  const l0::Kernel kernel = testing::ParseOne(kUops);
  auto compiler = llvm_backend::KernelCompiler::Create({.text = true, .features = "+sse2"});
  ASSERT_TRUE(compiler.ok());
  const auto module = (*compiler)->CompileIr(CodeOf(Text()), kernel, "turned");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(module->assembly.find("zmm"), std::string::npos);
  EXPECT_EQ(module->ir.find("skylake"), std::string::npos);
  elf::ObjectLinker linker;
  ASSERT_TRUE(linker.Add(module->object).ok());
  EXPECT_TRUE(linker.OffsetOf("turned").ok());
  EXPECT_FALSE(linker.OffsetOf("wave").ok());
  EXPECT_TRUE(linker.Link(0, 1 << 20, {}).ok()) << "it calls nothing outside";
}

TEST(OwnIr, RefusesWhatItMayNotBe) {
  const l0::Kernel kernel = testing::ParseOne(kUops);
  const std::string good = Text();
  const auto refused = [&](const std::string& text, const std::string& words) {
    const auto found = llvm_backend::CheckIr(CodeOf(text), kernel);
    ASSERT_FALSE(found.ok()) << words;
    EXPECT_TRUE(absl::IsInvalidArgument(found.status()));
    EXPECT_NE(found.status().message().find(words), std::string::npos) << found.status();
  };
  refused("", "it defines no function 'wave'");
  refused(Replaced(good, "ret void", "ret vold"), "line 27, column 7: expected type");
  refused(Replaced(good, "[ %next, %loop ]", "[ %next, %done ]"), "LLVM finds: PHI node");
  refused(Replaced(good, "void @wave(", "void @waves("), "(it has waves, turned)");
  refused(Replaced(good, "i64 %last)", "i64 %last, ptr %more_of)"), "is void (ptr, i64, i64, ptr)");
  refused(Replaced(good, "wave_signature", "signature"), "has no constant 'wave_signature'");
  refused(
      Replaced(good, "(in f32 [40]", "(in f64 [40]"),
      "its signature is '(in f64 [40], out f32 [40]) exact'; kernel 'wave' is declared '(in f32 "
      "[40], out f32 [40])'");
  refused(Replaced(good, "declare i64", "declare void @exit(i32)\ndeclare i64"),
          "it declares 'exit'");
  refused(good + "@count = global i64 0\n", "'count' can be written");
  refused(good + "@at = constant ptr @wave\n", "'at' holds an address");
  refused(good + "@far = external constant i64\n", "it refers to 'far'");
  refused(good + "module asm \"nop\"\n", "it has inline assembly");
  refused(Replaced(good, "br label %loop", "call void asm \"nop\", \"\"()\n  br label %loop"),
          "it has inline assembly");
  refused(Replaced(good, "br label %loop", "call void %x()\n  br label %loop"),
          "'wave' calls through a pointer");
  refused(Replaced(good, "declare i64", "declare void @llvm.x86.sse2.pause()\ndeclare i64"),
          "which is one target's");
  refused("target triple = \"aarch64-linux-gnu\"\n" + good, "not for x86-64");
}

// What an intrinsic becomes depends on the CPU; it is found in the object.
TEST(OwnIr, RefusesAnIntrinsicThatBecomesACall) {
  const l0::Kernel kernel = testing::ParseOne(kUops);
  const std::string text =
      Replaced(Replaced(Text(), "%r = fneg float %v", "%r = call float @llvm.exp.f32(float %v)"),
               "declare i64", "declare float @llvm.exp.f32(float)\ndeclare i64");
  auto compiler = llvm_backend::KernelCompiler::Create({});
  ASSERT_TRUE(compiler.ok());
  const auto module = (*compiler)->CompileIr(CodeOf(text), kernel, "wave");
  ASSERT_FALSE(module.ok());
  EXPECT_NE(module.status().message().find("it needs 'expf'"), std::string::npos)
      << module.status();
}

}  // namespace
}  // namespace l3c
