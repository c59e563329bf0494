// Text → L2 module.
//
//   module   = { L3 declaration | methods }
//   methods  = "methods" "for" NAME "{" { line } "}"             each line at most once
//   line     = "sample" ":" form  | "infer" ":" infer | "backward" ":" form | "update" ":" form
//            | "loss" ":" ( form | "[" NAME ":" form {"," NAME ":" form} "]" )
//            | "phases" [":"] "[" phase {"," phase} "]" | "seed" ":" integer
//   infer    = ("sequential" | "residual") "[" infer {"," infer} "]" | form
//            | NAME "(" [ label ":" ] ( infer | "[" infer {"," infer} "]" | value ) {"," …} ")"
//                                                               infer_methods.h
//   phase    = NAME "(" ("epochs" | "steps") ":" n [, "eval" ":" n] [, "checkpoint" ":" n]
//                       [, "frozen" ":" "[" NAME {"," NAME} "]"] [, "update" ":" form] ")"
//   form     = NAME [ "(" args ")" ]                             form.h
//
// sample, infer, backward and update are required; the rest has defaults.
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "layers/l2/expand.h"
#include "layers/l2/form.h"
#include "layers/l2/infer.h"
#include "layers/l2/infer_methods.h"
#include "layers/l2/inputs.h"
#include "layers/l2/ir.h"
#include "layers/l2/objective.h"
#include "layers/l3/domain.h"
#include "layers/l3/parse.h"
#include "layers/support/escape_hatch_list.h"
#include "layers/support/parser.h"
#include "layers/support/printer.h"

namespace l3c::l2 {
namespace {

using support::Kind;
using support::Name;
using support::ParserBase;

const std::vector<std::string> kLines = {"sample", "infer",  "backward", "update",
                                         "loss",   "phases", "seed"};

constexpr int64_t kMaxCount = int64_t{1} << 40;

// A loss as written: the term's name is empty in the short form.
struct WrittenLoss {
  std::string term;
  Span span;
  Form form;
};

struct WrittenMethods {
  Methods methods;
  Span model_span;
  std::vector<WrittenLoss> losses;
};

class MethodsParser {
 public:
  explicit MethodsParser(ParserBase& parser) : parser_(parser) {}

  // At the word `methods`.
  bool Parse(std::vector<WrittenMethods>& all) {
    const uint32_t begin = parser_.Here();
    parser_.Next();
    if (!parser_.ExpectWord("for")) return false;
    auto model = parser_.ExpectName("the name of a model");
    if (!model || !parser_.Expect("{")) return false;
    written_.methods.model = model->text;
    written_.model_span = model->span;
    const int depth = parser_.bracket_depth();
    bool ok = true;
    while (!parser_.At("}") && !parser_.AtEnd()) {
      const uint32_t line = parser_.Here();
      if (!ParseLine()) {
        ok = false;
        parser_.SkipToField(depth, line);
      }
    }
    if (!parser_.Expect("}")) return false;
    written_.methods.span = parser_.SpanFrom(begin);
    for (const char* required : {"sample", "infer", "backward", "update"}) {
      if (ok && !seen_.contains(required)) {
        parser_
            .Error(model->span, "the methods for '" + model->text + "' lack '" + required + "'",
                   Kind::kSafety)
            .Fix("add a line '" + std::string(required) + ": …'");
        ok = false;
      }
    }
    if (written_.methods.phases.empty()) written_.methods.phases.push_back(DefaultPhase());
    if (ok) all.push_back(std::move(written_));
    return ok;
  }

 private:
  bool ParseLine() {
    auto key = parser_.ExpectName("one of " + support::Join(kLines));
    if (!key) return false;
    if (std::find(kLines.begin(), kLines.end(), key->text) == kLines.end()) {
      parser_.ErrorUnknown("line of methods", *key, kLines);
      return false;
    }
    if (!seen_.insert(key->text).second) {
      parser_.Error(key->span, "'" + key->text + "' is given twice");
      return false;
    }
    if (key->text == "phases") {
      parser_.Accept(":");
      return ParsePhases();
    }
    if (!parser_.Expect(":")) return false;
    if (key->text == "sample") return Read(Family::kSample, written_.methods.sample);
    if (key->text == "backward") return Read(Family::kBackward, written_.methods.backward);
    if (key->text == "update") return Read(Family::kUpdate, written_.methods.update);
    if (key->text == "loss") return ParseLoss();
    if (key->text == "seed") {
      auto seed = parser_.ExpectInteger("a seed");
      if (seed) written_.methods.seed = static_cast<uint64_t>(*seed);
      return seed.has_value();
    }
    return ParseInfer();
  }

