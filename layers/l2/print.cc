// L2 module → canonical text, in the form of the specification's traces.
#include <string>
#include <utility>
#include <vector>

#include "layers/l2/form.h"
#include "layers/l2/infer.h"
#include "layers/l2/infer_methods.h"
#include "layers/l2/ir.h"
#include "layers/l2/layers.h"
#include "layers/l2/updates.h"
#include "layers/l3/print.h"
#include "layers/support/lexer.h"
#include "layers/support/printer.h"
#include "layers/support/units.h"

namespace l3c::l2 {
namespace {

using support::Printer;

class InferPrinter {
 public:
  InferPrinter(Printer& out, const Methods& methods) : out_(out), methods_(methods) {}

  void Print() {
    const InferForm& form = methods_.infer.form;
    PrintBlock("infer: ", form, "");
  }

 private:
  std::string LayerText(const InferForm& form) const {
    if (!form.written.empty()) return PrintForm(form.written[0], Family::kLayer);
    return PrintForm(methods_.infer.nodes[form.node].form, Family::kLayer);
  }

  const std::vector<support::EscapeHatch>* HintsOf(const InferForm& form) const {
    if (form.kind != InferForm::Kind::kLayer) return nullptr;
    auto it =
        methods_.hints.find(methods_.model + ".infer." + methods_.infer.nodes[form.node].name);
    return it == methods_.hints.end() ? nullptr : &it->second;
  }

  void PrintHints(const InferForm& form) {
    const auto* hints = HintsOf(form);
    if (hints == nullptr) return;
    for (const support::EscapeHatch& hint : *hints) out_.Line(support::PrintEscapeHatch(hint));
  }

  // A line holds a layer that begins one and what follows it; lines that follow one another are
  // aligned in columns.
  void PrintBlock(const std::string& prefix, const InferForm& form, const std::string& suffix) {
    if (form.kind == InferForm::Kind::kLayer) {
      PrintHints(form);
      out_.Line(prefix + LayerText(form) + suffix);
      return;
    }
    if (form.kind == InferForm::Kind::kCall) return PrintCall(prefix, form, suffix);
    out_.Open(prefix + (form.kind == InferForm::Kind::kSequential ? "sequential [" : "residual ["));
    std::vector<std::vector<std::string>> rows;
    auto flush = [&] {
      for (auto& row : rows) {
        // The blank belongs to the column, but for the last cell.
        for (size_t i = 0; i + 1 < row.size(); ++i) row[i] += " ";
      }
      out_.Rows(rows);
      rows.clear();
    };
    bool join = false;  // the next layer goes on the present line
    for (size_t i = 0; i < form.items.size(); ++i) {
      const InferForm& item = form.items[i];
      const std::string comma = i + 1 < form.items.size() ? "," : "";
      if (item.kind != InferForm::Kind::kLayer) {
        flush();
        PrintBlock("", item, comma);
        join = false;
        continue;
      }
      if (HintsOf(item) != nullptr) {
        flush();
        PrintHints(item);
        join = false;
      }
      const bool begins = EntryOf(methods_.infer.nodes[item.node]).begins_line;
      // Every block of a residual stands alone.
      if (!join || begins || form.kind == InferForm::Kind::kResidual) rows.emplace_back();
      rows.back().push_back(LayerText(item) + comma);
      join = true;
    }
    flush();
    out_.Close("]" + suffix);
  }

  // The parts, each in a block of its own, then the arguments on a line each.
  void PrintCall(const std::string& prefix, const InferForm& form, const std::string& suffix) {
    const Form& call = form.written[0];
    const InferEntry& method = *FindInferMethod(call.name);
    std::vector<std::string> args;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const Arg& arg = method.form.args[i];
      if (arg.fallback && SameArgument(*arg.fallback, call.args[i])) continue;
      const std::string value = PrintArgument(call.args[i], arg);
      args.push_back(arg.kind == ArgKind::kPredicate ? arg.name + "(" + value + ")"
                                                     : arg.name + ": " + value);
    }
    out_.Open(prefix + call.name + "(");
    size_t next = 0;
    for (size_t p = 0; p < method.parts.size(); ++p) {
      const std::string comma = p + 1 < method.parts.size() || !args.empty() ? "," : "";
      const std::string label = method.parts[p].label + ": ";
      if (!method.parts[p].list) {
        PrintBlock(label, form.items[next++], comma);
        continue;
      }
      // The other parts take one item each.
      const size_t end = form.items.size() - (method.parts.size() - 1 - p);
      out_.Open(label + "[");
      for (; next < end; ++next) PrintBlock("", form.items[next], next + 1 < end ? "," : "");
      out_.Close("]" + comma);
    }
    for (size_t i = 0; i < args.size(); ++i) {
      out_.Line(args[i] + (i + 1 < args.size() ? "," : ""));
    }
    out_.Close(")" + suffix);
  }

