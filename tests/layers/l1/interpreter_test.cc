// The L1 interpreter: state, windows, messages; and the first losses of the MNIST method against
// the figures that bench/peer_scripts/mnist_reference.py recorded from JAX.
#include <zlib.h>

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "layers/l1/init.h"
#include "layers/l1/interpreter.h"
#include "layers/tensor/philox.h"
#include "nlohmann/json.hpp"
#include "tests/layers/l1/fixtures.h"

namespace l3c::l1 {
namespace {

using tensor::Array;
using tensor::DType;

TEST(L1InterpreterTest, AMessageSeesTheStateAsItFoundIt) {
  const auto program = ParseText(
      "system s {\n"
      "    node ram_0 { kind: memory, capacity: 1GB }\n"
      "    node cpu_0 { kind: compute, isa: x86_64 }\n"
      "    edges { ram_0 <-> cpu_0 : bandwidth 1GB/s }\n"
      "}\n"
      "actor pair on cpu_0 {\n"
      "    state {\n"
      "        a : scalar(f32), init: constant(1.0)\n"
      "        b : scalar(f32), init: constant(2.0)\n"
      "    }\n"
      "    window both : (a, b) readers(sum)\n"
      "    on Swap(by: scalar(f32)) {\n"
      "        let b_next = tensor_add(a, by)\n"
      "        a = b\n"
      "        b = b_next\n"
      "    }\n"
      "}\n"
      "tensor_graph sum on cpu_0 {\n"
      "    reads: pair.both\n"
      "    fn compute(x: scalar(f32)) -> (by) { return (tensor_mul(x, tensor_add(a, b))) }\n"
      "}\n"
      "pipeline p { sum -> pair.Swap }\n"
      "schedule { pipelines: [p] actors: [pair] pipeline_depth: 1 }\n");
  ASSERT_TRUE(program);
  Interpreter interpreter(*program, 0);
  const auto results =
      interpreter.Run(program->pipelines[0], {{"x", Array::Floats(DType::kF32, {}, {10.0})}});
  EXPECT_EQ(results.at("by").floats[0], 30);
  EXPECT_EQ(interpreter.State("pair", "a").floats[0], 2);
  EXPECT_EQ(interpreter.State("pair", "b").floats[0], 31);
  EXPECT_THROW(interpreter.Run(program->pipelines[0], {}), tensor::ShapeError);
}

TEST(L1InitTest, ValuesDependOnNamesAndSeedAlone) {
  // 64-bit FNV-1a of ".": offset basis and prime as published.
  EXPECT_EQ(StateKey("", ""), (0xcbf29ce484222325u ^ uint64_t{'.'}) * 0x100000001b3u);
  EXPECT_NE(StateKey("m", "w"), StateKey("m", "v"));
  StateField field;
  field.name = "w";
  field.shape = {200, 50};
  field.init = InitKind::kKaiming;
  const std::vector<double> values = InitialValues(field, "m", 1);
  EXPECT_EQ(values, InitialValues(field, "m", 1));
  EXPECT_NE(values, InitialValues(field, "m", 2));
  double sum = 0, squares = 0;
  for (double v : values) {
    sum += v;
    squares += v * v;
  }
  EXPECT_NEAR(sum / 1e4, 0, 0.005);
  EXPECT_NEAR(std::sqrt(squares / 1e4), std::sqrt(2.0 / 200), 0.003);
  field.init = InitKind::kUniform;
  field.a = 0.5;
  for (double v : InitialValues(field, "m", 1)) EXPECT_LE(std::abs(v), 0.5);
}

std::vector<uint8_t> ReadIdx(const std::string& name, size_t header) {
  const std::string path = std::string(L3C_SOURCE_DIR) + "/data/mnist/" + name;
  gzFile file = gzopen(path.c_str(), "rb");
  EXPECT_NE(file, nullptr) << path;
  std::vector<uint8_t> bytes(60000 * 784 + header);
  const int count = gzread(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  EXPECT_GT(count, 0);
  bytes.resize(static_cast<size_t>(std::max(count, 0)));
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header));
  return bytes;
}

struct Mnist {
  std::vector<uint8_t> images = ReadIdx("train-images-idx3-ubyte.gz", 16);
  std::vector<uint8_t> labels = ReadIdx("train-labels-idx1-ubyte.gz", 8);
  std::vector<uint32_t> order = tensor::ShuffledIndices(60000, 0, 0);

  std::map<std::string, Array> Batch(size_t number) const {
    Array x = Array::Zeros(DType::kF32, {128, 28, 28});
    Array y = Array::Zeros(DType::kU8, {128, 1});
    for (size_t row = 0; row < 128; ++row) {
      const size_t source = order[number * 128 + row];
      for (size_t i = 0; i < 784; ++i) {
        x.floats[row * 784 + i] =
            static_cast<double>(static_cast<float>(images[source * 784 + i]) * (1.0f / 255));
      }
      y.ints[row] = labels[source];
    }
    return {{"images", x},
            {"labels", y},
            {"mask", Array::Floats(DType::kF32, {128}, std::vector<double>(128, 1.0))}};
  }
};

class MnistLosses : public testing::TestWithParam<const char*> {};

TEST_P(MnistLosses, AgreeWithTheRecordedOnes) {
  const auto record = nlohmann::json::parse(ReadText("tests/e2e/fixtures/mnist_losses.json"));
  const Mnist mnist;
  for (size_t i = 0; i < record["first_rows"].size(); ++i) {
    ASSERT_EQ(mnist.order[i], record["first_rows"][i].get<uint32_t>());
  }

  std::string text = ReadText("tests/layers/l1/programs/mnist.l2");
  const std::string line = "update: schedule(warmup: 1000, decay: cosine, inner: adam(lr: 3e-4))";
  const size_t at = text.find(line);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, line.size(), std::string("update: ") + GetParam());
  const auto lowered = Lower(ParseL2(text), MnistOptions());
  ASSERT_TRUE(lowered.ok());
  const Program& program = lowered.best();
  Interpreter interpreter(program, program.schedule.seed);

  for (const auto& [name, sum] : record["initial_absolute_sums"].items()) {
    double ours = 0;
    for (double v : interpreter.State("model_state", name).floats) ours += std::abs(v);
    EXPECT_NEAR(ours, sum.get<double>(), 1e-6 * ours) << name;
  }
  const auto& losses = record["losses"][GetParam()];
  for (size_t step = 0; step < 4; ++step) {
    const auto results = interpreter.Run(*FindPipeline(program, "train"), mnist.Batch(step));
    const double rows = results.at("rows").floats[0];
    EXPECT_EQ(rows, 128);
    const double loss = results.at("loss_sum").floats[0] / rows;
    const double expected = losses[step].get<double>();
    EXPECT_NEAR(loss, expected, 1e-4 * expected) << "step " << step;
  }
  EXPECT_EQ(interpreter.State("model_state", "step").ints[0], 4);
}

INSTANTIATE_TEST_SUITE_P(Updates, MnistLosses,
                         testing::Values("schedule(warmup: 1000, decay: cosine, inner: adam(lr: "
                                         "3e-4))",
                                         "adam(lr: 3e-4)"),
                         [](const auto& p) { return p.index == 0 ? "WarmUp" : "Plain"; });

}  // namespace
}  // namespace l3c::l1
