// L1 programs, random ones and one written by hand, as text: parsed, verified, printed, lowered,
// and run for some steps by the L1 interpreter, by the UOp interpreter and as machine code, that of
// `l3c run` and that of `l3c build`. Both kinds of machine code give the same bits; all agree
// within the class, or, where terms cancel, within twice the bound on their rounding errors.
// L3C_PROGRAMS=n runs n random ones, from seed L3C_FIRST on.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "cost/machine.h"
#include "layers/l0/lower/lower.h"
#include "layers/l0/lower/step.h"
#include "layers/l0/plan_verify.h"
#include "layers/l1/interpreter.h"
#include "layers/l1/text.h"
#include "layers/l1/verify.h"
#include "layers/tensor/text.h"
#include "tests/backends/llvm/kernel_runner.h"
#include "tests/backends/llvm/placed_code.h"
#include "tests/layers/l0/lower/program_maker.h"
#include "tests/layers/l0/lower/step_runner.h"
#include "tests/layers/tensor/rounding_bound.h"

namespace l3c {
namespace {

using l0::lower::Step;
using l0::lower::StepInput;
using l0::lower::StepOutput;
using tensor::Array;
using tensor::DType;
using tensor::Graph;
using tensor::NodeId;

using Rows = std::map<std::string, Array>;

std::optional<l1::Program> ParseText(const std::string& text) {
  const support::SourceFile source("random.l1", text);
  support::Diagnostics diagnostics(&source);
  auto program = l1::ParseProgram(source, diagnostics);
  if (program) l1::Verify(*program, diagnostics);
  EXPECT_EQ(diagnostics.Render(false), "") << text;
  return diagnostics.has_errors() ? std::nullopt : std::move(program);
}

// `error`: what rounding may have done to either.
void ExpectNear(const Array& a, const Array& b, const std::vector<double>& error,
                const std::string& what) {
  std::vector<double> gap;
  for (size_t i = 0; i < a.floats.size(); ++i) gap.push_back(a.floats[i] - b.floats[i]);
  EXPECT_LE(tensor::Norm(gap),
            std::max(1e-5 * tensor::Norm(a.floats) + 1e-6, 2 * tensor::Norm(error)))
      << what;
  ASSERT_EQ(a.ints.size(), b.ints.size()) << what;
  for (size_t i = 0; i < a.ints.size(); ++i) {
    if (error[i] != 0) continue;
    EXPECT_EQ(a.ints[i], b.ints[i]) << what << " at " << i;
  }
}

void ExpectSameBits(const Array& a, const Array& b, const std::string& what) {
  EXPECT_EQ(a.ints, b.ints) << what;
  ASSERT_EQ(a.floats.size(), b.floats.size()) << what;
  EXPECT_TRUE(std::ranges::equal(a.floats, b.floats, {}, std::bit_cast<uint64_t, double>,
                                 std::bit_cast<uint64_t, double>))
      << what;
}

// The state of a program under one engine, by index into AllState.
using State = std::map<uint32_t, Array>;

class Engine {
 public:
  Engine(const l1::Program& program, const l0::lower::LoweredForTest& lowered,
         l0::lower::KernelRunner run)
      : program_(program), lowered_(lowered), run_(std::move(run)) {
    const l1::Interpreter initial(program, program.schedule.seed);
    const auto all = l0::lower::AllState(program);
    for (uint32_t s = 0; s < all.size(); ++s) {
      const l1::Actor& actor = program.actors[all[s].actor];
      state_[s] = initial.State(actor.name, actor.state[all[s].field].name);
    }
  }

  // What is reported, by name.
  Rows Run(const Rows& rows) {
    std::vector<Array> inputs;
    for (const StepInput& input : lowered_.step.inputs) {
      inputs.push_back(input.kind == StepInput::Kind::kState ? state_.at(input.state)
                                                             : rows.at(input.field));
    }
    const std::vector<Array> outputs = RunLowered(lowered_, inputs, run_);
    Rows reports;
    if (outputs.size() != lowered_.step.outputs.size()) return reports;
    for (size_t o = 0; o < outputs.size(); ++o) {
      const StepOutput& output = lowered_.step.outputs[o];
      if (output.kind == StepOutput::Kind::kState) {
        state_[output.state] = outputs[o];
      } else {
        reports[output.name] = outputs[o];
      }
    }
    return reports;
  }

