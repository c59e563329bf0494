// The declarations. References are left as they were written and resolved at the end (resolve.cc),
// so that a model may read one that is declared further down.
#include "layers/l3/parse.h"

#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "layers/l3/forms.h"
#include "layers/l3/resolve.h"
#include "layers/support/escape_hatch_list.h"
#include "layers/support/units.h"

namespace l3c::l3 {
namespace {

using support::EscapeHatch;
using support::Kind;
using support::Name;
using support::ParserBase;

// L1 delivers it with every batch, beside the fields.
constexpr std::string_view kMask = "valid";

const std::vector<std::string> kDeclarations = {"data", "model", "loss", "goal"};
const std::vector<std::string> kModelFields = {"in", "out", "properties"};
const std::vector<std::string> kProperties = {
    "depth", "width", "causal", "autoregressive", "equivariant", "param_budget", "latency_budget"};
const std::vector<std::string> kLossKinds = {"divergence",     "norm",        "constraint",
                                             "reconstruction", "contrastive", "custom"};
const std::vector<std::string> kGoals = {"minimize", "maximize", "pareto", "alternate"};

class DeclarationParser {
 public:
  DeclarationParser(ParserBase& parser, Module& module, const Extension& extension)
      : p_(parser), module_(module), extension_(extension), keywords_(kDeclarations) {
    keywords_.insert(keywords_.end(), extension.keywords.begin(), extension.keywords.end());
  }

  void Run() {
    while (!p_.AtEnd()) {
      if (support::AtEscapeHatch(p_)) {
        if (auto hatch = support::ParseEscapeHatch(p_, "l3")) {
          pending_.push_back(*std::move(hatch));
        } else {
          p_.SkipToDeclaration(keywords_);
        }
      } else if (!ParseDeclaration()) {
        pending_.clear();
        p_.SkipToDeclaration(keywords_);
      }
    }
    RefusePending();
    // It may be what an error before this one has spoilt.
    if (!goal_seen_ && !p_.diagnostics().has_errors()) {
      p_.Error(EndOfText(), "the specification has no goal")
          .Fix("add a line such as 'goal: minimize(LOSS)'");
    }
  }

 private:
  // ---- Declarations -------------------------------------------------------------------------
  bool ParseDeclaration() {
    const support::Token word = p_.Peek();
    if (word.IsWord("data")) return ParseData();
    if (word.IsWord("model")) return ParseModel();
    if (word.IsWord("loss")) return ParseLoss();
    if (word.IsWord("goal")) return ParseGoal();
    for (const std::string& keyword : extension_.keywords) {
      if (!word.IsWord(keyword)) continue;
      RefusePending();
      return extension_.parse(p_, module_);
    }
    if (word.kind != support::TokenKind::kWord) {
      p_.ErrorExpected("a declaration (" + Words(keywords_) + ")");
      p_.Next();
      return false;
    }
    const Name name = *p_.ExpectName("a declaration");
    p_.ErrorUnknown("declaration", name, keywords_);
    return false;
  }

  bool ParseData() {
    p_.Next();
    const auto name = Declare("the name of the data");
    if (!name) return false;
    Data data;
    data.name = name->text;
    data.span = name->span;
    std::map<std::string, Span> seen;
    const Read read = Block(data.name, [&] {
      if (p_.AtWord("env") && p_.Peek(1).Is("(")) return ParseEnvironment(data);
      const auto field_name = p_.ExpectName("the name of a field");
      if (!field_name || !p_.Expect(":")) return false;
      Field field;
      field.name = field_name->text;
      field.span = field_name->span;
      Once(seen, "field", *field_name);
      const uint32_t begin = p_.Here();
      auto domain = ParseDomain(p_);
      if (!domain) return false;
      field.domain = *std::move(domain);
      field.domain_span = p_.SpanFrom(begin);
      if (field.name == kMask) {
        p_.Error(field.span, "'valid' names the mask of a batch: which of its rows are samples",
                 Kind::kConsistency)
            .Fix("call the field something else");
      }
      Attach(data.name + "." + field.name);
      data.fields.push_back(std::move(field));
      return true;
    });
    if (read == Read::kWell && data.fields.empty() && data.environment.empty()) {
      p_.Error(data.span, "data '" + data.name + "' has no field");
    }
    module_.data.push_back(std::move(data));
    return read != Read::kBroken;
  }

