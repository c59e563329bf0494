// Buffer conservation: every path through a stage's body is walked, with what each buffer holds.
//
// Of two paths that join with the same buffers alive only one is walked on, so that the walk is
// linear in the body. Paths that join with different ones cannot both end with none: what follows
// treats them alike. One of them is reported at its end, and kMaxPaths bounds how many are kept
// for that.
#include <set>

#include "layers/l1/verifier.h"
#include "layers/tensor/text.h"

namespace l3c::l1 {

using support::Kind;

namespace {

constexpr size_t kMaxPaths = 16;
constexpr size_t kMaxSteps = 32;  // of a path that are written out

enum class Hold : uint8_t { kNone, kEmpty, kFilled, kGone };

std::string StepText(const Statement& s, bool taken) {
  switch (s.kind) {
    case StatementKind::kAlloc:
    case StatementKind::kLet:
      return "let " + s.buffer;
    case StatementKind::kRead:
      return "read(" + s.buffer + ")";
    case StatementKind::kDecode:
      return "decode(" + s.buffer + ", " + s.source + ")";
    case StatementKind::kCopy:
      return "copy(" + s.buffer + ", " + s.source + ")";
    case StatementKind::kIf:
      return tensor::PrintNested(s.value, s.value.outputs()[0].node) +
             (taken ? " is true" : " is false");
    case StatementKind::kForward:
      return "forward(" + TargetOf(s) + ")";
    case StatementKind::kDrop:
      return "Drop(" + s.buffer + ")";
  }
  return "";
}

class Walk {
 public:
  Walk(const Stage& stage, const Buffers& buffers, support::Diagnostics& diagnostics)
      : stage_(stage), buffers_(buffers), diagnostics_(diagnostics) {
    for (const auto& [name, info] : buffers) number_.emplace(name, number_.size());
  }

  void Run() {
    State entry;
    entry.holds.assign(number_.size(), Hold::kNone);
    entry.gone.assign(number_.size(), nullptr);
    for (const BufferParam& param : stage_.params)
      entry.holds[number_.at(param.name)] = Hold::kFilled;
    std::vector<State> ends = Follow(stage_.body, {std::move(entry)});
    std::set<std::string> reported;
    for (const State& end : ends) {
      for (const auto& [name, number] : number_) {
        const Hold hold = end.holds[number];
        if ((hold == Hold::kEmpty || hold == Hold::kFilled) && reported.insert(name).second) {
          Leak(name, end);
        }
      }
    }
  }

 private:
  static constexpr size_t kEntry = SIZE_MAX;
  struct Step {
    const Statement* statement = nullptr;
    bool taken = false;
    size_t before = kEntry;  // index into steps_
  };
  struct State {
    std::vector<Hold> holds;             // by number
    std::vector<const Statement*> gone;  // what took it
    size_t path = kEntry;
  };

  std::vector<State> Follow(const std::vector<Statement>& body, std::vector<State> states) {
    for (const Statement& s : body) {
      if (s.kind == StatementKind::kIf) {
        states = Branch(s, std::move(states));
        continue;
      }
      for (State& state : states) {
        Extend(state, s, false);
        Execute(s, state);
      }
    }
    return states;
  }

  std::vector<State> Branch(const Statement& s, std::vector<State> states) {
    std::vector<State> other = states;
    for (State& state : states) {
      Look(s, state);
      Extend(state, s, true);
    }
    for (State& state : other) Extend(state, s, false);
    states = Leave(s.then_body, Follow(s.then_body, std::move(states)));
    for (State& state : Leave(s.else_body, Follow(s.else_body, std::move(other)))) {
      bool known = states.size() >= kMaxPaths;
      for (size_t i = 0; i < states.size() && !known; ++i) known = states[i].holds == state.holds;
      if (!known) states.push_back(std::move(state));
    }
    return states;
  }

  // A branch's own buffers end with it.
  std::vector<State> Leave(const std::vector<Statement>& body, std::vector<State> states) {
    for (const Statement& s : body) {
      if (s.kind != StatementKind::kAlloc) continue;
      const size_t number = number_.at(s.buffer);
      bool leaked = false;
      for (State& state : states) {
        const bool live =
            state.holds[number] == Hold::kEmpty || state.holds[number] == Hold::kFilled;
        if (live && !leaked) Leak(s.buffer, state);
        leaked = leaked || live;
        state.holds[number] = Hold::kNone;
      }
    }
    return states;
  }

  void Extend(State& state, const Statement& s, bool taken) {
    steps_.push_back({&s, taken, state.path});
    state.path = steps_.size() - 1;
  }