  const State& state() const { return state_; }

 private:
  const l1::Program& program_;
  const l0::lower::LoweredForTest& lowered_;
  const l0::lower::KernelRunner run_;
  State state_;
};

// What rounding may have done to a program's state and reports, from step to step.
class RoundingErrors {
 public:
  RoundingErrors(const l1::Program& program, const Step& step) : program_(program), step_(step) {
    const l1::Interpreter initial(program, program.schedule.seed);
    const auto all = l0::lower::AllState(program);
    for (uint32_t s = 0; s < all.size(); ++s) {
      state_.push_back(tensor::Exactly(StateOf(initial, s)).error);
    }
  }

  // `before`: the program before the step.
  void Advance(const l1::Interpreter& before, const Rows& rows) {
    std::map<NodeId, tensor::Bounded> by_node;
    for (const StepInput& input : step_.inputs) {
      by_node[input.node] = input.kind == StepInput::Kind::kState
                                ? tensor::Bounded{StateOf(before, input.state), state_[input.state]}
                                : tensor::Exactly(rows.at(input.field));
    }
    std::vector<tensor::Bounded> inputs;
    for (NodeId id : step_.graph.inputs()) inputs.push_back(by_node.at(id));
    std::vector<NodeId> nodes;
    for (const StepOutput& output : step_.outputs) nodes.push_back(output.node);
    const auto results = tensor::EvaluateWithBounds(step_.graph, inputs, nodes);
    for (size_t o = 0; o < results.size(); ++o) {
      const StepOutput& output = step_.outputs[o];
      (output.kind == StepOutput::Kind::kState ? state_[output.state] : reports_[output.name]) =
          results[o].error;
    }
  }

  const std::vector<double>& OfState(uint32_t state) const { return state_[state]; }
  const std::vector<double>& OfReport(const std::string& name) const { return reports_.at(name); }

 private:
  Array StateOf(const l1::Interpreter& interpreter, uint32_t state) const {
    const auto all = l0::lower::AllState(program_);
    const l1::Actor& actor = program_.actors[all[state].actor];
    return interpreter.State(actor.name, actor.state[all[state].field].name);
  }