  bool ParseEnvironment(Data& data) {
    const uint32_t begin = p_.Here();
    p_.Next();
    p_.Next();
    const auto file = p_.ExpectString("the file of the environment");
    if (!file || !p_.Expect(")")) return false;
    if (!data.environment.empty()) {
      p_.Error(p_.SpanFrom(begin), "data '" + data.name + "' has two environments");
    } else if (file->empty()) {
      p_.Error(p_.SpanFrom(begin), "the file of the environment has no name");
    }
    data.environment = *file;
    return true;
  }

  bool ParseModel() {
    p_.Next();
    const auto name = Declare("the name of the model");
    if (!name) return false;
    Model model;
    model.name = name->text;
    model.span = name->span;
    std::map<std::string, Span> seen;
    const Read read = Block(model.name, [&] {
      const auto field = p_.ExpectName("'in', 'out' or 'properties'");
      if (!field) return false;
      const bool known = field->text == "in" || field->text == "out" || field->text == "properties";
      if (!known) {
        p_.ErrorUnknown("line of a model", *field, kModelFields);
        return false;
      }
      if (!p_.Expect(":")) return false;
      Once(seen, "line", *field);
      // A model's annotations belong to the model, wherever in it they stand.
      Attach(model.name);
      if (field->text == "in") return ParseInputs(model);
      if (field->text == "properties") return ParseProperties(model);
      const uint32_t begin = p_.Here();
      auto domain = ParseDomain(p_);
      if (!domain) return false;
      model.out = *std::move(domain);
      model.out_span = p_.SpanFrom(begin);
      return true;
    });
    if (read == Read::kWell && (seen.count("in") == 0 || seen.count("out") == 0)) {
      const std::string missing = seen.count("in") == 0 ? "in" : "out";
      p_.Error(model.span, "model '" + model.name + "' has no '" + missing + "'")
          .Fix(missing == "in" ? "add a line such as 'in: DATA.FIELD'"
                               : "add a line such as 'out: dist(10)'");
    }
    module_.models.push_back(std::move(model));
    return read != Read::kBroken;
  }

  bool ParseInputs(Model& model) {
    const auto input = [&] {
      auto ref = ParseRef(p_);
      if (ref) model.in.push_back(*std::move(ref));
      return ref.has_value();
    };
    if (!p_.At("[")) return input();
    const uint32_t begin = p_.Here();
    if (!p_.ParseList("[", "]", input)) return false;
    if (model.in.empty()) {
      p_.Error(p_.SpanFrom(begin), "a model reads at least one field or output");
    }
    return true;
  }

  bool ParseProperties(Model& model) {
    return p_.ParseList("[", "]", [&] {
      const uint32_t begin = p_.Here();
      const auto name = p_.ExpectName("a property");
      if (!name) return false;
      Property property;
      bool ok = true;
      if (name->text == "causal") {
        property.kind = Property::Kind::kCausal;
      } else if (name->text == "autoregressive") {
        property.kind = Property::Kind::kAutoregressive;
      } else if (name->text == "depth") {
        ok = ParseCount(Property::Kind::kDepth, "a depth", property);
      } else if (name->text == "width") {
        ok = ParseCount(Property::Kind::kWidth, "a width", property);
      } else if (name->text == "param_budget") {
        ok = ParseCount(Property::Kind::kParamBudget, "a number of parameters", property);
      } else if (name->text == "latency_budget") {
        ok = ParseLatency(property);
      } else if (name->text == "equivariant") {
        property.kind = Property::Kind::kEquivariant;
        ok = p_.Expect("(");
        const auto group = ok ? p_.ExpectName("a symmetry group") : std::nullopt;
        ok = group && p_.Expect(")");
        if (ok) property.group = group->text;
      } else {
        p_.ErrorUnknown("property", *name, kProperties);
        return false;
      }
      if (!ok) return false;
      property.span = p_.SpanFrom(begin);
      model.properties.push_back(std::move(property));
      return true;
    });
  }