  bool Read(Family family, Form& form) {
    auto read = ParseForm(parser_, family);
    if (read) form = std::move(*read);
    return read.has_value();
  }

  bool ParseLoss() {
    written_.methods.losses_written = true;
    auto one = [&](std::string term, Span span) {
      Form form;
      if (!Read(Family::kLoss, form)) return false;
      written_.losses.push_back({std::move(term), span, std::move(form)});
      return true;
    };
    if (!parser_.At("[")) return one("", {});
    return parser_.ParseList("[", "]", [&] {
      auto term = parser_.ExpectName("the name of a term of the loss");
      return term && parser_.Expect(":") && one(term->text, term->span);
    });
  }

  bool ParsePhases() {
    written_.methods.phases_written = true;
    std::set<std::string> names;
    return parser_.ParseList("[", "]", [&] {
      Phase phase;
      auto name = parser_.ExpectName("the name of a phase");
      if (!name) return false;
      phase.name = name->text;
      if (!names.insert(name->text).second) {
        parser_.Error(name->span, "there is a phase '" + name->text + "' already", Kind::kSafety);
        return false;
      }
      std::set<std::string> given;
      const bool ok = parser_.ParseList("(", ")", [&] {
        auto label = parser_.AcceptLabel();
        if (!label) {
          parser_.ErrorExpected(
              "'epochs:', 'steps:', 'eval:', 'checkpoint:', 'frozen:' or 'update:'");
          return false;
        }
        if (label->text == "frozen" || label->text == "update") {
          if (!given.insert(label->text).second) {
            parser_.Error(label->span, "'" + label->text + "' is given twice");
            return false;
          }
          if (label->text == "update") return Read(Family::kUpdate, phase.update.emplace_back());
          return parser_.ParseList("[", "]", [&] {
            auto layer = parser_.ExpectName("the name of a layer, such as linear1");
            if (layer) phase.frozen.push_back(layer->text);
            return layer.has_value();
          });
        }
        int64_t* field = label->text == "epochs"       ? &phase.epochs
                         : label->text == "steps"      ? &phase.steps
                         : label->text == "eval"       ? &phase.eval_every
                         : label->text == "checkpoint" ? &phase.checkpoint_every
                                                       : nullptr;
        if (field == nullptr) {
          parser_.ErrorUnknown("argument of a phase", *label,
                               {"epochs", "steps", "eval", "checkpoint", "frozen", "update"});
          return false;
        }
        if (!given.insert(label->text).second) {
          parser_.Error(label->span, "'" + label->text + "' is given twice");
          return false;
        }
        const bool length = label->text == "epochs" || label->text == "steps";
        auto count = parser_.ExpectInteger(
            length ? "how many " + label->text : "a number of epochs", length ? 1 : 0, kMaxCount);
        if (count) *field = *count;
        return count.has_value();
      });
      if (!ok) return false;
      phase.span = parser_.SpanFrom(name->span.begin);
      if (given.contains("epochs") == given.contains("steps")) {
        parser_.Error(phase.span, "phase '" + phase.name + "' needs one of 'epochs' and 'steps'",
                      Kind::kResourceBound);
        return false;
      }
      written_.methods.phases.push_back(std::move(phase));
      return true;
    });
  }

  bool ParseInfer() {
    InferForm form;
    if (!ParseInferForm(form)) return false;
    InferBuilder builder;
    InferLowering lowering(builder, parser_.diagnostics());
    const auto output = lowering.Lower(form, builder.input());
    if (!output) return false;
    FileHatches(form);
    written_.methods.infer = builder.Finish(*output, std::move(form));
    return true;
  }

  // Annotations are filed under the layers' names, once these are known.
  void FileHatches(InferForm& form) {
    if (!form.hatches.empty()) hatches_.emplace_back(form.node, std::move(form.hatches));
    for (InferForm& item : form.items) FileHatches(item);
  }

