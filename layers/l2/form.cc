#include "layers/l2/form.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "layers/l2/backward.h"
#include "layers/l2/infer_methods.h"
#include "layers/l2/layers.h"
#include "layers/l2/losses.h"
#include "layers/l2/methods.h"
#include "layers/l2/updates.h"
#include "layers/support/parser.h"
#include "layers/support/printer.h"
#include "layers/support/units.h"

namespace l3c::l2 {
namespace {

// The rest of the language, which has no entries yet.
std::vector<std::string_view> ReservedNames(Family family) {
  switch (family) {
    case Family::kSample:
      return {};
    case Family::kLayer:
    case Family::kInfer:
    case Family::kNorm:
    case Family::kCurriculum:
      return {};
    case Family::kBackward:
      return {};
    case Family::kUpdate:
      return {};
    case Family::kLoss:
      return {"contrastive"};
  }
  return {};
}

std::string ArgWhat(const Entry& entry, const Arg& arg) {
  return "the '" + arg.name + "' of " + entry.name;
}

std::string Range(const Arg& arg) {
  const bool integer = arg.kind == ArgKind::kInteger;
  auto number = [&](double v) {
    return integer ? support::PrintInteger(static_cast<int64_t>(v)) : support::PrintReal(v);
  };
  std::string text = (arg.above_min ? "above " : "at least ") + number(arg.min);
  if (arg.max == std::numeric_limits<double>::max()) return text;
  return text + (arg.below_max ? " and below " : " and at most ") + number(arg.max);
}

std::optional<Form> ParseRecord(support::ParserBase& parser, const Entry& record);

std::optional<Value> ParseEdges(support::ParserBase& parser, const Entry& entry, const Arg& arg) {
  constexpr int64_t kMaxNode = 1 << 20;
  if (!parser.At("[")) {
    auto word = parser.ExpectName(ArgWhat(entry, arg) + ": " + support::Join(arg.words, " | ") +
                                  " | [[a, b], …]");
    if (!word) return std::nullopt;
    if (std::find(arg.words.begin(), arg.words.end(), word->text) == arg.words.end()) {
      parser.ErrorUnknown(arg.name + " of " + entry.name, *word, arg.words);
      return std::nullopt;
    }
    return Value(word->text);
  }
  std::vector<int64_t> ends;
  const bool ok = parser.ParseList("[", "]", [&] {
    const uint32_t begin = parser.Here();
    const size_t before = ends.size();
    const bool pair = parser.ParseList("[", "]", [&] {
      auto end = parser.ExpectInteger("a node's number", 0, kMaxNode);
      if (end) ends.push_back(*end);
      return end.has_value();
    });
    if (pair && ends.size() != before + 2) {
      parser.Error(parser.SpanFrom(begin), "an edge has two ends");
      return false;
    }
    return pair;
  });
  if (!ok) return std::nullopt;
  return Value(std::move(ends));
}

}  // namespace

std::optional<Value> ParseArgument(support::ParserBase& parser, const Entry& entry,
                                   const Arg& arg) {
  const std::string what = ArgWhat(entry, arg);
  switch (arg.kind) {
    case ArgKind::kInteger: {
      const int64_t max =
          arg.max >= 9e18 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(arg.max);
      auto value = parser.ExpectInteger(what, static_cast<int64_t>(arg.min), max);
      if (!value) return std::nullopt;
      return Value(*value);
    }
    case ArgKind::kReal: {
      const uint32_t begin = parser.Here();
      auto value = parser.ExpectReal(what);
      if (!value) return std::nullopt;
      // Written so that a NaN is out of range.
      const bool above = arg.above_min ? *value > arg.min : *value >= arg.min;
      const bool below = arg.below_max ? *value < arg.max : *value <= arg.max;
      if (!above || !below) {
        parser
            .Error(parser.SpanFrom(begin), what + " is " + support::PrintReal(*value),
                   support::Kind::kConsistency)
            .Label("must be " + Range(arg));
        return std::nullopt;
      }
      return Value(*value);
    }
    case ArgKind::kBool: {
      auto value = parser.ExpectBool(what);
      if (!value) return std::nullopt;
      return Value(*value);
    }
    case ArgKind::kWord: {
      auto word = parser.ExpectName(what + ": " + support::Join(arg.words, " | "));
      if (!word) return std::nullopt;
      if (std::find(arg.words.begin(), arg.words.end(), word->text) == arg.words.end()) {
        parser.ErrorUnknown(arg.name + " of " + entry.name, *word, arg.words);
        return std::nullopt;
      }
      return Value(word->text);
    }
    case ArgKind::kName: {
      auto name = parser.ExpectName(what);
      if (!name) return std::nullopt;
      return Value(name->text);
    }
    case ArgKind::kPredicate: {
      auto predicate = l3::ParseExpr(parser);
      if (!predicate) return std::nullopt;
      return Value(std::vector<l3::Expr>{std::move(*predicate)});
    }
    case ArgKind::kNames: {
      std::vector<std::string> names;
      const bool ok = parser.ParseList("[", "]", [&] {
        auto name = parser.ExpectName("a name in " + what);
        if (name) names.push_back(name->text);
        return name.has_value();
      });
      if (!ok) return std::nullopt;
      return Value(std::move(names));
    }
    case ArgKind::kEdges:
      return ParseEdges(parser, entry, arg);
    case ArgKind::kRecords: {
      std::vector<Form> records;
      const Entry* record = FindEntry(arg.family, "");
      const bool ok = parser.ParseList("[", "]", [&] {
        auto form = ParseRecord(parser, *record);
        if (form) records.push_back(std::move(*form));
        return form.has_value();
      });
      if (!ok) return std::nullopt;
      return Value(std::move(records));
    }
    case ArgKind::kForm: {
      support::ParserBase::Nesting nesting(parser);
      if (!nesting.ok()) return std::nullopt;
      auto form = ParseForm(parser, arg.family);
      if (!form) return std::nullopt;
      return Value(std::vector<Form>{std::move(*form)});
    }
  }
  return std::nullopt;
}

namespace {
std::string PrintRecord(const Form& form, const Entry& record);
}  // namespace

std::string PrintArgument(const Value& value, const Arg& arg) {
  switch (arg.kind) {
    case ArgKind::kInteger:
      return support::PrintInteger(std::get<int64_t>(value));
    case ArgKind::kReal:
      return support::PrintReal(std::get<double>(value));
    case ArgKind::kBool:
      return std::get<bool>(value) ? "true" : "false";
    case ArgKind::kWord:
    case ArgKind::kName:
      return std::get<std::string>(value);
    case ArgKind::kForm:
      return PrintForm(std::get<std::vector<Form>>(value).front(), arg.family);
    case ArgKind::kPredicate:
      return l3::PrintExpr(std::get<std::vector<l3::Expr>>(value).front());
    case ArgKind::kNames:
      return "[" + support::Join(std::get<std::vector<std::string>>(value)) + "]";
    case ArgKind::kEdges: {
      if (const auto* word = std::get_if<std::string>(&value)) return *word;
      std::vector<std::string> pairs;
      const auto& ends = std::get<std::vector<int64_t>>(value);
      for (size_t i = 0; i + 1 < ends.size(); i += 2) {
        pairs.push_back("[" + std::to_string(ends[i]) + ", " + std::to_string(ends[i + 1]) + "]");
      }
      return "[" + support::Join(pairs) + "]";
    }
    case ArgKind::kRecords: {
      std::vector<std::string> records;
      const Entry& record = *FindEntry(arg.family, "");
      for (const Form& form : std::get<std::vector<Form>>(value)) {
        records.push_back(PrintRecord(form, record));
      }
      return "[" + support::Join(records) + "]";
    }
  }
  return {};
}

bool SameArgument(const Value& a, const Value& b) {
  if (a.index() != b.index()) return false;
  if (const auto* forms = std::get_if<std::vector<Form>>(&a)) {
    const auto& others = std::get<std::vector<Form>>(b);
    return std::equal(forms->begin(), forms->end(), others.begin(), others.end(), SameForm);
  }
  if (const auto* exprs = std::get_if<std::vector<l3::Expr>>(&a)) {
    const auto& others = std::get<std::vector<l3::Expr>>(b);
    return std::equal(exprs->begin(), exprs->end(), others.begin(), others.end(), l3::SameExpr);
  }
  if (const auto* names = std::get_if<std::vector<std::string>>(&a)) {
    return *names == std::get<std::vector<std::string>>(b);
  }
  if (const auto* ends = std::get_if<std::vector<int64_t>>(&a)) {
    return *ends == std::get<std::vector<int64_t>>(b);
  }
  if (const auto* i = std::get_if<int64_t>(&a)) return *i == std::get<int64_t>(b);
  if (const auto* d = std::get_if<double>(&a)) return *d == std::get<double>(b);
  if (const auto* f = std::get_if<bool>(&a)) return *f == std::get<bool>(b);
  return std::get<std::string>(a) == std::get<std::string>(b);
}

namespace {

// The arguments between the parentheses; `form.args` has one slot for each argument of the entry.
bool ParseArguments(support::ParserBase& parser, const Entry& entry, Form& form,
                    std::vector<bool>& given, const char* open = "(", const char* close = ")") {
  size_t next_positional = 0;
  return parser.ParseList(open, close, [&] {
    const uint32_t begin = parser.Here();
    size_t index = 0;
    if (auto label = parser.AcceptLabel()) {
      std::vector<std::string> names;
      for (const Arg& arg : entry.args) names.push_back(arg.name);
      index = std::find(names.begin(), names.end(), label->text) - names.begin();
      if (index == names.size()) {
        if (names.empty()) {
          parser.Error(label->span, entry.name + " takes no argument");
        } else {
          parser.ErrorUnknown("argument of " + entry.name, *label, names);
        }
        return false;
      }
    } else {
      while (next_positional < entry.args.size() &&
             (!entry.args[next_positional].positional || given[next_positional])) {
        ++next_positional;
      }
      if (next_positional == entry.args.size()) {
        std::vector<std::string> named;
        for (size_t i = 0; i < entry.args.size(); ++i) {
          if (!given[i]) named.push_back(entry.args[i].name + ":");
        }
        if (named.empty()) {
          parser.Error(parser.Peek().span, "too many arguments for " + entry.name)
              .Label("it takes " + std::to_string(entry.args.size()));
        } else {
          parser.ErrorExpected("'" + support::Join(named, "' or '") + "'");
        }
        return false;
      }
      index = next_positional;
    }
    if (given[index]) {
      parser.Error(parser.SpanFrom(begin), ArgWhat(entry, entry.args[index]) + " is given twice");
      return false;
    }
    auto value = ParseArgument(parser, entry, entry.args[index]);
    if (!value) return false;
    given[index] = true;
    form.args[index] = std::move(*value);
    return true;
  });
}

// Fills in defaults; reports what is missing.
bool Complete(support::ParserBase& parser, const Entry& entry, Form& form,
              const std::vector<bool>& given) {
  for (size_t i = 0; i < entry.args.size(); ++i) {
    if (given[i]) continue;
    const Arg& arg = entry.args[i];
    if (!arg.fallback) {
      parser
          .Error(form.span,
                 (entry.name.empty() ? "this" : entry.name) + " needs '" + arg.name + "'")
          .Label(arg.kind == ArgKind::kWord ? "one of " + support::Join(arg.words) : "");
      return false;
    }
    form.args[i] = *arg.fallback;
  }
  return true;
}

// `{ name: value, … }`
std::optional<Form> ParseRecord(support::ParserBase& parser, const Entry& record) {
  const uint32_t begin = parser.Here();
  Form form;
  form.args.resize(record.args.size());
  std::vector<bool> given(record.args.size(), false);
  if (!ParseArguments(parser, record, form, given, "{", "}")) return std::nullopt;
  form.span = parser.SpanFrom(begin);
  if (!Complete(parser, record, form, given)) return std::nullopt;
  return form;
}

// All arguments but those that have their default, with labels.
std::vector<std::string> PrintedArguments(const Form& form, const Entry& entry) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < entry.args.size(); ++i) {
    const Arg& arg = entry.args[i];
    if (arg.fallback && SameArgument(*arg.fallback, form.args[i])) continue;
    const std::string value = PrintArgument(form.args[i], arg);
    parts.push_back(arg.positional ? value : arg.name + ": " + value);
  }
  return parts;
}

