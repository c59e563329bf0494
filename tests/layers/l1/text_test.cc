// L1 as text: what is accepted, how it is printed, that printing loses nothing, and that no input
// does more harm than an error.
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/layers/l1/fixtures.h"

namespace l3c::l1 {
namespace {

std::string LinearText() { return ReadText("tests/layers/l1/programs/linear.l1"); }

TEST(L1TextTest, ACanonicalTextPrintsAsItIs) {
  for (const char* path :
       {"tests/layers/l1/programs/linear.l1", "tests/layers/l1/golden/mnist.l1"}) {
    const std::string text = ReadText(path);
    const auto program = ParseText(text);
    ASSERT_TRUE(program) << path;
    const std::string printed = PrintProgram(*program);
    const auto again = ParseText(printed);
    ASSERT_TRUE(again) << printed;
    EXPECT_EQ(PrintProgram(*again), printed);
    if (std::string(path).ends_with("mnist.l1")) {
      EXPECT_EQ(printed, text);
    }
  }
}

// The forms as the specification writes them: arguments without types, a comment, a scalar `let`,
// nested ops, declarations in another order.
TEST(L1TextTest, ReadsTheSpecificationsForms) {
  const auto program = ParseText(R"(
system single_gpu {
    node ssd_0 { kind: storage }
    node ram_0 { kind: memory, capacity: 32GB }   // RAM
    node cpu_0 { kind: compute, isa: x86_64, cores: 8 }
    edges {
        ssd_0 -> ram_0  : bandwidth 2GB/s    // one way
        ram_0 <-> cpu_0 : bandwidth 50GB/s   # both
    }
}
data points { x : tensor(f32, [784]) @ ssd_0, path: "points" }
actor model_state on cpu_0 {
    state {
        w : tensor(f32, [784, 256]), init: kaiming
        b : tensor(f32, [256]),      init: zeros
    }
    window weights : (w, b)
        readers(forward_backward)
    on GradUpdate(gw, gb) {
        let lr = 3e-4
        w = tensor_sub(w, tensor_scale(gw, lr))
        b = tensor_sub(b, tensor_scale(gb, lr))
    }
}
pipeline train { load_data -> forward_backward -> model_state.GradUpdate }
tensor_graph forward_backward on cpu_0 {
    reads: model_state.weights
    fn compute(x) -> (loss, gw, gb) {
        let h = tensor_add(tensor_matmul(x, w), tensor_broadcast(b, [128, 256]))
        let g = tensor_scale(h, 2)
        return (
            tensor_reduce_mean(tensor_mul(h, h)),
            tensor_matmul(tensor_transpose(x), g),
            tensor_reduce_sum(g, axis: 0),
        )
    }
}
stage load_data on cpu_0 {
    sample: epoch_shuffle(points, split: train, batch: 128)
    fn process() -> forward(forward_backward, x) {
        let x = alloc(ram_0, tensor(f32, [128, 784]))
        read(x, points.x)
        forward(forward_backward, x)
    }
}
schedule {
    pipelines: [train]
    actors: [model_state]
    pipeline_depth: 2
}
)");
  ASSERT_TRUE(program);
  const Handler& handler = program->actors[0].handlers[0];
  EXPECT_EQ(handler.graph.node(*handler.graph.Find("gw")).shape, (tensor::Shape{784, 256}));
  EXPECT_TRUE(handler.graph.Find("w_next"));
  const std::string text = PrintProgram(*program);
  EXPECT_NE(text.find("on GradUpdate(gw: tensor(f32, [784, 256]), gb: tensor(f32, [256])) {"),
            std::string::npos);
  EXPECT_NE(text.find("        let lr = 3e-4\n"), std::string::npos);
  const auto again = ParseText(text);
  ASSERT_TRUE(again);
  EXPECT_EQ(PrintProgram(*again), text);
}

TEST(L1TextTest, EveryInitialValueIsPrinted) {
  std::string text = LinearText();
  const std::string from = "b    : tensor(f32, [3]),    init: zeros, param";
  for (const char* init : {"ones", "constant(0.5)", "normal(0.02)", "uniform(0.1)", "kaiming"}) {
    std::string changed = text;
    changed.replace(text.find(from), from.size(),
                    "b    : tensor(f32, [3]),    init: " + std::string(init));
    const auto program = ParseText(changed);
    ASSERT_TRUE(program);
    EXPECT_NE(PrintProgram(*program).find("init: " + std::string(init) + "\n"), std::string::npos);
  }
}

TEST(L1TextTest, ASystemAloneIsAFragment) {
  const System host = TestHost();
  const auto program = ParseText(PrintSystem(host));
  ASSERT_TRUE(program);
  EXPECT_TRUE(IsSystemFragment(*program));
  EXPECT_FALSE(IsSystemFragment(*ParseText(LinearText())));
  std::string errors;
  EXPECT_FALSE(ParseText("# l3c l1 v1\n", &errors));
  EXPECT_EQ(
      errors,
      "test.l1: error[safety]: there is no system: an L1 file says what hardware it is for\n");
}

TEST(L1TextTest, AnotherLayersFileIsRefused) {
  std::string errors;
  EXPECT_FALSE(ParseText("# l3c l0 v1\n" + LinearText(), &errors));
  EXPECT_NE(errors.find("this is an l0 file, not an l1 file"), std::string::npos);
}

TEST(L1TextTest, HostileInputEndsInAnError) {
  std::string errors;
  std::vector<std::string> inputs = {
      std::string(10'000, '['),
      std::string(10'000, '{'),
      "system s {" + std::string(10'000, '('),
      std::string(10 << 20, 'x'),
      std::string("system\0s", 8),
      "system s { node",
      "tensor_graph",
      "schedule { phases [ main(",
  };
  std::string nested = "tensor_neg(";
  for (int i = 0; i < 12; ++i) nested += nested;  // 4096 deep, never closed
  std::string text = LinearText();
  inputs.push_back(text.replace(text.find("tensor_matmul(x, w)"), 19, nested));
  text = LinearText();
  std::string closed = "x";
  for (int i = 0; i < 10'000; ++i) closed = "tensor_neg(" + closed + ")";
  inputs.push_back(text.replace(text.find("tensor_matmul(x, w)"), 19, closed));
  text = LinearText();
  inputs.push_back(text.replace(text.find("[4, 3]"), 6, "[999999999999, 999999999999]"));
  for (const std::string& input : inputs) {
    EXPECT_FALSE(ParseText(input, &errors)) << input.substr(0, 80);
    EXPECT_NE(errors, "");
  }
}

// Damaged programs: whatever is still accepted prints to a text that is accepted and prints the
// same; the rest is refused with an error.
TEST(L1TextTest, DamagedProgramsAreRefusedOrUnderstood) {
  const std::string texts[] = {LinearText(), ReadText("tests/layers/l1/programs/hand.l1"),
                               ReadText("tests/layers/l1/programs/two_devices.l1")};
  std::mt19937 random(1);
  const char* kPieces[] = {"}",    "{",     "(", ")",  ",",       " x ",     " 0 ",    " -1 ",
                           "let ", "1e999", ":", "[]", " if x {", " else {", "Drop(x)"};
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = texts[round % 3];
    const size_t at = random() % damaged.size();
    const size_t length = random() % 12;
    switch (random() % 3) {
      case 0:
        damaged.erase(at, length);
        break;
      case 1:
        damaged.insert(at, kPieces[random() % std::size(kPieces)]);
        break;
      default:
        damaged.replace(at, length, kPieces[random() % std::size(kPieces)]);
        break;
    }
    std::string errors;
    const auto program = ParseText(damaged, &errors);
    if (!program) {
      EXPECT_NE(errors, "") << damaged;
      continue;
    }
    const std::string printed = PrintProgram(*program);
    std::string again_errors;
    const auto again = ParseText(printed, &again_errors);
    ASSERT_TRUE(again) << again_errors << printed;
    EXPECT_EQ(PrintProgram(*again), printed);
  }
}

}  // namespace
}  // namespace l3c::l1