  bool ParseCount(Property::Kind kind, const char* what, Property& property) {
    property.kind = kind;
    if (!p_.Expect("(")) return false;
    const auto count = p_.ExpectInteger(what, kAnyInteger);
    if (!count || !p_.Expect(")")) return false;
    property.count = *count;
    return true;
  }

  // A plain number counts milliseconds.
  bool ParseLatency(Property& property) {
    property.kind = Property::Kind::kLatencyBudget;
    if (!p_.Expect("(")) return false;
    std::optional<double> seconds;
    const support::Token number = p_.Peek();
    const bool plain = p_.AtNumber() && number.text.back() >= '0' && number.text.back() <= '9';
    std::string ignored;
    if (plain) seconds = support::ParseSeconds(std::string(number.text) + "ms", &ignored);
    if (seconds) {
      p_.Next();
    } else {
      seconds = p_.ExpectSeconds("a time such as 10ms");
    }
    if (!seconds || !p_.Expect(")")) return false;
    property.seconds = *seconds;
    return true;
  }

  bool ParseLoss() {
    p_.Next();
    const auto name = Declare("the name of the loss");
    if (!name) return false;
    Loss loss;
    loss.name = name->text;
    loss.span = name->span;
    std::map<std::string, Span> seen;
    const Read read = Block(loss.name, [&] {
      const auto term_name = p_.ExpectName("the name of a term, or 'combine'");
      if (!term_name || !p_.Expect(":")) return false;
      Once(seen, term_name->text == "combine" ? "line" : "term", *term_name);
      if (term_name->text == "combine") {
        const auto combine = p_.ExpectName("'weighted_sum'");
        if (!combine) return false;
        if (combine->text != "weighted_sum") {
          p_.ErrorUnknown("way to combine terms", *combine, {"weighted_sum"});
          return false;
        }
        return true;
      }
      Term term;
      term.name = term_name->text;
      term.span = term_name->span;
      term.weight_span = term.span;
      if (!ParseKind(term) || !ParseWeight(term)) return false;
      Attach(loss.name + "." + term.name);
      loss.terms.push_back(std::move(term));
      return true;
    });
    if (read == Read::kWell && loss.terms.empty()) {
      p_.Error(loss.span, "loss '" + loss.name + "' has no term")
          .Fix("add a line such as 'NAME: divergence(MODEL.out, DATA.FIELD), weight: 1.0'");
    }
    module_.losses.push_back(std::move(loss));
    return read != Read::kBroken;
  }

  bool ParseWeight(Term& term) {
    if (!p_.Accept(",")) return true;
    if (!p_.ExpectWord("weight") || !p_.Expect(":")) return false;
    const uint32_t begin = p_.Here();
    const auto weight = p_.ExpectReal("a weight");
    if (!weight) return false;
    term.weight = *weight;
    term.weight_span = p_.SpanFrom(begin);
    return true;
  }

  bool ParseKind(Term& term) {
    const uint32_t begin = p_.Here();
    const auto kind = p_.ExpectName("a kind of loss (" + Words(kLossKinds) + ")");
    if (!kind) return false;
    bool ok = false;
    if (kind->text == "divergence") {
      term.kind = LossKind::kDivergence;
      ok = ParseReads(term, {"predicted", "target"});
    } else if (kind->text == "reconstruction") {
      term.kind = LossKind::kReconstruction;
      ok = ParseReads(term, {"input", "decoded"});
    } else if (kind->text == "contrastive") {
      term.kind = LossKind::kContrastive;
      ok = ParseReads(term, {"anchor", "positive", "negative"});
    } else if (kind->text == "norm") {
      term.kind = LossKind::kNorm;
      ok = ParseNorm(term);
    } else if (kind->text == "constraint") {
      term.kind = LossKind::kConstraint;
      ok = p_.Expect("(") && ParseValue(term) && p_.Expect(")");
    } else if (kind->text == "custom") {
      term.kind = LossKind::kCustom;
      ok = ParseCustom(term);
    } else {
      p_.ErrorUnknown("kind of loss", *kind, kLossKinds);
    }
    term.kind_span = p_.SpanFrom(begin);
    return ok;
  }

