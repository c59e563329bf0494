// Text that is huge, deep or absurd: an error that says where, or a program; in time that grows
// with the text. Sizes here are a tenth of what a file can hold; L3C_FULL=1 takes the whole.
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/layers/l1/fixtures.h"

namespace l3c::l1 {
namespace {

int Many() { return std::getenv("L3C_FULL") != nullptr ? 100'000 : 10'000; }

std::string Repeat(int count, const std::function<std::string(const std::string&)>& item) {
  std::string text;
  for (int i = 0; i < count; ++i) text += item(std::to_string(i));
  return text;
}

const char kSystem[] =
    "system s {\n node d { kind: storage }\n node r { kind: memory, capacity: 1GB }\n"
    " node c { kind: compute, isa: x86_64 }\n"
    " edges { d -> r : bandwidth 1GB/s r <-> c : bandwidth 1GB/s }\n}\n"
    "data e { x : tensor(f32, [1]) @ d, path: \"e\" }\n";

const char kHead[] =
    "stage load on c {\n sample: sequential(e, split: train, rows: 4, batch: 2)\n"
    " fn process() -> forward(s0, x) {\n  let x = alloc(r, tensor(f32, [2, 1]))\n"
    "  read(x, e.x)\n  forward(s0, x)\n }\n}\n";

std::string Errors(const std::string& text) {
  std::string errors;
  ParseText(text, &errors);
  return errors;
}

TEST(L1LimitsTest, MoreNodesThanASystemMayHave) {
  const auto node = [](const std::string& i) { return "node n" + i + " { kind: storage }\n"; };
  const std::string errors = Errors("system crowd {\n" + Repeat(4098, node) + "}\n");
  EXPECT_NE(errors.find("test.l1:4098:6: error[resource-bound]: a system has at most 4096 nodes"),
            std::string::npos)
      << errors;
}

TEST(L1LimitsTest, AsManyStagesAsAFileHolds) {
  const int many = Many();
  std::string text = kSystem + std::string(kHead);
  text += Repeat(many, [&](const std::string& i) {
    const std::string next = "s" + std::to_string(std::stoi(i) + 1);
    return "stage s" + i + " on c{fn process(x:buf<r>tensor(f32,[2,1]))->" +
           (std::stoi(i) + 1 < many ? "forward(" + next + ",x){forward(" + next + ",x)}}\n"
                                    : "Drop(x){Drop(x)}}\n");
  });
  if (text.size() > support::SourceFile::kMaxBytes) text.resize(support::SourceFile::kMaxBytes);
  const size_t last = text.rfind("stage ");
  const std::string complete = text.substr(0, last);
  // Cut anywhere, the last stage forwards to one that is not there.
  EXPECT_NE(Errors(complete + "schedule { pipelines: [] pipeline_depth: 1 }\n")
                .find("unknown forward target"),
            std::string::npos);
  std::string pipeline = "pipeline p { load";
  const int stages = many / 10;
  pipeline += Repeat(stages, [](const std::string& i) { return " -> s" + i; }) + " }\n";
  std::string chain = kSystem + std::string(kHead);
  chain += Repeat(stages, [&](const std::string& i) {
    const std::string next = "s" + std::to_string(std::stoi(i) + 1);
    return "stage s" + i + " on c { fn process(x: buf<r>) -> " +
           (std::stoi(i) + 1 < stages ? "forward(" + next + ", x) { forward(" + next + ", x) } }\n"
                                      : "Drop(x) { Drop(x) } }\n");
  });
  chain += pipeline;
  chain += "schedule { pipelines: [p] pipeline_depth: 1 phases [ m(pipeline: p, steps: 1) ] }\n";
  EXPECT_EQ(Errors(chain), "");
}

TEST(L1LimitsTest, LongBodies) {
  const int many = Many();
  // So many conditions one after the other have 2^many paths.
  std::string stage =
      kSystem +
      std::string("stage s0 on c {\n fn process(x: buf<r> tensor(f32, [2, 1])) -> Drop(x) {\n");
  stage += Repeat(many / 4, [](const std::string& i) {
    return "  let v" + i + " = tensor_cmplt(tensor_reduce_sum(x), " + i + ".0)\n  if v" + i +
           " {\n  }\n";
  });
  stage += "  Drop(x)\n }\n}\nschedule { pipelines: [] pipeline_depth: 1 }\n";
  EXPECT_EQ(Errors(stage), "");
  std::string graph = kSystem + std::string(
                                    "tensor_graph g on c {\n fn compute(v: scalar(f32)) -> (out) "
                                    "{\n  let v0 = tensor_neg(v)\n");
  graph += Repeat(many, [](const std::string& i) {
    return "  let v" + std::to_string(std::stoi(i) + 1) + " = tensor_neg(v" + i + ")\n";
  });
  graph += "  return (v" + std::to_string(many) +
           ")\n }\n}\nschedule { pipelines: [] pipeline_depth: 1 }\n";
  EXPECT_EQ(Errors(graph), "");
  // Every value dead.
  graph.replace(graph.rfind("return (v") + 7, std::string::npos,
                "(v)\n }\n}\nschedule { pipelines: [] pipeline_depth: 1 }\n");
  EXPECT_NE(Errors(graph).find("serves no output"), std::string::npos);
}

TEST(L1LimitsTest, ManyOfEverythingElse) {
  const int many = Many();
  std::string text = kSystem;
  text += Repeat(many / 2, [](const std::string& i) {
    return "data a" + i + " { x : scalar(f32) @ d, path: \"e\" }\n";
  });
  text += "actor m on c {\n state {\n";
  text += Repeat(many / 4,
                 [](const std::string& i) { return "  f" + i + " : scalar(f32), init: zeros\n"; });
  text += " }\n window w : (";
  text += Repeat(many / 4, [](const std::string& i) { return "f" + i + ", "; });
  text +=
      ") readers(g)\n}\ntensor_graph g on c {\n reads: m.w\n fn compute() -> (out) {\n"
      "  let a0 = tensor_neg(f0)\n";
  text += Repeat(many / 4 - 1, [](const std::string& i) {
    const std::string next = std::to_string(std::stoi(i) + 1);
    return "  let a" + next + " = tensor_add(a" + i + ", f" + next + ")\n";
  });
  text += "  return (a" + std::to_string(many / 4 - 1) + ")\n }\n}\n";
  text += Repeat(many / 2, [](const std::string& i) { return "pipeline p" + i + " { g }\n"; });
  text += "schedule { pipelines: [";
  text += Repeat(many / 2, [](const std::string& i) { return "p" + i + ", "; });
  text += "] actors: [m] pipeline_depth: 1 }\n";
  if (text.size() <= support::SourceFile::kMaxBytes) {
    EXPECT_EQ(Errors(text), "");
  }
}

TEST(L1LimitsTest, DeepNesting) {
  const auto nested = [](int depth) {
    std::string text =
        kSystem + std::string(
                      "stage s0 on c {\n fn process(x: buf<r> tensor(f32, [2, 1])) -> Drop(x) {\n"
                      "  let v = tensor_cmplt(tensor_reduce_sum(x), 1.0)\n");
    for (int i = 0; i < depth; ++i) text += "if v { ";
    for (int i = 0; i < depth; ++i) text += "}";
    return text + "\n  Drop(x)\n }\n}\nschedule { pipelines: [] pipeline_depth: 1 }\n";
  };
  EXPECT_EQ(Errors(nested(200)), "");
  for (int depth : {300, 10'000, 1'000'000}) {
    EXPECT_NE(Errors(nested(depth)).find("nested"), std::string::npos) << depth;
  }
}

TEST(L1LimitsTest, AbsurdNumbers) {
  const std::string text = ReadText("tests/layers/l1/programs/hand.l1");
  const std::pair<const char*, const char*> edits[] = {
      {"capacity: 4GB", "capacity: 99999999999GB"},
      {"capacity: 4GB", "capacity: 1e400GB"},
      {"capacity: 4GB", "capacity: -4GB"},
      {"capacity: 4GB", "capacity: 0B"},
      {"bandwidth 2GB/s", "bandwidth 0B/s"},
      {"bandwidth 2GB/s", "bandwidth 1e999GB/s"},
      {"cores: 2", "cores: 99999999999999999999"},
      {"cores: 2", "cores: 0"},
      {"tensor(u8, [6])", "tensor(u8, [9223372036854775807])"},
      {"tensor(u8, [6])", "tensor(u8, [0])"},
      {"tensor(u8, [6])", "tensor(u8, [1099511627776, 1099511627776])"},
      {"tensor(u8, [6])", "tensor(u8, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])"},
      {"rows: 50", "rows: 99999999999"},
      {"batch: 8", "batch: 0"},
      {"batch: 8", "batch: 999999999999"},
      {"init: normal(0.1)", "init: normal(1e999)"},
      {"pipeline_depth: 1", "pipeline_depth: 0"},
      {"pipeline_depth: 1", "pipeline_depth: 1000000000"},
      {"epochs: 3", "epochs: 99999999999999999"},
      {"epochs: 3", "epochs: 0"},
      {"scale: 0.00392156862745098", "scale: 1e999"},
      {"tensor_const(3, i64)", "tensor_const(1e999, i64)"},
      {"[8, 1])", "[8.5, 1])"},
      {"[8, 1])", "[8, 99999999999999999999999])"},
  };
  for (const auto& [from, to] : edits) {
    std::string edited = text;
    const size_t at = edited.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    edited.replace(at, std::string(from).size(), to);
    const std::string errors = Errors(edited);
    EXPECT_EQ(errors.find("test.l1:"), 0u) << to << "\n" << errors;
    EXPECT_NE(errors.find(": error["), std::string::npos) << to << "\n" << errors;
  }
}

}  // namespace
}  // namespace l3c::l1