  Printer& out_;
  const Methods& methods_;
};

// The inner update stands on a line of its own, below the first argument.
std::string UpdateText(const Form& form, size_t column) {
  const UpdateEntry* entry = FindUpdate(form.name);
  if (!entry->inner) return PrintForm(form, Family::kUpdate);
  Form outer = form;
  const Form& inner = form.Inner(*entry->inner);
  const std::string label = entry->form.args[*entry->inner].name + ": ";
  const std::string text = PrintForm(form, Family::kUpdate);
  // Everything before the inner update's label, as PrintForm writes it.
  const size_t at = text.find(label);
  const size_t open = form.name.size() + 1;
  std::string head = text.substr(0, at);
  const size_t inner_column = column + open;
  if (at > open) {
    head.pop_back();
    head += "\n" + std::string(inner_column, ' ');
  }
  return head + label + UpdateText(inner, inner_column + label.size()) + ")";
}

std::string PhaseText(const Phase& phase) {
  std::vector<std::string> args;
  if (phase.epochs > 0) args.push_back("epochs: " + support::PrintInteger(phase.epochs));
  if (phase.steps > 0) args.push_back("steps: " + support::PrintInteger(phase.steps));
  if (phase.eval_every != 1) args.push_back("eval: " + support::PrintInteger(phase.eval_every));
  if (phase.checkpoint_every != 1) {
    args.push_back("checkpoint: " + support::PrintInteger(phase.checkpoint_every));
  }
  if (!phase.frozen.empty()) args.push_back("frozen: [" + support::Join(phase.frozen) + "]");
  if (!phase.update.empty()) {
    args.push_back("update: " + PrintForm(phase.update[0], Family::kUpdate));
  }
  return phase.name + "(" + support::Join(args) + ")";
}

std::string LossText(const Methods& methods) {
  if (methods.losses.size() == 1) return PrintForm(methods.losses.front().form, Family::kLoss);
  std::vector<std::string> choices;
  for (const LossChoice& choice : methods.losses) {
    choices.push_back(choice.term + ": " + PrintForm(choice.form, Family::kLoss));
  }
  return "[" + support::Join(choices) + "]";
}

void PrintMethods(const Methods& methods, Printer& out) {
  out.Open("methods for " + methods.model + " {");
  out.Line("sample:   " + PrintForm(methods.sample, Family::kSample));
  out.Line();
  InferPrinter(out, methods).Print();
  out.Line();
  out.Line("backward: " + PrintForm(methods.backward, Family::kBackward));
  const std::string update = "update:   ";
  const size_t indent = 4;
  out.Line(update + UpdateText(methods.update, indent + update.size()));
  if (methods.losses_written && !methods.losses.empty()) {
    out.Line("loss:     " + LossText(methods));
  }
  if (methods.seed) out.Line("seed:     " + std::to_string(*methods.seed));
  if (methods.phases_written) {
    out.Line();
    out.Open("phases [");
    for (size_t i = 0; i < methods.phases.size(); ++i) {
      out.Line(PhaseText(methods.phases[i]) + (i + 1 < methods.phases.size() ? "," : ""));
    }
    out.Close("]");
  }
  out.Close("}");
}

}  // namespace

std::string PrintModule(const Module& module) {
  Printer out;
  out.Raw(support::HeaderLine("l2"));
  out.Line();
  l3::PrintDeclarations(module.spec, out);
  for (const Methods& methods : module.methods) {
    out.Line();
    PrintMethods(methods, out);
  }
  return out.Take();
}

}  // namespace l3c::l2