  // References in the order of `slots`, or labelled with them.
  bool ParseReads(Term& term, const std::vector<std::string>& slots) {
    std::vector<std::optional<Ref>> reads(slots.size());
    const uint32_t begin = p_.Here();
    size_t positional = 0;
    const bool ok = p_.ParseList("(", ")", [&] {
      size_t slot = positional;
      if (const auto label = p_.AcceptLabel()) {
        slot = 0;
        while (slot < slots.size() && slots[slot] != label->text) ++slot;
        if (slot == slots.size()) {
          p_.ErrorUnknown("argument", *label, slots);
          return false;
        }
        if (reads[slot]) {
          p_.Error(label->span, "argument '" + label->text + "' is given twice");
          return false;
        }
      } else {
        while (slot < slots.size() && reads[slot]) ++slot;
        positional = slot + 1;
      }
      if (slot >= slots.size()) {
        p_.Error(p_.Peek().span, std::string(LossKindName(term.kind)) + " takes " +
                                     std::to_string(slots.size()) + " arguments: " + Words(slots));
        return false;
      }
      reads[slot] = ParseRef(p_);
      return reads[slot].has_value();
    });
    if (!ok) return false;
    for (size_t slot = 0; slot < slots.size(); ++slot) {
      if (!reads[slot]) {
        p_.Error(p_.SpanFrom(begin),
                 std::string(LossKindName(term.kind)) + " lacks its argument '" + slots[slot] + "'")
            .Label("expected (" + Words(slots) + ")");
        return false;
      }
      term.reads.push_back(*std::move(reads[slot]));
    }
    return true;
  }

  bool ParseNorm(Term& term) {
    if (!p_.Expect("(")) return false;
    if (p_.AtWord("target") && !p_.Peek(1).Is(".")) p_.AcceptLabel();
    auto target = ParseRef(p_);
    if (!target) return false;
    term.reads.push_back(*std::move(target));
    if (p_.Accept(",")) {
      if (const auto label = p_.AcceptLabel(); label && label->text != "p") {
        p_.ErrorUnknown("argument", *label, {"p"});
        return false;
      }
      const auto p = p_.ExpectReal("the exponent p of the norm");
      if (!p) return false;
      term.p = *p;
    }
    return p_.Expect(")");
  }

  bool ParseValue(Term& term) {
    auto value = ParseExpr(p_);
    if (!value) return false;
    term.value = *std::move(value);
    return true;
  }

  bool ParseCustom(Term& term) {
    if (!p_.Expect("(")) return false;
    if (p_.AtString()) {
      term.custom_file = true;
      term.custom_name = *p_.ExpectString("a file");
    } else {
      const auto name = p_.ExpectName("the name or the file of the custom loss");
      if (!name) return false;
      term.custom_name = name->text;
    }
    if (!p_.Expect(",") || !p_.ExpectWord("reads") || !p_.Expect(":")) return false;
    const bool reads = p_.ParseList("[", "]", [&] {
      auto ref = ParseRef(p_);
      if (ref) term.reads.push_back(*std::move(ref));
      return ref.has_value();
    });
    if (!reads) return false;
    if (p_.Accept(",") && !p_.At(")")) {
      if (!p_.ExpectWord("value") || !p_.Expect(":") || !ParseValue(term)) return false;
    }
    return p_.Expect(")");
  }

  bool ParseGoal() {
    const support::Token word = p_.Next();
    if (!p_.Expect(":")) return false;
    auto goal = ParseAim(/*top=*/true);
    if (goal_seen_) {
      p_.Error(word.span, "the specification has two goals", Kind::kConsistency)
          .With({module_.goal.span, "the first is here"})
          .Fix("trade several losses with pareto([…]) or train them in turn with alternate([…])");
      return true;
    }
    goal_seen_ = true;
    Attach("goal");
    if (!goal) return false;
    module_.goal = *std::move(goal);
    return true;
  }