  bool ParseInferForm(InferForm& form) {
    ParserBase::Nesting nesting(parser_);
    if (!nesting.ok()) return false;
    while (support::AtEscapeHatch(parser_)) {
      auto hatch = support::ParseEscapeHatch(parser_, "l2");
      if (!hatch) return false;
      support::AddEscapeHatch(parser_, std::move(*hatch), form.hatches);
    }
    const uint32_t begin = parser_.Here();
    const bool sequential = parser_.AtWord("sequential");
    const bool brackets = sequential || parser_.AtWord("residual");
    const InferEntry* method =
        brackets || !parser_.AtName() ? nullptr : FindInferMethod(parser_.Peek().text);
    if (!brackets && method == nullptr) {
      auto layer = ParseForm(parser_, Family::kLayer);
      if (!layer) return false;
      form.kind = InferForm::Kind::kLayer;
      form.span = layer->span;
      form.written = {std::move(*layer)};
      return true;
    }
    if (!form.hatches.empty()) {
      parser_.Error(form.hatches.front().span, "an annotation of the network stands before a layer")
          .Fix("move it before the layer that it is about");
      return false;
    }
    parser_.Next();
    if (method != nullptr) return ParseCall(*method, begin, form);
    form.kind = sequential ? InferForm::Kind::kSequential : InferForm::Kind::kResidual;
    const bool parentheses = parser_.Accept("(");
    const Span opened = parser_.Peek().span;
    if (!ParseItems(form) || (parentheses && !parser_.Expect(")"))) return false;
    form.span = parser_.SpanFrom(begin);
    if (!form.items.empty()) return true;
    parser_.Error(opened, "a network needs at least one layer");
    return false;
  }

  // `[infer, …]`, added to the items.
  bool ParseItems(InferForm& form) {
    return parser_.ParseList("[", "]", [&] {
      InferForm item;
      if (!ParseInferForm(item)) return false;
      form.items.push_back(std::move(item));
      return true;
    });
  }

  // `NAME(part: infer, argument: value, …)`, after the name.
  bool ParseCall(const InferEntry& method, uint32_t begin, InferForm& form) {
    const Entry& entry = method.form;
    form.kind = InferForm::Kind::kCall;
    Form call;
    call.name = entry.name;
    call.args.resize(entry.args.size());
    std::vector<InferForm> parts(method.parts.size());
    std::set<std::string> given;
    std::vector<std::string> names;
    for (const InferPart& part : method.parts) names.push_back(part.label);
    for (const Arg& arg : entry.args) names.push_back(arg.name);
    const bool ok = parser_.ParseList("(", ")", [&] {
      auto label = parser_.AcceptLabel();
      // `steps: until(…)` and `until(…)` by itself.
      if (parser_.AtWord("until")) label = Name{"until", parser_.Next().span};
      if (!label) {
        parser_.ErrorExpected("'" + support::Join(names, ":' or '") + ":'");
        return false;
      }
      const size_t index =
          static_cast<size_t>(std::find(names.begin(), names.end(), label->text) - names.begin());
      if (index == names.size()) {
        parser_.ErrorUnknown("argument of " + entry.name, *label, names);
        return false;
      }
      if (!given.insert(label->text).second) {
        parser_.Error(label->span, "'" + label->text + "' is given twice");
        return false;
      }
      if (index >= method.parts.size()) {
        const size_t arg = index - method.parts.size();
        auto value = ParseArgument(parser_, entry, entry.args[arg]);
        if (value) call.args[arg] = std::move(*value);
        return value.has_value();
      }
      if (!method.parts[index].list) return ParseInferForm(parts[index]);
      const Span opened = parser_.Peek().span;
      if (!ParseItems(parts[index])) return false;
      if (parts[index].items.size() >= 2) return true;
      parser_.Error(opened, "the " + label->text + " of " + entry.name + " are at least two");
      return false;
    });
    if (!ok) return false;
    form.span = call.span = parser_.SpanFrom(begin);
    for (size_t i = 0; i < names.size(); ++i) {
      if (given.contains(names[i])) continue;
      const bool part = i < method.parts.size();
      if (!part && entry.args[i - method.parts.size()].fallback) {
        call.args[i - method.parts.size()] = *entry.args[i - method.parts.size()].fallback;
        continue;
      }
      parser_.Error(form.span, entry.name + " needs '" + names[i] + "'");
      return false;
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!method.parts[i].list) {
        form.items.push_back(std::move(parts[i]));
        continue;
      }
      for (InferForm& item : parts[i].items) form.items.push_back(std::move(item));
    }
    form.written = {std::move(call)};
    return true;
  }

 public:
  // Annotations by node, filed under the nodes' names once these are final.
  std::vector<std::pair<uint32_t, std::vector<support::EscapeHatch>>>& hatches() {
    return hatches_;
  }

