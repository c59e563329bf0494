#include "layers/l3/print.h"

#include <string>
#include <utility>
#include <vector>

#include "layers/support/lexer.h"
#include "layers/support/token.h"
#include "layers/support/units.h"

namespace l3c::l3 {
namespace {

using support::Join;
using support::Printer;

std::string PrintRefs(const std::vector<Ref>& refs) {
  std::vector<std::string> texts;
  for (const Ref& ref : refs) texts.push_back(PrintRef(ref));
  return Join(texts);
}

std::string PrintProperty(const Property& property) {
  const std::string name(PropertyName(property.kind));
  switch (property.kind) {
    case Property::Kind::kDepth:
    case Property::Kind::kWidth:
      return name + "(" + support::PrintInteger(property.count) + ")";
    case Property::Kind::kParamBudget:
      return name + "(" + support::PrintCount(property.count) + ")";
    case Property::Kind::kLatencyBudget:
      return name + "(" + support::PrintSeconds(property.seconds) + ")";
    case Property::Kind::kEquivariant:
      return name + "(" + property.group + ")";
    case Property::Kind::kCausal:
    case Property::Kind::kAutoregressive:
      return name;
  }
  return name;
}

// `p=1`, not `p=1.0`: the usual norms have whole exponents.
std::string PrintExponent(double p) {
  std::string text = support::PrintReal(p);
  const size_t size = text.size();
  if (size > 2 && text.compare(size - 2, 2, ".0") == 0) text.resize(size - 2);
  return text;
}

std::string PrintGoal(const Goal& goal) {
  std::vector<std::string> turns;
  switch (goal.kind) {
    case Goal::Kind::kMinimize:
    case Goal::Kind::kMaximize: {
      std::string text = goal.kind == Goal::Kind::kMinimize ? "minimize(" : "maximize(";
      text += PrintRefs(goal.targets);
      if (!goal.models.empty()) text += ", models: [" + Join(goal.models) + "]";
      return text + ")";
    }
    case Goal::Kind::kPareto:
      return "pareto([" + PrintRefs(goal.targets) + "])";
    case Goal::Kind::kAlternate:
      for (const Goal& turn : goal.turns) turns.push_back(PrintGoal(turn));
      return "alternate([" + Join(turns) + "])";
  }
  return "";
}

class DeclarationPrinter {
 public:
  DeclarationPrinter(const Module& module, Printer& out) : module_(module), out_(out) {}

  void Run() {
    for (const Data& data : module_.data) {
      Separate();
      PrintData(data);
    }
    for (const Model& model : module_.models) {
      Separate();
      PrintModel(model);
    }
    for (const Loss& loss : module_.losses) {
      Separate();
      PrintLoss(loss);
    }
    Separate();
    PrintHints("goal");
    out_.Line("goal: " + PrintGoal(module_.goal));
  }

 private:
  void Separate() {
    if (!first_) out_.Line();
    first_ = false;
  }

  void PrintHints(const std::string& path) {
    const auto hints = module_.hints.find(path);
    if (hints == module_.hints.end()) return;
    for (const support::EscapeHatch& hatch : hints->second) {
      out_.Line(support::PrintEscapeHatch(hatch));
    }
  }

  // Rows aligned together, each under the annotations of its path.
  void PrintRows(const std::vector<std::string>& paths,
                 const std::vector<std::vector<std::string>>& rows) {
    Printer aligned;
    aligned.Rows(rows);
    const std::string text = aligned.Take();
    size_t begin = 0;
    for (const std::string& path : paths) {
      const size_t end = text.find('\n', begin);
      PrintHints(path);
      out_.Line(std::string_view(text).substr(begin, end - begin));
      begin = end + 1;
    }
  }

  void PrintData(const Data& data) {
    out_.Open("data " + data.name + " {");
    std::vector<std::string> paths;
    std::vector<std::vector<std::string>> rows;
    for (const Field& field : data.fields) {
      paths.push_back(data.name + "." + field.name);
      rows.push_back({field.name, " : " + PrintDomain(field.domain)});
    }
    PrintRows(paths, rows);
    if (!data.environment.empty()) out_.Line("env(" + support::Quote(data.environment) + ")");
    PrintHints(data.name);
    out_.Close("}");
  }

  void PrintModel(const Model& model) {
    out_.Open("model " + model.name + " {");
    const std::string in = PrintRefs(model.in);
    out_.Line("in:  " + (model.in.size() == 1 ? in : "[" + in + "]"));
    out_.Line("out: " + PrintDomain(model.out));
    std::vector<std::string> properties;
    for (const Property& property : model.properties) properties.push_back(PrintProperty(property));
    out_.Line("properties: [" + Join(properties) + "]");
    PrintHints(model.name);
    out_.Close("}");
  }

  void PrintLoss(const Loss& loss) {
    out_.Open("loss " + loss.name + " {");
    std::vector<std::string> paths;
    std::vector<std::vector<std::string>> rows;
    for (const Term& term : loss.terms) {
      paths.push_back(loss.name + "." + term.name);
      rows.push_back({term.name + ":", " " + PrintTermKind(term) + ",",
                      " weight: " + support::PrintReal(term.weight)});
    }
    PrintRows(paths, rows);
    out_.Line("combine: weighted_sum");
    PrintHints(loss.name);
    out_.Close("}");
  }

  const Module& module_;
  Printer& out_;
  bool first_ = true;
};

}  // namespace

std::string PrintTermKind(const Term& term) {
  std::string args;
  switch (term.kind) {
    case LossKind::kDivergence:
    case LossKind::kReconstruction:
    case LossKind::kContrastive:
      args = PrintRefs(term.reads);
      break;
    case LossKind::kNorm:
      args = PrintRefs(term.reads) + ", p=" + PrintExponent(term.p);
      break;
    case LossKind::kConstraint:
      args = PrintExpr(*term.value);
      break;
    case LossKind::kCustom:
      args = (term.custom_file ? support::Quote(term.custom_name) : term.custom_name) +
             ", reads: [" + PrintRefs(term.reads) + "]";
      if (term.value) args += ", value: " + PrintExpr(*term.value);
      break;
  }
  return std::string(LossKindName(term.kind)) + "(" + args + ")";
}

void PrintDeclarations(const Module& module, Printer& out) {
  DeclarationPrinter(module, out).Run();
}

std::string Print(const Module& module) {
  Printer out;
  out.Raw(support::HeaderLine("l3"));
  out.Line();
  PrintDeclarations(module, out);
  return out.Take();
}

}  // namespace l3c::l3
