// Property: on random modules, printing what was parsed from printed text gives the same bytes, and
// the parsed module means what was printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/layers/l3/check.h"

namespace l3c::l3 {
namespace {

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  Module Run() {
    Module module;
    for (int i = 0, n = 1 + Below(3); i < n; ++i) module.data.push_back(MakeData(i));
    for (int i = 0, n = 1 + Below(3); i < n; ++i) module.models.push_back(MakeModel(module, i));
    for (int i = 0, n = 1 + Below(2); i < n; ++i) module.losses.push_back(MakeLoss(module, i));
    MakeGoal(module);
    MakeHints(module);
    return module;
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  bool Coin() { return Below(2) == 0; }
  template <class T>
  const T& Pick(const std::vector<T>& items) {
    return items[static_cast<size_t>(Below(static_cast<int>(items.size())))];
  }
  double Real() {
    switch (Below(4)) {
      case 0:
        return Below(10);
      case 1:
        return 1e-4 * (1 + Below(9));
      case 2:
        return std::ldexp(1.0 + 1e-9 * static_cast<double>(random_()), Below(80) - 40);
      default:
        return -0.5;
    }
  }

  Domain MakeDomain(int depth) {
    using tensor::DType;
    const DType dtype =
        Pick(std::vector<DType>{DType::kU8, DType::kF32, DType::kI64, DType::kBool});
    switch (Below(depth > 2 ? 3 : 5)) {
      case 0:
        return Domain::Scalar(dtype);
      case 1:
        return Domain::Dist(1 + Below(1000));
      case 2: {
        tensor::Shape shape;
        for (int i = 0, n = Below(4); i < n; ++i) shape.push_back(1 + Below(30));
        return Domain::Tensor(dtype, shape);
      }
      case 3:
        return Domain::Sequence(MakeDomain(depth + 1), 1 + Below(100));
      default: {
        std::vector<std::string> columns;
        std::vector<Domain> parts;
        for (int i = 0, n = 1 + Below(3); i < n; ++i) {
          columns.push_back("c" + std::to_string(i));
          parts.push_back(MakeDomain(depth + 1));
        }
        return Domain::Table(columns, parts);
      }
    }
  }

  Data MakeData(int i) {
    Data data;
    data.name = std::string(static_cast<size_t>(1 + Below(5)), 'd') + std::to_string(i);
    for (int k = 0, n = 1 + Below(4); k < n; ++k) {
      Field field;
      field.name = std::string(static_cast<size_t>(1 + Below(9)), 'f') + std::to_string(k);
      field.domain = MakeDomain(0);
      data.fields.push_back(field);
    }
    if (Below(4) == 0) data.environment = "a \"b\"\\.l1";
    return data;
  }

  Ref MakeInput(const Module& module) {
    Ref ref;
    if (!module.models.empty() && Coin()) {
      const Model& model = Pick(module.models);
      ref.kind = Ref::Kind::kOutput;
      ref.owner = model.name;
      ref.member = "out";
      return ref;
    }
    const Data& data = Pick(module.data);
    ref.kind = Ref::Kind::kField;
    ref.owner = data.name;
    ref.member = Pick(data.fields).name;
    return ref;
  }

  // As many arguments as the model has inputs.
  Ref MakeApplied(const Module& module) {
    const Model& model = Pick(module.models);
    Ref ref;
    ref.kind = Ref::Kind::kOutput;
    ref.owner = model.name;
    ref.member = "out";
    for (size_t i = 0; i < model.in.size(); ++i) ref.arguments.push_back(MakeInput(module));
    return ref;
  }

  Ref MakeRead(const Module& module) {
    switch (Below(4)) {
      case 0:
        return MakeApplied(module);
      case 1: {
        Ref ref;
        ref.kind = Coin() ? Ref::Kind::kParams : Ref::Kind::kActivations;
        ref.owner = Pick(module.models).name;
        ref.member = ref.kind == Ref::Kind::kParams ? "params" : "activations";
        return ref;
      }
      default:
        return MakeInput(module);
    }
  }

  Model MakeModel(const Module& module, int i) {
    Model model;
    model.name = "model" + std::to_string(i);
    for (int k = 0, n = 1 + Below(3); k < n; ++k) model.in.push_back(MakeInput(module));
    model.out = MakeDomain(0);
    for (int k = 0, n = Below(4); k < n; ++k) {
      Property property;
      property.kind = static_cast<Property::Kind>(Below(7));
      property.count = property.kind == Property::Kind::kLatencyBudget ||
                               property.kind == Property::Kind::kEquivariant ||
                               property.kind == Property::Kind::kCausal ||
                               property.kind == Property::Kind::kAutoregressive
                           ? 0
                           : 1 + Below(2000) * 1000;
      if (property.kind == Property::Kind::kLatencyBudget) property.seconds = std::fabs(Real());
      if (property.kind == Property::Kind::kEquivariant) property.group = "c4";
      model.properties.push_back(property);
    }
    return model;
  }

  Expr Number() {
    Expr expr;
    expr.whole = Coin();
    expr.number = expr.whole ? Below(1000) : std::fabs(Real());
    return expr;
  }

  Expr MakeExpr(const std::vector<Ref>& reads, int depth) {
    Expr expr;
    switch (depth > 4 ? Below(2) : Below(6)) {
      case 0:
        return Number();
      case 1: {
        const Ref& ref = Pick(reads);
        if (!ref.arguments.empty()) return Number();
        expr.kind = Expr::Kind::kReference;
        expr.name = PrintRef(ref);
        return expr;
      }
      case 2:
        expr.kind = Expr::Kind::kUnary;
        expr.name = Coin() ? "-" : "!";
        expr.args.push_back(MakeExpr(reads, depth + 1));
        return expr;
      case 3:
        expr.kind = Expr::Kind::kCall;
        expr.name = Pick(std::vector<std::string>{"sum", "exp", "max"});
        for (int i = 0, n = Below(3); i < n; ++i) {
          expr.labels.push_back(Coin() ? "" : "axis");
          expr.args.push_back(MakeExpr(reads, depth + 1));
        }
        return expr;
      default:
        expr.kind = Expr::Kind::kBinary;
        expr.name = Pick(
            std::vector<std::string>{"+", "-", "*", "/", "%", "<", "<=", "==", "!=", "&&", "||"});
        expr.args.push_back(MakeExpr(reads, depth + 1));
        expr.args.push_back(MakeExpr(reads, depth + 1));
        return expr;
    }
  }

  Loss MakeLoss(const Module& module, int i) {
    Loss loss;
    loss.name = "loss" + std::to_string(i);
    for (int k = 0, n = 1 + Below(4); k < n; ++k) {
      Term term;
      term.name = std::string(static_cast<size_t>(1 + Below(8)), 't') + std::to_string(k);
      term.kind = static_cast<LossKind>(Below(6));
      term.weight = Real();
      const int reads = term.kind == LossKind::kNorm          ? 1
                        : term.kind == LossKind::kContrastive ? 3
                                                              : 2;
      for (int r = 0; r < reads; ++r) term.reads.push_back(MakeRead(module));
      if (term.kind == LossKind::kNorm) term.p = 0.5 * (1 + Below(6));
      if (term.kind == LossKind::kCustom) {
        term.custom_file = Coin();
        term.custom_name = term.custom_file ? "x y.expr" : "hinge";
        if (Coin()) term.value = MakeExpr(term.reads, 0);
      }
      if (term.kind == LossKind::kConstraint) {
        term.value = MakeExpr(term.reads, 0);
        std::vector<Ref> mentioned;
        ForEachReference(*term.value, [&](const Expr& expr) {
          for (const Ref& ref : term.reads) {
            const bool known = std::any_of(mentioned.begin(), mentioned.end(),
                                           [&](const Ref& m) { return SameRef(m, ref); });
            if (PrintRef(ref) == expr.name && !known) mentioned.push_back(ref);
          }
        });
        term.reads = mentioned;
      }
      loss.terms.push_back(term);
    }
    return loss;
  }

  Ref MakeTarget(const Module& module) {
    const Loss& loss = Pick(module.losses);
    Ref ref;
    ref.kind = Coin() ? Ref::Kind::kLoss : Ref::Kind::kTerm;
    ref.owner = loss.name;
    if (ref.kind == Ref::Kind::kTerm) ref.member = Pick(loss.terms).name;
    return ref;
  }

  Goal MakeSingle(const Module& module) {
    Goal goal;
    goal.kind = Coin() ? Goal::Kind::kMinimize : Goal::Kind::kMaximize;
    goal.targets.push_back(MakeTarget(module));
    if (Coin()) goal.models.push_back(Pick(module.models).name);
    return goal;
  }

  void MakeGoal(Module& module) {
    module.goal = MakeSingle(module);
    if (Coin()) return;
    Goal goal;
    if (Coin()) {
      goal.kind = Goal::Kind::kPareto;
      for (int i = 0, n = 1 + Below(3); i < n; ++i) goal.targets.push_back(MakeTarget(module));
    } else {
      goal.kind = Goal::Kind::kAlternate;
      for (int i = 0, n = 1 + Below(3); i < n; ++i) goal.turns.push_back(MakeSingle(module));
    }
    module.goal = goal;
  }

  void MakeHints(Module& module) {
    std::vector<std::string> paths = {"goal",
                                      module.data[0].name,
                                      module.models[0].name,
                                      module.losses[0].name,
                                      module.data[0].name + "." + module.data[0].fields[0].name,
                                      module.losses[0].name + "." + module.losses[0].terms[0].name};
    for (int i = 0, n = Below(4); i < n; ++i) {
      support::EscapeHatch hatch;
      hatch.layer = Pick(std::vector<std::string>{"l2", "l1", "l0"});
      hatch.directive = "kernel";
      hatch.has_args = Coin();
      if (hatch.has_args) hatch.args = "\"a.ptx\", grid: [1, -2], x=1e-4";
      // One of a kind on one thing.
      std::vector<support::EscapeHatch>& there = module.hints[Pick(paths)];
      const bool free = std::none_of(there.begin(), there.end(),
                                     [&](const auto& other) { return other.layer == hatch.layer; });
      if (free) there.push_back(hatch);
    }
  }

  std::mt19937 random_;
};

// Everything but spans.
void ExpectSame(const Module& a, const Module& b) {
  ASSERT_EQ(a.data.size(), b.data.size());
  for (size_t i = 0; i < a.data.size(); ++i) {
    ASSERT_EQ(a.data[i].fields.size(), b.data[i].fields.size());
    EXPECT_EQ(a.data[i].environment, b.data[i].environment);
    for (size_t k = 0; k < a.data[i].fields.size(); ++k) {
      EXPECT_EQ(a.data[i].fields[k].domain, b.data[i].fields[k].domain);
    }
  }
  ASSERT_EQ(a.models.size(), b.models.size());
  for (size_t i = 0; i < a.models.size(); ++i) {
    EXPECT_TRUE(std::equal(a.models[i].in.begin(), a.models[i].in.end(), b.models[i].in.begin(),
                           b.models[i].in.end(), SameRef));
    EXPECT_EQ(a.models[i].out, b.models[i].out);
    ASSERT_EQ(a.models[i].properties.size(), b.models[i].properties.size());
    for (size_t k = 0; k < a.models[i].properties.size(); ++k) {
      EXPECT_EQ(a.models[i].properties[k].count, b.models[i].properties[k].count);
      EXPECT_EQ(a.models[i].properties[k].seconds, b.models[i].properties[k].seconds);
      EXPECT_EQ(a.models[i].properties[k].group, b.models[i].properties[k].group);
    }
  }
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (size_t i = 0; i < a.losses.size(); ++i) {
    ASSERT_EQ(a.losses[i].terms.size(), b.losses[i].terms.size());
    for (size_t k = 0; k < a.losses[i].terms.size(); ++k) {
      const Term& s = a.losses[i].terms[k];
      const Term& t = b.losses[i].terms[k];
      EXPECT_EQ(s.kind, t.kind);
      EXPECT_EQ(s.weight, t.weight);
      EXPECT_EQ(s.p, t.p);
      EXPECT_TRUE(
          std::equal(s.reads.begin(), s.reads.end(), t.reads.begin(), t.reads.end(), SameRef));
      ASSERT_EQ(s.value.has_value(), t.value.has_value());
      EXPECT_TRUE(!s.value || SameExpr(*s.value, *t.value));
    }
  }
}

TEST(L3RoundTripTest, PrintAndParseAreInverse) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    const Module module = Generator(seed).Run();
    const std::string text = Print(module);
    const support::SourceFile source("random.l3", text);
    support::Diagnostics diagnostics(&source);
    const auto parsed = Parse(source, diagnostics);
    ASSERT_TRUE(parsed.has_value()) << seed << "\n" << text << diagnostics.Render(false);
    ASSERT_EQ(Print(*parsed), text) << seed;
    ExpectSame(module, *parsed);
    if (::testing::Test::HasFailure()) FAIL() << seed << "\n" << text;
  }
}

}  // namespace
}  // namespace l3c::l3