  std::optional<Goal> ParseAim(bool top) {
    Goal goal;
    const uint32_t begin = p_.Here();
    const auto kind =
        p_.ExpectName(top ? "a goal (" + Words(kGoals) + ")" : "minimize or maximize");
    if (!kind) return std::nullopt;
    bool ok = false;
    if (kind->text == "minimize" || kind->text == "maximize") {
      goal.kind = kind->text == "minimize" ? Goal::Kind::kMinimize : Goal::Kind::kMaximize;
      ok = ParseTarget(goal);
    } else if (top && kind->text == "pareto") {
      goal.kind = Goal::Kind::kPareto;
      ok = p_.Expect("(") && p_.ParseList("[", "]", [&] {
        auto ref = ParseRef(p_);
        if (ref) goal.targets.push_back(*std::move(ref));
        return ref.has_value();
      }) && p_.Expect(")");
    } else if (top && kind->text == "alternate") {
      goal.kind = Goal::Kind::kAlternate;
      ok = p_.Expect("(") && p_.ParseList("[", "]", [&] {
        auto turn = ParseAim(/*top=*/false);
        if (turn) goal.turns.push_back(*std::move(turn));
        return turn.has_value();
      }) && p_.Expect(")");
    } else if (top) {
      p_.ErrorUnknown("goal", *kind, kGoals);
    } else {
      p_.ErrorUnknown("turn of alternate", *kind, {"minimize", "maximize"});
    }
    if (!ok) return std::nullopt;
    goal.span = p_.SpanFrom(begin);
    return goal;
  }

  bool ParseTarget(Goal& goal) {
    if (!p_.Expect("(")) return false;
    auto target = ParseRef(p_);
    if (!target) return false;
    goal.targets.push_back(*std::move(target));
    if (p_.Accept(",")) {
      if (!p_.ExpectWord("models") || !p_.Expect(":")) return false;
      const uint32_t begin = p_.Here();
      const bool models = p_.ParseList("[", "]", [&] {
        const auto name = p_.ExpectName("the name of a model");
        if (!name) return false;
        goal.models.push_back(name->text);
        goal.model_spans.push_back(name->span);
        return true;
      });
      if (!models) return false;
      if (goal.models.empty()) {
        p_.Error(p_.SpanFrom(begin), "a goal that updates no model does nothing");
      }
    }
    return p_.Expect(")");
  }

  // ---- Blocks, names, annotations -----------------------------------------------------------
  // How a block was read. After a flawed one, the parser stands past its closing bracket.
  enum class Read { kWell, kFlawed, kBroken };

  // `{ line line … }`. Reports a block that the next declaration interrupts.
  template <class Line>
  Read Block(const std::string& path, const Line& line) {
    // Annotations written before the declaration.
    Attach(path);
    const Span brace = p_.Peek().span;
    if (!p_.Expect("{")) return Read::kBroken;
    const int depth = p_.bracket_depth();
    Read read = Read::kWell;
    while (!p_.At("}")) {
      if (p_.AtEnd() || AtNextDeclaration()) {
        p_.ErrorExpected("'}'").With({brace, "to close this '{'"});
        return Read::kBroken;
      }
      const uint32_t begin = p_.Here();
      if (support::AtEscapeHatch(p_)) {
        auto hatch = support::ParseEscapeHatch(p_, "l3");
        if (hatch) {
          pending_.push_back(*std::move(hatch));
          continue;
        }
      } else if (line()) {
        continue;
      }
      read = Read::kFlawed;
      p_.SkipToField(depth, begin);
    }
    Attach(path);
    p_.Next();
    return read;
  }

  // At the left margin, a keyword that what follows makes a declaration and no field.
  bool AtNextDeclaration() {
    const support::Token token = p_.Peek();
    if (!token.first_on_line || p_.source().Position(token.span.begin).column != 1) return false;
    if (token.IsWord("goal")) return p_.Peek(1).Is(":");
    for (const std::string& keyword : keywords_) {
      if (token.IsWord(keyword)) return p_.Peek(1).kind == support::TokenKind::kWord;
    }
    return false;
  }