std::string PrintRecord(const Form& form, const Entry& record) {
  return "{ " + support::Join(PrintedArguments(form, record)) + " }";
}

}  // namespace

std::string_view FamilyName(Family family) {
  switch (family) {
    case Family::kSample:
      return "sample method";
    case Family::kInfer:
      return "network";
    case Family::kCurriculum:
      return "stage of a curriculum";
    case Family::kLayer:
      return "layer";
    case Family::kNorm:
      return "norm";
    case Family::kBackward:
      return "backward method";
    case Family::kUpdate:
      return "update";
    case Family::kLoss:
      return "loss";
  }
  return {};
}

Arg Arg::Integer(std::string name, int64_t min, int64_t max) {
  Arg arg;
  arg.name = std::move(name);
  arg.kind = ArgKind::kInteger;
  arg.min = static_cast<double>(min);
  arg.max = static_cast<double>(max);
  return arg;
}
Arg Arg::Real(std::string name, double min, double max) {
  Arg arg;
  arg.name = std::move(name);
  arg.kind = ArgKind::kReal;
  arg.min = min;
  arg.max = max;
  return arg;
}
Arg Arg::Flag(std::string name, bool fallback) {
  Arg arg;
  arg.name = std::move(name);
  arg.kind = ArgKind::kBool;
  arg.fallback = fallback;
  return arg;
}
Arg Arg::Word(std::string name, std::vector<std::string> words) {
  Arg arg;
  arg.name = std::move(name);
  arg.kind = ArgKind::kWord;
  arg.words = std::move(words);
  return arg;
}
Arg Arg::Name(std::string name) {
  Arg arg;
  arg.name = std::move(name);
  arg.kind = ArgKind::kName;
  return arg;
}
Arg Arg::Predicate(std::string name) {
  Arg arg;
  arg.name = std::move(name);
  arg.kind = ArgKind::kPredicate;
  arg.fallback = Value(std::vector<l3::Expr>{});
  return arg;
}
Arg Arg::Edges(std::string name, std::vector<std::string> words) {
  Arg arg;
  arg.name = std::move(name);
  arg.kind = ArgKind::kEdges;
  arg.words = std::move(words);
  return arg;
}
Arg Arg::NameList(std::string name) {
  Arg arg;
  arg.name = std::move(name);
  arg.kind = ArgKind::kNames;
  arg.fallback = Value(std::vector<std::string>{});
  return arg;
}
Arg Arg::Records(std::string name, Family family) {
  Arg arg;
  arg.name = std::move(name);
  arg.kind = ArgKind::kRecords;
  arg.family = family;
  return arg;
}
Arg Arg::Nested(std::string name, Family family) {
  Arg arg;
  arg.name = std::move(name);
  arg.kind = ArgKind::kForm;
  arg.family = family;
  return arg;
}