  const l1::Program& program_;
  const Step& step_;
  std::vector<std::vector<double>> state_;
  std::map<std::string, std::vector<double>> reports_;
};

// Runs the first pipeline for as many steps as there are batches.
void ExpectEnginesAgree(const std::string& text, const std::vector<Rows>& batches) {
  const auto program = ParseText(text);
  ASSERT_TRUE(program);
  const std::string printed = l1::PrintProgram(*program);
  const auto again = ParseText(printed);
  ASSERT_TRUE(again);
  EXPECT_EQ(l1::PrintProgram(*again), printed);

  support::Diagnostics diagnostics;
  std::vector<std::pair<std::string, std::string>> reports;
  for (const l1::Metric& metric : program->schedule.metrics) {
    for (const std::string& output : {metric.numerator, metric.denominator}) {
      const auto report = std::make_pair(metric.graph, output);
      if (std::find(reports.begin(), reports.end(), report) == reports.end()) {
        reports.push_back(report);
      }
    }
  }
  auto step = l0::lower::MergeStep(*program, program->pipelines[0], reports, diagnostics);
  ASSERT_TRUE(step) << diagnostics.Render(false);
  const auto lowered = LowerForTest(std::move(*step), {});
  ASSERT_TRUE(lowered);

  const auto jit = testing::NewJit();
  ASSERT_NE(jit, nullptr);
  std::vector<l0::Kernel> kernels;
  for (const l0::lower::Launch& launch : lowered->plan.launches) {
    kernels.push_back(launch.kernel);
    kernels.back().name = "k" + std::to_string(kernels.size() - 1);
  }
  const absl::Status compiled = jit->Compile(kernels);
  ASSERT_TRUE(compiled.ok()) << compiled;
  testing::PlacedCode built;
  const absl::Status placed = built.Compile(kernels);
  ASSERT_TRUE(placed.ok()) << placed;
  size_t next = 0;
  const auto name_of_next = [&] { return "k" + std::to_string(next++ % kernels.size()); };
  Engine uops(*program, *lowered, l0::lower::InterpretKernel);
  Engine code(*program, *lowered, [&](const l0::Kernel& kernel, void* const* params) {
    jit->Find(name_of_next())(params, 0, l0::NumBlocks(kernel));
  });
  Engine built_code(*program, *lowered, [&](const l0::Kernel& kernel, void* const* params) {
    built.Find(name_of_next())(params, 0, l0::NumBlocks(kernel));
  });
  l1::Interpreter meaning(*program, program->schedule.seed);
  const auto all = l0::lower::AllState(*program);
  RoundingErrors errors(*program, lowered->step);
  for (size_t i = 0; i < batches.size(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    errors.Advance(meaning, batches[i]);
    const Rows want = meaning.RunRows(program->pipelines[0], batches[i]);
    next = 0;
    const Rows by_uops = uops.Run(batches[i]);
    const Rows by_code = code.Run(batches[i]);
    const Rows by_built_code = built_code.Run(batches[i]);
    ASSERT_EQ(by_built_code.size(), by_code.size());
    for (const auto& [name, value] : by_code) {
      ExpectSameBits(by_built_code.at(name), value, "report " + name);
      ExpectNear(by_uops.at(name), value, errors.OfReport(name), "report " + name);
      // Nothing is reported where the graph does not run.
      const auto meant = want.find(name);
      ExpectNear(meant != want.end() ? meant->second : Array::Zeros(value.dtype, value.shape),
                 value, errors.OfReport(name), "report " + name);
    }
    for (uint32_t s = 0; s < all.size(); ++s) {
      const l1::Actor& actor = program->actors[all[s].actor];
      const Array& value = code.state().at(s);
      ExpectNear(meaning.State(actor.name, actor.state[all[s].field].name), value,
                 errors.OfState(s), all[s].name);
      ExpectNear(uops.state().at(s), value, errors.OfState(s), all[s].name);
      ExpectSameBits(built_code.state().at(s), value, all[s].name);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// ---- Random programs ----------------------------------------------------------------------------

// A graph of ProgramMaker as an L1 program: batches of one row, of which each argument is the
// reshaped field; state in one actor or two, whose messages take new values; between the loader and
// the graph stages that copy, decode, and let batches through or not.
class Writer {
 public:
  Writer(uint64_t seed, Graph graph) : random_(seed * 7919 + 17), graph_(std::move(graph)) {}

  std::string Write() {
    gate_ = random_() % 2 != 0;
    two_actors_ = random_() % 2 != 0;
    decode_ = random_() % 2 != 0;
    for (NodeId id : graph_.inputs()) {
      const tensor::Node& node = graph_.node(id);
      (node.name.starts_with("s_") ? state_ : fields_).push_back(id);
    }
    text_ =
        "system s {\n node ssd { kind: storage }\n node ram { kind: memory, capacity: 1GB }\n"
        " node cpu { kind: compute, isa: x86_64, cores: 2 }\n"
        " edges { ssd -> ram : bandwidth 1GB/s ram <-> cpu : bandwidth 1GB/s }\n}\n";
    Data();
    Actors();
    Stages();
    Program();
    return std::move(text_);
  }

  std::vector<Rows> Batches(int count) {
    std::vector<Rows> batches;
    for (int i = 0; i < count; ++i) {
      Rows rows;
      for (NodeId id : fields_) {
        const tensor::Node& node = graph_.node(id);
        tensor::Shape shape = node.shape;
        shape.insert(shape.begin(), 1);
        const bool bytes = decode_ && node.dtype == DType::kF32;
        Array a = Array::Zeros(bytes ? DType::kU8 : node.dtype, shape);
        std::uniform_real_distribution<double> real(-2, 2);
        for (double& x : a.floats) x = static_cast<float>(real(random_));
        for (int64_t& x : a.ints) x = static_cast<int64_t>(random_() % (bytes ? 200 : 4));
        rows[node.name] = std::move(a);
      }
      batches.push_back(std::move(rows));
    }
    return batches;
  }

 private:
  static std::string Domain(DType dtype, tensor::Shape shape, bool batch) {
    if (batch) shape.insert(shape.begin(), 1);
    if (shape.empty()) return "scalar(" + std::string(tensor::DTypeName(dtype)) + ")";
    return "tensor(" + std::string(tensor::DTypeName(dtype)) + ", " + tensor::ShapeToString(shape) +
           ")";
  }
  std::string Type(NodeId id, bool batch) const {
    return Domain(graph_.node(id).dtype, graph_.node(id).shape, batch);
  }
  DType Stored(NodeId id) const {
    const DType dtype = graph_.node(id).dtype;
    return decode_ && dtype == DType::kF32 ? DType::kU8 : dtype;
  }
  const std::string& Name(NodeId id) const { return graph_.node(id).name; }

  void Data() {
    text_ += "data d {\n";
    for (NodeId id : fields_) {
      text_ += " " + Name(id) + " : " + Domain(Stored(id), graph_.node(id).shape, false) +
               " @ ssd, path: \"d\"\n";
    }
    text_ += "}\n";
  }

  size_t ActorOf(size_t state) const { return two_actors_ && state > 0 ? 1 : 0; }

  void Actors() {
    for (const tensor::Output& output : graph_.outputs()) outputs_.push_back(output.name);
    const size_t actors = two_actors_ && state_.size() > 1 ? 2 : 1;
    for (size_t a = 0; a < actors; ++a) {
      const std::string name = "actor" + std::to_string(a);
      std::string fields, names, arguments, body;
      for (size_t s = 0; s < state_.size(); ++s) {
        if (ActorOf(s) != a) continue;
        const std::string& field = Name(state_[s]);
        fields += "  " + field + " : " + Type(state_[s], false) +
                  ", init: " + (s % 2 ? "constant(0.25)" : "normal(0.5)") +
                  (s == 0 ? ", param\n" : "\n");
        names += (names.empty() ? "" : ", ") + field;
        // The message takes the new value and keeps half of the old one.
        if (!Assigned(field)) continue;
        arguments += (arguments.empty() ? "" : ", ") + field + "_new: " + Type(state_[s], false);
        body += "  " + field + " = tensor_add(tensor_scale(" + field + ", 0.5), tensor_scale(" +
                field + "_new, 0.5))\n";
      }
      if (names.empty()) continue;
      text_ += "actor " + name + " on cpu {\n state {\n" + fields + " }\n window all : (" + names +
               ") readers(g" + (gate_ ? ", gate" : "") + ")\n";
      if (!body.empty()) text_ += " on Take(" + arguments + ") {\n" + body + " }\n";
      text_ += "}\n";
      reads_ += (reads_.empty() ? "" : ", ") + name + ".all";
      actors_ += (actors_.empty() ? "" : ", ") + name;
      if (!body.empty()) messages_ += " -> " + name + ".Take";
    }
  }

  bool Assigned(const std::string& field) const {
    return std::find(outputs_.begin(), outputs_.end(), field) != outputs_.end();
  }

  void Stages() {
    std::string names, allocs, reads;
    for (NodeId id : fields_) {
      names += ", " + Name(id);
      allocs += "  let " + Name(id) + " = alloc(ram, " +
                Domain(Stored(id), graph_.node(id).shape, true) + ")\n";
      reads += "  read(" + Name(id) + ", d." + Name(id) + ")\n";
    }
    const std::string next = decode_ ? "unpack" : gate_ ? "gate" : "g";
    text_ +=
        "stage load on cpu {\n sample: sequential(d, split: train, rows: 8, batch: 1)\n"
        " fn process() -> forward(" +
        next + names + ") {\n" + allocs + reads + "  forward(" + next + names + ")\n }\n}\n";
    links_ = "load";
    if (decode_) Unpack();
    if (gate_) Gate();
    links_ += " -> g" + messages_;
  }

  void Unpack() {
    const std::string next = gate_ ? "gate" : "g";
    std::string params, exits, names, body;
    for (NodeId id : fields_) {
      const std::string& name = Name(id);
      params += (params.empty() ? "" : ", ") + name + ": buf<ram>";
      if (Stored(id) == graph_.node(id).dtype) {
        names += ", " + name;
        continue;
      }
      body += "  let " + name + "_real = alloc(ram, " + Type(id, true) + ")\n  decode(" + name +
              "_real, " + name + ", scale: 0.01)\n  Drop(" + name + ")\n";
      exits += "Drop(" + name + "), ";
      names += ", " + name + "_real";
    }
    text_ += "stage unpack on cpu {\n fn process(" + params + ") -> " + exits + "forward(" + next +
             names + ") {\n" + body + "  forward(" + next + names + ")\n }\n}\n";
    links_ += " -> unpack";
  }

  // Lets a batch through or not, by what is in it or by the state.
  void Gate() {
    std::string params, names, drops, drop_exits;
    for (NodeId id : fields_) {
      const std::string& name = Name(id);
      params += (params.empty() ? "" : ", ") + name + ": buf<ram>";
      names += ", " + name;
      drops += "   Drop(" + name + ")\n";
      drop_exits += (drop_exits.empty() ? "Drop(" : ", Drop(") + name + ")";
    }
    const std::string looked = random_() % 2 ? Name(fields_[0]) : Name(state_[0]);
    std::string condition = "tensor_cmplt(tensor_reduce_sum(" + looked + "), 0.5)";
    std::string before;
    if (random_() % 2) {
      before = "  let sum = tensor_reduce_sum(" + looked + ")\n";
      condition = "tensor_cmplt(sum, tensor_const(1.0))";
    }
    text_ += "stage gate on cpu {\n reads: " + reads_ + "\n fn process(" + params +
             ") -> forward(g" + names + ") | " + drop_exits + " {\n" + before + "  if " +
             condition + " {\n   forward(g" + names + ")\n  } else {\n" + drops + "  }\n }\n}\n";
    links_ += " -> gate";
  }

  void Program() {
    Graph body;
    std::vector<NodeId> ids(graph_.size());
    std::string arguments, lets;
    for (NodeId id : fields_) {
      arguments += (arguments.empty() ? "" : ", ") + Name(id) + "_row: " + Type(id, true);
      lets += "  let " + Name(id) + " = tensor_reshape(" + Name(id) + "_row, " +
              tensor::ShapeToString(graph_.node(id).shape) + ")\n";
    }
    std::vector<bool> used(graph_.size());
    for (const tensor::Output& output : graph_.outputs()) used[output.node] = true;
    for (NodeId id = static_cast<NodeId>(graph_.size()); id-- > 0;) {
      if (!used[id]) continue;
      for (NodeId input : graph_.node(id).inputs) used[input] = true;
    }
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const tensor::Node& node = graph_.node(id);
      if (node.op == tensor::Op::kInput || node.name.empty() || !used[id]) continue;
      lets += "  let " + node.name + " = " + PrintApplication(graph_, id) + "\n";
    }
    // An argument that nothing needs would be refused: it is looked at in a sum.
    std::string idle = "tensor_const(0.0)";
    for (NodeId id : fields_) {
      idle = "tensor_add(" + idle + ", tensor_scale(" + Sum(id) + ", 0.125))";
    }
    std::string names = "seen", values = idle;
    for (const tensor::Output& output : graph_.outputs()) {
      if (output.name.starts_with("out")) continue;
      names += ", " + output.name + "_new";
      values += ", " + Operand(output.node);
    }
    std::string sums;
    for (const tensor::Output& output : graph_.outputs()) {
      if (!output.name.starts_with("out")) continue;
      names += ", " + output.name;
      sums += ", " + Sum(output.node);
    }
    text_ += "tensor_graph g on cpu {\n reads: " + reads_ + "\n fn compute(" + arguments +
             ") -> (" + names + ") {\n" + lets + "  return (" + values + sums + ")\n }\n}\n";
    text_ += "pipeline run { " + links_ + " }\n";
    text_ += "schedule {\n pipelines: [run]\n actors: [" + actors_ +
             "]\n pipeline_depth: 2\n phases [ main(pipeline: run, steps: 4) ]\n metrics [\n"
             "  a(split: train, graph: g, numerator: out0, denominator: seen),\n"
             "  b(split: train, graph: g, numerator: out1, denominator: seen),\n ]\n}\n";
  }

  std::string Sum(NodeId id) const {
    const std::string real = "tensor_cast(" + Operand(id) + ", f32)";
    return graph_.node(id).shape.empty() ? real : "tensor_reduce_sum(" + real + ")";
  }

  std::string Operand(NodeId id) const {
    const tensor::Node& node = graph_.node(id);
    return node.name.empty() ? tensor::FormatNumber(node.attr.scalar, node.dtype) : node.name;
  }

  std::mt19937_64 random_;
  Graph graph_;
  bool gate_ = false, two_actors_ = false, decode_ = false;
  std::vector<NodeId> fields_, state_;
  std::vector<std::string> outputs_;
  std::string text_, reads_, actors_, messages_, links_;
};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

void ExpectTheSameOfRandomOnes(uint64_t count, const std::function<Graph(uint64_t seed)>& make) {
  const uint64_t first = FromEnvironment("L3C_FIRST", 1);
  count = FromEnvironment("L3C_PROGRAMS", count);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Writer writer(seed, make(seed));
    const std::string text = writer.Write();
    ExpectEnginesAgree(text, writer.Batches(3));
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << text;
      return;
    }
  }
}

TEST(L1Programs, RandomOnesMeanTheSameToEveryEngine) {
  ExpectTheSameOfRandomOnes(60, [](uint64_t seed) {
    return l0::lower::ProgramMaker(seed).Make(2 + static_cast<int>(seed % 14));
  });
}

// What the structural verifier passes becomes a plan that the concrete one passes, whatever the
// pipeline depth: every stream, slot and token of it.
TEST(L1Programs, RandomOnesMakeSoundPlansAtAnyDepth) {
  const uint64_t count = FromEnvironment("L3C_PROGRAMS", 8);
  for (uint64_t seed = 1; seed <= count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::string text = Writer(seed, l0::lower::ProgramMaker(seed).Make(3)).Write();
    const std::string depth = "pipeline_depth: ";
    const size_t at = text.find(depth + "2");
    ASSERT_NE(at, std::string::npos);
    text.replace(at, depth.size() + 1, depth + std::to_string(1 + seed % 4));
    const auto program = ParseText(text);
    ASSERT_TRUE(program);
    const cost::CpuCostModel costs(cost::MachineOf(program->system.nodes[program->graphs[0].node]));
    support::Diagnostics diagnostics;
    const auto plan = l0::lower::Lower(*program, costs, {}, diagnostics);
    ASSERT_TRUE(plan.ok()) << diagnostics.Render(false) << text;
    EXPECT_TRUE(l0::VerifyPlan(plan.best(), diagnostics)) << diagnostics.Render(false) << text;
    const auto staged = std::count_if(
        plan.best().sequences.begin(), plan.best().sequences.end(),
        [](const l0::Sequence& sequence) { return sequence.name.starts_with("load_run"); });
    EXPECT_EQ(static_cast<uint64_t>(staged), 1 + seed % 4);
  }
}

// Terms that cancel: the nightly run met it.
TEST(L1Programs, TermsThatCancelLeaveWhatRoundingLeaves) {
  Writer writer(726, l0::lower::ProgramMaker(726).Make(2 + 726 % 14));
  const std::string text = writer.Write();
  ExpectEnginesAgree(text, writer.Batches(3));
}

TEST(L1Programs, RandomWindowsMeanTheSameToEveryEngine) {
  ExpectTheSameOfRandomOnes(20, [](uint64_t seed) {
    return l0::lower::ProgramMaker(seed).MakeWindows(2 + static_cast<int>(seed % 4));
  });
}

TEST(L1Programs, TheOneByHandMeansTheSameToEveryEngine) {
  std::ifstream file(std::string(L3C_SOURCE_DIR) + "/tests/layers/l1/programs/hand.l1");
  std::ostringstream text;
  text << file.rdbuf();
  std::mt19937_64 random(3);
  std::vector<Rows> batches;
  for (int step = 0; step < 9; ++step) {
    Rows rows = {{"x", Array::Zeros(DType::kU8, {8, 6})},
                 {"y", Array::Zeros(DType::kF32, {8, 1})},
                 {"valid", Array::Zeros(DType::kF32, {8})}};
    const int filled = step % 4 == 3 ? 2 : 8;
    for (int r = 0; r < filled; ++r) {
      for (int i = 0; i < 6; ++i)
        rows.at("x").ints[r * 6 + i] = static_cast<int64_t>(random() % 256);
      rows.at("y").floats[r] = static_cast<float>(random() % 100) / 50;
      rows.at("valid").floats[r] = 1;
    }
    batches.push_back(std::move(rows));
  }
  ExpectEnginesAgree(text.str(), batches);
}

}  // namespace
}  // namespace l3c