  std::optional<Name> Declare(const char* what) {
    auto name = p_.ExpectName(what);
    if (!name) return std::nullopt;
    const auto [first, inserted] = declared_.emplace(name->text, name->span);
    if (!inserted) {
      p_.Error(name->span, "'" + name->text + "' is declared twice", Kind::kSafety)
          .With({first->second, "first declared here"})
          .Fix("data, models and losses share one set of names; rename one of the two");
    }
    return name;
  }

  void Once(std::map<std::string, Span>& seen, const char* what, const Name& name) {
    const auto [first, inserted] = seen.emplace(name.text, name.span);
    if (inserted) return;
    p_.Error(name.span, std::string(what) + " '" + name.text + "' stands twice", Kind::kSafety)
        .With({first->second, "first here"});
  }

  void Attach(const std::string& path) {
    if (pending_.empty()) return;
    auto& hints = module_.hints[path];
    for (EscapeHatch& hatch : pending_) support::AddEscapeHatch(p_, std::move(hatch), hints);
    pending_.clear();
  }

  void RefusePending() {
    for (const EscapeHatch& hatch : pending_) {
      p_.Error(hatch.span, "this annotation stands before nothing that it could apply to");
    }
    pending_.clear();
  }

  Span EndOfText() {
    const auto size = static_cast<uint32_t>(p_.source().text().size());
    const Span last = p_.SpanFrom(0);
    return size == 0 || last.end == 0 ? Span{} : Span{last.end - 1, last.end};
  }

  static std::string Words(const std::vector<std::string>& words) {
    std::string text;
    for (size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : ", ") + words[i];
    return text;
  }

  ParserBase& p_;
  Module& module_;
  const Extension& extension_;
  std::vector<std::string> keywords_;
  std::map<std::string, Span> declared_;
  std::vector<EscapeHatch> pending_;  // annotations whose place is not known yet
  bool goal_seen_ = false;
};

}  // namespace

const std::vector<std::string>& PropertyForms() { return kProperties; }
const std::vector<std::string>& LossForms() { return kLossKinds; }
const std::vector<std::string>& GoalForms() { return kGoals; }

std::optional<Ref> ParseRef(ParserBase& parser) {
  ParserBase::Nesting nesting(parser);
  if (!nesting.ok()) return std::nullopt;
  const uint32_t begin = parser.Here();
  const auto owner = parser.ExpectName("a reference such as mnist.images");
  if (!owner) return std::nullopt;
  Ref ref;
  ref.owner = owner->text;
  if (parser.At("(")) {
    ref.member = "out";
    const bool arguments = parser.ParseList("(", ")", [&] {
      auto argument = ParseRef(parser);
      if (argument) ref.arguments.push_back(*std::move(argument));
      return argument.has_value();
    });
    if (!arguments) return std::nullopt;
    if (ref.arguments.empty()) {
      parser.Error(parser.SpanFrom(begin), "'" + ref.owner + "' is applied to nothing")
          .Fix("write '" + ref.owner + ".out'");
      return std::nullopt;
    }
  } else if (parser.Accept(".")) {
    const auto member = parser.ExpectName("a name after '.'");
    if (!member) return std::nullopt;
    ref.member = member->text;
  }
  ref.span = parser.SpanFrom(begin);
  return ref;
}

bool ParseDeclarations(ParserBase& parser, Module& module, const Extension& extension) {
  const size_t before = parser.diagnostics().all().size();
  DeclarationParser(parser, module, extension).Run();
  // After a syntax error a name may be missing only because its declaration could not be read.
  if (parser.diagnostics().all().size() > before) return false;
  return ResolveReferences(module, parser.diagnostics());
}

std::optional<Module> Parse(const support::SourceFile& source, support::Diagnostics& diagnostics) {
  const size_t before = diagnostics.all().size();
  ParserBase parser(source, diagnostics);
  parser.CheckHeader("l3");
  Module module;
  const bool resolved = ParseDeclarations(parser, module);
  // The header and the check of the bytes report too.
  if (!resolved || parser.stopped() || diagnostics.all().size() > before) return std::nullopt;
  return module;
}

}  // namespace l3c::l3