const Entry* FindEntry(Family family, std::string_view name) {
  auto among = [&](const std::vector<Entry>& entries) -> const Entry* {
    for (const Entry& entry : entries) {
      if (entry.name == name) return &entry;
    }
    return nullptr;
  };
  switch (family) {
    case Family::kSample:
      return among(SampleEntries());
    case Family::kBackward: {
      const BackwardEntry* backward = FindBackward(name);
      return backward != nullptr ? &backward->form : nullptr;
    }
    case Family::kNorm:
      return among(NormKinds());
    case Family::kCurriculum:
      return among(CurriculumEntries());
    case Family::kInfer: {
      const InferEntry* infer = FindInferMethod(name);
      return infer != nullptr ? &infer->form : nullptr;
    }
    case Family::kLayer: {
      const LayerEntry* layer = FindLayer(name);
      return layer != nullptr ? &layer->form : nullptr;
    }
    case Family::kUpdate: {
      const UpdateEntry* update = FindUpdate(name);
      return update != nullptr ? &update->form : nullptr;
    }
    case Family::kLoss: {
      const LossEntry* loss = FindLoss(name);
      return loss != nullptr ? &loss->form : nullptr;
    }
  }
  return nullptr;
}

std::vector<std::string> EntryNames(Family family) {
  std::vector<std::string> names;
  switch (family) {
    case Family::kSample:
      for (const Entry& e : SampleEntries()) names.push_back(e.name);
      break;
    case Family::kBackward:
      for (const BackwardEntry& e : AllBackwardMethods()) names.push_back(e.form.name);
      break;
    case Family::kNorm:
      for (const Entry& e : NormKinds()) names.push_back(e.name);
      break;
    case Family::kCurriculum:
      break;
    case Family::kInfer:
      for (const InferEntry& e : AllInferMethods()) names.push_back(e.form.name);
      break;
    case Family::kLayer:
      for (const LayerEntry& e : AllLayers()) {
        if (!e.hidden) names.push_back(e.form.name);
      }
      break;
    case Family::kUpdate:
      for (const UpdateEntry& e : AllUpdates()) names.push_back(e.form.name);
      break;
    case Family::kLoss:
      for (const LossEntry& e : AllLosses()) names.push_back(e.form.name);
      break;
  }
  return names;
}