  void Execute(const Statement& s, State& state) {
    switch (s.kind) {
      case StatementKind::kAlloc:
        state.holds[number_.at(s.buffer)] = Hold::kEmpty;
        break;
      case StatementKind::kLet:
      case StatementKind::kIf:
        Look(s, state);
        break;
      case StatementKind::kRead:
        Fill(s.buffer, s, state);
        break;
      case StatementKind::kDecode:
      case StatementKind::kCopy:
        if (buffers_.contains(s.source)) {
          if (!Use(s.source, s, state)) break;
          if (state.holds[number_.at(s.source)] == Hold::kEmpty) {
            Unfilled(s.source, "is copied", s);
            break;
          }
        }
        Fill(s.buffer, s, state);
        break;
      case StatementKind::kForward:
        for (const std::string& name : s.buffers) {
          if (state.holds[number_.at(name)] == Hold::kEmpty) Unfilled(name, "is forwarded", s);
          Take(name, s, state);
        }
        break;
      case StatementKind::kDrop:
        Take(s.buffer, s, state);
        break;
    }
  }

  // What an expression looks at.
  void Look(const Statement& s, const State& state) {
    for (tensor::NodeId input : s.value.inputs()) {
      const std::string& name = s.value.node(input).name;
      if (!buffers_.contains(name) || !Use(name, s, state)) continue;
      if (state.holds[number_.at(name)] == Hold::kEmpty) Unfilled(name, "is looked at", s);
    }
  }

  bool Use(const std::string& name, const Statement& s, const State& state) {
    const size_t number = number_.at(name);
    const Hold hold = state.holds[number];
    if (hold == Hold::kEmpty || hold == Hold::kFilled) return true;
    if (!reported_.insert({&s, name}).second) return false;
    if (hold == Hold::kGone) {
      diagnostics_.Error(Kind::kSafety, s.span, "'" + name + "' is used after it is gone")
          .With({state.gone[number]->span, "it is handed over or dropped here"});
    } else {
      diagnostics_.Error(Kind::kSafety, s.span, "'" + name + "' is used before it is allocated");
    }
    return false;
  }

  void Fill(const std::string& name, const Statement& s, State& state) {
    if (Use(name, s, state)) state.holds[number_.at(name)] = Hold::kFilled;
  }

  void Take(const std::string& name, const Statement& s, State& state) {
    if (!Use(name, s, state)) return;
    state.holds[number_.at(name)] = Hold::kGone;
    state.gone[number_.at(name)] = &s;
  }

  void Unfilled(const std::string& name, const std::string& what, const Statement& s) {
    if (!reported_.insert({&s, name}).second) return;
    diagnostics_.Error(Kind::kSafety, s.span, "'" + name + "' " + what + " before it is filled")
        .With({buffers_.at(name).span, "it is allocated here"});
  }

  void Leak(const std::string& name, const State& state) {
    diagnostics_
        .Error(
            Kind::kLiveness, buffers_.at(name).span,
            "buffer '" + name + "' of stage '" + stage_.name + "' is neither forwarded nor dropped")
        .With({stage_.span, "on the path " + PathText(state.path) + " -> end"})
        .Fix("forward it, or end with Drop(" + name + ")");
  }

  std::string PathText(size_t path) const {
    std::vector<const Step*> steps;
    for (; path != kEntry; path = steps_[path].before) steps.push_back(&steps_[path]);
    std::string text = "entry";
    size_t skipped = 0;
    for (size_t i = steps.size(); i-- > 0;) {
      const Step& step = *steps[i];
      // Of a long path its ends and its conditions.
      const size_t from_start = steps.size() - 1 - i;
      const bool inner = from_start >= kMaxSteps / 2 && i >= kMaxSteps / 2;
      if (inner && (step.statement->kind != StatementKind::kIf || skipped > kMaxSteps)) {
        ++skipped;
        if (skipped == 1) text += " -> …";
        continue;
      }
      text += " -> " + StepText(*step.statement, step.taken);
    }
    return text;
  }

  const Stage& stage_;
  const Buffers& buffers_;
  support::Diagnostics& diagnostics_;
  std::map<std::string, size_t> number_;
  std::vector<Step> steps_;
  std::set<std::pair<const Statement*, std::string>> reported_;
};

}  // namespace

void Verifier::CheckConservation() {
  for (const Stage& stage : program_.stages) Walk(stage, BuffersOf(stage), diagnostics_).Run();
}

}  // namespace l3c::l1
