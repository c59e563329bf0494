// Each thing that the machine reports, by a text that does just that.
#include "tests/backends/ptx/ptx_machine.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace l3c {
namespace {

// 64 threads; x has 64 words of input, y 64 of output, both at their thread's place in %rd3 and
// %rd4. %r1 is the thread, %rd5 and %rd6 the buffers.
std::string Program(const std::string& body) {
  return R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry test(.param .u64 x, .param .u64 y)
.reqntid 64, 1, 1
{
    .reg .pred %p<4>;
    .reg .b32 %r<10>;
    .reg .b64 %rd<10>;
    .shared .align 16 .b8 words[256];
    ld.param.u64 %rd5, [x];
    ld.param.u64 %rd6, [y];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd5, %rd2;
    add.s64 %rd4, %rd6, %rd2;
    mov.u32 %r2, words;
    mad.lo.u32 %r3, %r1, 4, %r2;
)" + body +
         "    ret;\n}\n";
}

std::string FaultOf(const std::string& body, int64_t grid = 1) {
  std::vector<uint32_t> x(64, 7);
  std::vector<uint32_t> y(64);
  const testing::PtxModule module = testing::ParsePtx(Program(body));
  const testing::PtxBuffer buffers[] = {{reinterpret_cast<std::byte*>(x.data()), 256, true},
                                        {reinterpret_cast<std::byte*>(y.data()), 256, false}};
  testing::PtxLimits limits;
  limits.steps = 100000;
  return RunPtx(module, buffers, grid, limits).value_or("");
}

void ExpectFault(const std::string& body, const std::string& expected, int64_t grid = 1) {
  const std::string fault = FaultOf(body, grid);
  EXPECT_NE(fault.find(expected), std::string::npos) << body << "\nsays: " << fault;
}

TEST(PtxMachine, RunsWhatIsInOrder) {
  EXPECT_EQ(FaultOf("ld.global.b32 %r4, [%rd3]; st.global.b32 [%rd4], %r4;"), "");
  // Each reads what its neighbour has written before the barrier.
  EXPECT_EQ(FaultOf("st.shared.b32 [%r3], %r1; bar.sync 0; xor.b32 %r5, %r3, 4;"
                    "ld.shared.b32 %r6, [%r5]; st.global.b32 [%rd4], %r6;"),
            "");
}

TEST(PtxMachine, ReportsRaces) {
  ExpectFault("st.shared.b32 [%r3], %r1; xor.b32 %r5, %r3, 4; ld.shared.b32 %r6, [%r5];",
              "nothing has written");
  ExpectFault(
      "st.shared.b32 [%r3], %r1; bar.sync 0; ld.shared.b32 %r6, [words];"
      "st.shared.b32 [%r3], %r6;",
      "a race");
  ExpectFault("st.global.b32 [%rd6], %r1;", "and so does thread 0 of block 0");
  ExpectFault("ld.global.b32 %r4, [%rd5]; st.global.b32 [%rd3], %r4;", "a race");
  // Nothing orders blocks.
  ExpectFault("st.global.b32 [%rd4], %r1;", "and so does thread 0 of block 0", 2);
}

TEST(PtxMachine, ReportsReadsOfNothing) {
  ExpectFault("add.s32 %r4, %r5, %r5;", "reads register %r5, which nothing has written");
  ExpectFault("ld.shared.b32 %r4, [%r3];", "reads byte 0 of shared memory, which nothing");
  ExpectFault("ld.global.b32 %r4, [%rd4];", "reads byte 0 of y, which nothing has written");
}

TEST(PtxMachine, ReportsAccessesThatDoNotFit) {
  ExpectFault("ld.global.b32 %r4, [%rd3+4];", "thread 63 of block 0");
  ExpectFault("ld.global.b32 %r4, [%rd3+4];", "out of bounds: byte 256 of the 256 of x");
  ExpectFault("ld.global.b32 %r4, [%rd5+-4];", "out of bounds");
  ExpectFault("st.shared.b32 [%r3+253], %r1;", "a misaligned access of 4 bytes");
  ExpectFault("st.shared.b32 [%r3+256], %r1;", "out of bounds");
  ExpectFault("ld.global.v2.b32 {%r4, %r5}, [%rd5+4];", "a misaligned access of 8 bytes");
}

TEST(PtxMachine, ReportsThreadsThatMissOneAnother) {
  ExpectFault("setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 0;",
              "waits at a barrier that not all threads of the block reach");
  ExpectFault("setp.lt.u32 %p1, %r1, 7; @%p1 shfl.sync.bfly.b32 %r4, %r1, 1, 31, -1;",
              "waits at a shuffle that not all its members reach");
  ExpectFault("setp.lt.u32 %p1, %r1, 3; @%p1 shfl.sync.bfly.b32 %r4, %r1, 1, 31, 7;",
              "reads from a lane that is no member");
  ExpectFault("$L: bra $L;", "has not ended");
}

TEST(PtxMachine, KnowsWhatItDoesNotKnow) {
  ExpectFault("brev.b32 %r4, %r1;", "not known");
  ExpectFault("mov.u32 %r4, 0; div.u32 %r5, %r1, %r4;", "not defined");
  EXPECT_THROW(testing::ParsePtx(".version 7.0\n.func f() {}"), std::runtime_error);
  EXPECT_THROW(testing::ParsePtx(Program("mov.u32 %q1, 0;")), std::runtime_error);
  EXPECT_THROW(testing::ParsePtx(Program("bra $nowhere;")), std::runtime_error);
}

}  // namespace
}  // namespace l3c