bool IsReservedName(Family family, std::string_view name) {
  const auto reserved = ReservedNames(family);
  return std::find(reserved.begin(), reserved.end(), name) != reserved.end();
}

Form MakeForm(const Entry& entry, std::vector<std::pair<std::string, Value>> args) {
  Form form;
  form.name = entry.name;
  size_t used = 0;
  for (const Arg& arg : entry.args) {
    auto it = std::find_if(args.begin(), args.end(),
                           [&](const auto& given) { return given.first == arg.name; });
    if (it != args.end()) {
      form.args.push_back(std::move(it->second));
      ++used;
    } else if (arg.fallback) {
      form.args.push_back(*arg.fallback);
    } else {
      throw std::logic_error(entry.name + " needs '" + arg.name + "'");
    }
  }
  if (used != args.size()) throw std::logic_error("no such argument of " + entry.name);
  return form;
}

std::optional<Form> ParseForm(support::ParserBase& parser, Family family) {
  const std::string family_name(FamilyName(family));
  auto name = parser.ExpectName("a " + family_name);
  if (!name) return std::nullopt;
  if (family == Family::kLayer && name->text == "act" && parser.At("(")) {
    // The long spelling of an activation.
    const uint32_t begin = name->span.begin;
    parser.Next();
    const bool labelled = parser.AtWord("fn") && parser.AcceptLabel().has_value();
    auto inner = parser.ExpectName(labelled ? "an activation" : "an activation, such as gelu");
    if (!inner) return std::nullopt;
    const LayerEntry* activation = FindLayer(inner->text);
    if (activation == nullptr || !activation->is_activation) {
      std::vector<std::string> names;
      for (const LayerEntry& e : AllLayers()) {
        if (e.is_activation) names.push_back(e.form.name);
      }
      parser.ErrorUnknown("activation", *inner, names);
      return std::nullopt;
    }
    if (!parser.Expect(")")) return std::nullopt;
    Form form = MakeForm(activation->form, {});
    form.span = parser.SpanFrom(begin);
    return form;
  }
  const Entry* entry = FindEntry(family, name->text);
  const LayerEntry* layer = family == Family::kLayer ? FindLayer(name->text) : nullptr;
  if (entry == nullptr || (layer != nullptr && layer->hidden)) {
    if (IsReservedName(family, name->text)) {
      parser.Error(name->span, family_name + " '" + name->text + "' is not supported yet")
          .Label("supported: " + support::Join(EntryNames(family)));
    } else {
      parser.ErrorUnknown(family_name, *name, EntryNames(family));
    }
    return std::nullopt;
  }
  Form form;
  form.name = entry->name;
  form.args.resize(entry->args.size());
  std::vector<bool> given(entry->args.size(), false);
  if (parser.At("(") && !ParseArguments(parser, *entry, form, given)) return std::nullopt;
  form.span = parser.SpanFrom(name->span.begin);
  if (!Complete(parser, *entry, form, given)) return std::nullopt;
  return form;
}

std::string PrintForm(const Form& form, Family family) {
  const Entry* entry = FindEntry(family, form.name);
  const std::vector<std::string> parts = PrintedArguments(form, *entry);
  return parts.empty() ? form.name : form.name + "(" + support::Join(parts) + ")";
}

bool SameForm(const Form& a, const Form& b) {
  return a.name == b.name &&
         std::equal(a.args.begin(), a.args.end(), b.args.begin(), b.args.end(), SameArgument);
}

}  // namespace l3c::l2
