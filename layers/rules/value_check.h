// One case of a rule of the algebra: an instance of its left side is written into an e-graph, the
// rule is run on it once, and whatever it made or joined must have the value of the class it is in.
//
// Values are those of the reference interpreter, each f32 rounded once; kernels are no part of
// this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layers/rules/choices.h"
#include "layers/rules/instance.h"
#include "layers/rules/rule_file.h"

namespace l3c::rules {

struct Counterexample {
  std::string reason;              // "they differ in their bits"
  std::vector<std::string> lines;  // inputs, left side, right side
};

class ValueCheck {
 public:
  ValueCheck(const RuleFile& file, const RuleInfo& rule);
  ValueCheck(const ValueCheck&) = delete;
  ValueCheck& operator=(const ValueCheck&) = delete;

  // Why the rule cannot be tested; "" when it can.
  const std::string& obstacle() const { return left_->obstacle(); }
  // Rules that unite nothing only state facts; what follows from those is tested where it is used.
  bool states_facts_only() const { return facts_only_; }

  enum class Outcome : uint8_t {
    kNoInstance,  // the choices contradict one another
    kNoMatch,     // a premise fails
    kAgrees,
    kDisagrees,
  };
  // `shapes` draws the program, `values` its inputs. `judged`: the class under which the sides are
  // compared.
  // `nearest`: where there is no match, what holds of the rule and which premise fails.
  Outcome Try(Choices& shapes, Choices& values, egraph::Numerics judged,
              Counterexample* counterexample, std::string* nearest = nullptr);

  // Saturates all rules of the file on an instance. Where they do not come to an end within some
  // thousand rows: which rule makes most of them. "" otherwise.
  std::string Growth(Choices& choices);

 private:
  std::optional<Counterexample> Compare(const tensor::Graph& program,
                                        const std::vector<egraph::Value>& classes,
                                        const std::vector<tensor::Array>& inputs,
                                        egraph::Numerics judged);

  egraph::EGraph graph_;
  egraph::RuleId rule_;
  egraph::RulesetId under_test_, facts_;
  bool facts_only_ = false;
  bool rounds_ = false;  // to bfloat16
  std::optional<LeftSide> left_;
};

}  // namespace l3c::rules
