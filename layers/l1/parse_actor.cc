// Actors: state, windows, and the heads of their handlers.
#include <cmath>
#include <limits>

#include "layers/l1/program_parser.h"
#include "layers/support/units.h"

namespace l3c::l1 {

void ProgramParser::ParseActor() {
  Next();
  const auto name = ExpectName("the name of the actor");
  if (!name || !ExpectWord("on")) return SkipToDeclaration(Keywords());
  Actor actor;
  actor.name = name->text;
  actor.span = name->span;
  const auto node = ExpectNode("a compute node");
  if (!node) return SkipToDeclaration(Keywords());
  actor.node = *node;
  std::map<std::string, Span> states, windows, messages;
  std::vector<RawHandler> handlers;
  std::vector<std::pair<size_t, Name>> window_fields;
  const bool ok = Block([&] {
    if (AcceptWord("state")) {
      if (Accept("@") && !ParseHome(actor)) return false;
      return Block([&] { return ParseState(actor, states); });
    }
    if (AcceptWord("window")) return ParseWindow(actor, windows, window_fields);
    if (AcceptWord("on")) return ParseHandler(actor, messages, handlers);
    ErrorExpected("'state', 'window', 'on' or '}'");
    Next();
    return false;
  });
  if (!ok) SkipToDeclaration(Keywords());
  std::vector<std::string> fields;
  for (const StateField& field : actor.state) fields.push_back(field.name);
  std::map<std::pair<size_t, std::string>, Span> granted;
  for (const auto& [window, field] : window_fields) {
    const auto [first, fresh] = granted.emplace(std::pair(window, field.text), field.span);
    if (!fresh) {
      Error(field.span, "'" + field.text + "' stands twice in the window", Kind::kConsistency)
          .With({first->second, "it is here already"});
    } else if (FindState(actor, field.text) == nullptr) {
      ErrorUnknown("state field", field, fields, Kind::kSafety);
    }
  }
  if (!Declare(units_, *name, "actor")) return;
  for (RawHandler& handler : handlers) {
    handler.actor = program_.actors.size();
    handlers_.push_back(std::move(handler));
  }
  program_.actors.push_back(std::move(actor));
}

bool ProgramParser::ParseHome(Actor& actor) {
  const uint32_t at = Here();
  const auto home = ExpectNode("a memory node");
  if (!home) return false;
  if (!HoldsBuffers(program_.system.nodes[*home])) {
    Error(SpanFrom(at),
          "'" + program_.system.nodes[*home].name + "' holds no state: it is no memory node",
          Kind::kSafety);
    return false;
  }
  if (actor.home && *actor.home != *home) {
    Error(SpanFrom(at), "the state of an actor lies in one memory", Kind::kConsistency);
    return false;
  }
  actor.home = *home;
  return true;
}

bool ProgramParser::ParseState(Actor& actor, std::map<std::string, Span>& states) {
  const auto name = ExpectName("a state field");
  if (!name || !Expect(":")) return false;
  StateField field;
  field.name = name->text;
  field.span = name->span;
  const auto domain = ParseDomain();
  if (!domain) return false;
  field.dtype = domain->dtype;
  field.shape = domain->shape;
  bool sound = Expect(",") && ExpectWord("init") && Expect(":") && ParseInit(field);
  if (sound && Accept(",")) sound = field.parameter = ExpectWord("param");
  // A field with a wrong value is a field all the same: those who read it are not to blame.
  if (Declare(states, *name, "state field")) actor.state.push_back(std::move(field));
  return sound;
}

bool ProgramParser::ParseInit(StateField& field) {
  const auto init = ExpectName("an initial value: zeros, ones, kaiming, …");
  if (!init) return false;
  struct Entry {
    const char* name;
    InitKind kind;
    const char* argument;
  };
  static constexpr Entry kEntries[] = {
      {"zeros", InitKind::kZeros, nullptr},
      {"ones", InitKind::kOnes, nullptr},
      {"kaiming", InitKind::kKaiming, nullptr},
      {"constant", InitKind::kConstant, "the value"},
      {"normal", InitKind::kNormal, "the standard deviation"},
      {"uniform", InitKind::kUniform, "the bound on the magnitude"},
  };
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) {
    names.push_back(entry.name);
    if (init->text != entry.name) continue;
    field.init = entry.kind;
    if (entry.argument != nullptr) {
      if (!Expect("(")) return false;
      const uint32_t begin = Here();
      const auto value = ExpectReal(entry.argument);
      if (!value) return false;
      const Span span = SpanFrom(begin);
      if (!Expect(")")) return false;
      field.a = *value;
      const bool magnitude = field.init != InitKind::kConstant;
      const double most = field.dtype == tensor::DType::kF32
                              ? static_cast<double>(std::numeric_limits<float>::max())
                              : std::numeric_limits<double>::max();
      if (!(std::abs(*value) <= most) || (magnitude && *value < 0)) {
        Error(span,
              std::string(entry.argument) + " of '" + init->text + "' is " +
                  support::PrintReal(*value),
              Kind::kConsistency)
            .Fix(std::string("it must be ") + (magnitude ? "at least 0 and " : "") + "finite in " +
                 std::string(tensor::DTypeName(field.dtype)));
        return false;
      }
    }
    const bool random = field.init == InitKind::kKaiming || field.init == InitKind::kNormal ||
                        field.init == InitKind::kUniform;
    if (random && !tensor::IsFloat(field.dtype)) {
      Error(init->span,
            "'" + init->text + "' gives real numbers, but the field is " +
                std::string(tensor::DTypeName(field.dtype)),
            Kind::kConsistency);
      return false;
    }
    if (field.init == InitKind::kKaiming && field.shape.empty()) {
      Error(init->span, "'kaiming' divides by the fan-in, which a scalar does not have",
            Kind::kConsistency);
      return false;
    }
    return true;
  }
  ErrorUnknown("initial value", *init, names);
  return false;
}

bool ProgramParser::ParseWindow(Actor& actor, std::map<std::string, Span>& windows,
                                std::vector<std::pair<size_t, Name>>& window_fields) {
  const auto name = ExpectName("the name of a window");
  if (!name || !Expect(":")) return false;
  Window window;
  window.name = name->text;
  window.span = name->span;
  const bool fields_ok = ParseList("(", ")", [&] {
    const auto field = ExpectName("a state field");
    if (!field) return false;
    window.fields.push_back(field->text);
    window_fields.emplace_back(actor.windows.size(), *field);
    return true;
  });
  if (!fields_ok || !ExpectWord("readers")) return false;
  if (!ParseList("(", ")",
                 [&] { return ParseReference(window.readers, "a stage or a tensor graph"); })) {
    return false;
  }
  if (Declare(windows, *name, "window")) actor.windows.push_back(std::move(window));
  return true;
}

bool ProgramParser::ParseHandler(Actor& actor, std::map<std::string, Span>& messages,
                                 std::vector<RawHandler>& handlers) {
  const auto name = ExpectName("the name of a message");
  if (!name) return false;
  RawHandler raw;
  if (!ParseArgs(raw.args)) return false;
  const auto body = TakeBody();
  if (!body) return false;
  raw.body = *body;
  raw.handler = actor.handlers.size();
  if (!Declare(messages, *name, "message")) return true;
  Handler handler;
  handler.message = name->text;
  handler.span = name->span;
  for (const RawArg& arg : raw.args) handler.args.push_back(arg.name.text);
  actor.handlers.push_back(std::move(handler));
  handlers.push_back(std::move(raw));
  return true;
}

}  // namespace l3c::l1
