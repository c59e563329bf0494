// Programs written by hand: stages with conditions, decoding, state that stages read, messages that
// stages send, pipelines that continue others. What they mean, by the interpreter, and as text.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "layers/l1/flow.h"
#include "layers/l1/interpreter.h"
#include "tests/layers/l1/fixtures.h"

namespace l3c::l1 {
namespace {

using tensor::Array;
using tensor::DType;

std::string HandText() { return ReadText("tests/layers/l1/programs/hand.l1"); }

std::string Edited(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(L1StageTest, ProgramsPrintToTextThatPrintsAlike) {
  for (const char* name : {"hand", "two_devices"}) {
    const auto program =
        ParseText(ReadText("tests/layers/l1/programs/" + std::string(name) + ".l1"));
    ASSERT_TRUE(program) << name;
    const std::string printed = PrintProgram(*program);
    const auto again = ParseText(printed);
    ASSERT_TRUE(again) << printed;
    EXPECT_EQ(PrintProgram(*again), printed);
  }
}

TEST(L1StageTest, AStageIsPrintedWithItsConditions) {
  const std::string printed = PrintProgram(*ParseText(HandText()));
  for (const char* line :
       {"    reads: watch.level\n\n    fn process(",
        "        decode(x, raw, scale: 0.00392156862745098)\n",
        "        let third = tensor_mod(steps, tensor_const(3, i64))\n",
        "        if tensor_cmplt(tensor_const(1, i64), third) {\n            Drop(x)\n",
        "        } else {\n            if tensor_cmplt(tensor_reduce_sum(mask, axis: 0), least) "
        "{\n",
        "Drop(mask) | forward(slope, x, y, mask) {\n",
        "x: buf<ram_0> tensor(f32, [8, 6]), y: buf<ram_0> tensor(f32, [8, 1])"}) {
    EXPECT_NE(printed.find(line), std::string::npos) << line << "\n" << printed;
  }
}

// The same steps in plain arithmetic: batches whose number is 2 modulo 3 are dropped, and those
// with fewer than three rows.
TEST(L1StageTest, TheInterpreterTakesTheBranches) {
  const auto program = ParseText(HandText());
  ASSERT_TRUE(program);
  Interpreter interpreter(*program, 7, tensor::Precision::kOracle);
  std::vector<double> w = interpreter.State("model", "w").floats;
  double b = 0;
  const auto pixel = [](int step, int row, int i) { return (37 * step + 11 * row + 5 * i) % 256; };
  int taken = 0;
  for (int step = 0; step < 9; ++step) {
    const int rows = step == 4 ? 2 : 8;
    std::map<std::string, Array> batch = {{"x", Array::Zeros(DType::kU8, {8, 6})},
                                          {"y", Array::Zeros(DType::kF32, {8, 1})},
                                          {"valid", Array::Zeros(DType::kF32, {8})}};
    for (int r = 0; r < rows; ++r) {
      for (int i = 0; i < 6; ++i) batch.at("x").ints[r * 6 + i] = pixel(step, r, i);
      batch.at("y").floats[r] = 0.25 * r - 1;
      batch.at("valid").floats[r] = 1;
    }
    const auto results = interpreter.RunRows(program->pipelines[0], batch);
    const bool runs = step % 3 != 2 && rows >= 3;
    EXPECT_EQ(results.contains("loss"), runs) << step;
    if (!runs) continue;
    ++taken;
    std::vector<double> dw(6);
    double db = 0;
    for (int r = 0; r < rows; ++r) {
      double gap = b - (0.25 * r - 1);
      for (int i = 0; i < 6; ++i) gap += w[i] * pixel(step, r, i) * 0.00392156862745098;
      for (int i = 0; i < 6; ++i) {
        dw[i] += 2 * gap / rows * pixel(step, r, i) * 0.00392156862745098;
      }
      db += 2 * gap / rows;
    }
    for (int i = 0; i < 6; ++i) w[i] -= 0.05 * dw[i];
    b -= 0.05 * db;
  }
  EXPECT_EQ(interpreter.State("watch", "steps").ints[0], 9);
  EXPECT_EQ(interpreter.State("watch", "taken").ints[0], taken);
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(interpreter.State("model", "w").floats[i], w[i], 1e-6);
  EXPECT_NEAR(interpreter.State("model", "b").floats[0], b, 1e-6);
}

// What the graph gives goes to the stage of the pipeline that continues, and from there to the
// actor; a schedule without phases trains for an epoch.
TEST(L1StageTest, APipelineContinuesAnother) {
  auto program = ParseText(ReadText("tests/layers/l1/programs/two_devices.l1"));
  ASSERT_TRUE(program);
  const ProgramIndex index(*program);
  std::string order;
  for (const Reference& link : Flows(*program, index).LinksOf(program->pipelines[0])) {
    order += link.name + " ";
  }
  EXPECT_EQ(order, "fetch carry both_ways give_back keeper.Change ");
  Interpreter interpreter(*program, 0);
  const std::vector<double> before = interpreter.State("keeper", "m").floats;
  const auto results = interpreter.RunRows(
      program->pipelines[0],
      {{"x", Array::Floats(DType::kF32, {16, 12}, std::vector<double>(192, 0.5))},
       {"y", Array::Floats(DType::kF32, {16, 5}, std::vector<double>(80, -1.0))}});
  EXPECT_NE(interpreter.State("keeper", "m").floats, before);
  EXPECT_NEAR(interpreter.State("keeper", "m").floats[0],
              before[0] - 3e-4 * results.at("gm").floats[0], 1e-7);
  AddDefaultPhases(*program);
  ASSERT_EQ(program->schedule.phases.size(), 1u);
  EXPECT_EQ(program->schedule.phases[0].pipeline, "learn");
  EXPECT_EQ(program->schedule.phases[0].epochs, 1);
}

// State that a window grants is copied into a buffer like any other.
TEST(L1StageTest, AStageCopiesState) {
  std::string text = Edited(HandText(), "        copy(all, mask)\n",
                            "        copy(all, mask)\n"
                            "        let mark = alloc(ram_0, scalar(f32))\n"
                            "        copy(mark, least)\n"
                            "        Drop(mark)\n");
  text = Edited(text, "-> forward(watch.Tick, all), ", "-> Drop(mark), forward(watch.Tick, all), ");
  EXPECT_TRUE(ParseText(text));
  std::string errors;
  EXPECT_FALSE(ParseText(Edited(text, "copy(mark, least)", "copy(mark, leest)"), &errors));
  EXPECT_NE(errors.find("unknown buffer 'leest'"), std::string::npos) << errors;
}

}  // namespace
}  // namespace l3c::l1