 private:
  ParserBase& parser_;
  WrittenMethods written_;
  std::set<std::string> seen_;
  std::vector<std::pair<uint32_t, std::vector<support::EscapeHatch>>> hatches_;
};

// Chooses the loss of each term: as written, else the default.
bool ResolveLosses(const Objective& objective, WrittenMethods& written,
                   support::Diagnostics& diagnostics) {
  Methods& methods = written.methods;
  methods.losses = DefaultLosses(objective);
  std::vector<std::string> terms;
  for (const LossChoice& choice : methods.losses) terms.push_back(choice.term);
  for (WrittenLoss& loss : written.losses) {
    size_t index = 0;
    if (loss.term.empty()) {
      if (terms.size() != 1) {
        diagnostics
            .Error(Kind::kConsistency, loss.form.span,
                   "the objective has " + std::to_string(terms.size()) +
                       " terms whose loss can be chosen; name the term")
            .Fix(terms.empty()
                     ? "leave out 'loss'"
                     : "write 'loss: [" + terms.front() + ": " + loss.form.name + ", …]'");
        return false;
      }
    } else {
      index = std::find(terms.begin(), terms.end(), loss.term) - terms.begin();
      if (index == terms.size()) {
        auto& diagnostic = diagnostics.Error(
            Kind::kSafety, loss.span,
            "the objective has no term '" + loss.term + "' whose loss can be chosen");
        const std::string close = support::ClosestMatch(loss.term, terms);
        if (!close.empty()) diagnostic.Fix("replace with '" + close + "'");
        return false;
      }
    }
    const size_t match = index;
    size_t at = 0;
    for (const ObjectiveTerm& term : objective.terms) {
      if (!term.has_loss || at++ != match) continue;
      if (FindLoss(loss.form.name)->accepts(term.target_kind)) continue;
      std::vector<std::string> fit;
      for (const LossEntry& entry : AllLosses()) {
        if (entry.accepts(term.target_kind)) fit.push_back(entry.form.name);
      }
      diagnostics
          .Error(Kind::kConsistency, loss.form.span,
                 loss.form.name + " cannot compare " + l3::PrintRef(term.predicted) + " with " +
                     l3::PrintRef(term.target))
          .Label("fits: " + support::Join(fit))
          .With({term.term->span, "the term is declared here"});
      return false;
    }
    methods.losses[match].form = std::move(loss.form);
  }
  return true;
}

bool Resolve(Module& module, WrittenMethods& written, support::Diagnostics& diagnostics) {
  Methods& methods = written.methods;
  const l3::Model* model = module.spec.FindModel(methods.model);
  if (model == nullptr) {
    std::vector<std::string> names;
    for (const l3::Model& m : module.spec.models) names.push_back(m.name);
    auto& diagnostic = diagnostics.Error(Kind::kSafety, written.model_span,
                                         "there is no model '" + methods.model + "'");
    const std::string close = support::ClosestMatch(methods.model, names);
    if (!close.empty()) {
      diagnostic.Fix("replace with '" + close + "'");
    } else {
      diagnostic.Label("models: " + support::Join(names));
    }
    return false;
  }
  if (module.FindMethods(methods.model) != nullptr) {
    diagnostics.Error(Kind::kSafety, written.model_span,
                      "there are methods for '" + methods.model + "' already");
    return false;
  }
  auto objective = ResolveObjective(module.spec, methods.model, diagnostics);
  if (!objective) return false;
  return ResolveLosses(*objective, written, diagnostics) &&
         PropagateShapes(methods.infer, InputShape(module.spec, *model), diagnostics);
}

}  // namespace

std::optional<Module> ParseModule(const support::SourceFile& source,
                                  support::Diagnostics& diagnostics) {
  ParserBase parser(source, diagnostics);
  parser.CheckHeader("l2");
  Module module;
  std::vector<WrittenMethods> all;
  l3::Extension extension;
  extension.keywords = {"methods"};
  extension.parse = [&](ParserBase& at, const l3::Module&) {
    MethodsParser methods(at);
    const size_t before = all.size();
    if (!methods.Parse(all) || all.size() == before) return false;
    Methods& parsed = all.back().methods;
    for (auto& [node, hatches] : methods.hatches()) {
      parsed.hints[parsed.model + ".infer." + parsed.infer.nodes[node].name] = std::move(hatches);
    }
    return true;
  };
  if (!l3::ParseDeclarations(parser, module.spec, extension) || diagnostics.has_errors()) {
    return std::nullopt;
  }
  bool ok = true;
  for (WrittenMethods& written : all) {
    if (Resolve(module, written, diagnostics)) {
      module.methods.push_back(std::move(written.methods));
    } else {
      ok = false;
    }
  }
  for (const l3::Model& model : module.spec.models) {
    if (ok && module.FindMethods(model.name) == nullptr) {
      diagnostics.Error(Kind::kSafety, model.span, "there are no methods for '" + model.name + "'")
          .Fix("add 'methods for " + model.name + " { … }'");
      ok = false;
    }
  }
  if (!ok) return std::nullopt;
  std::stable_sort(module.methods.begin(), module.methods.end(),
                   [&](const Methods& a, const Methods& b) {
                     return module.spec.FindModel(a.model) < module.spec.FindModel(b.model);
                   });
  return module;
}

}  // namespace l3c::l2
