// The five checks of L3's verification table, one function each. A check reports through a
// Reporter that is bound to the row's kind, so that nothing can be filed elsewhere by accident.
#pragma once

#include <string>
#include <utility>

#include "layers/l3/ir.h"
#include "layers/l3/symbols.h"
#include "layers/support/diagnostics.h"

namespace l3c::l3 {

class Reporter {
 public:
  Reporter(support::Kind kind, support::Diagnostics& diagnostics)
      : kind_(kind), diagnostics_(diagnostics) {}

  support::Diagnostic& Error(Span span, std::string message) {
    return diagnostics_.Error(kind_, span, std::move(message));
  }
  support::Diagnostics& diagnostics() { return diagnostics_; }

 private:
  support::Kind kind_;
  support::Diagnostics& diagnostics_;
};

// Every name is declared once and every reference resolves to what its kind says. The later checks
// rely on it.
void CheckReferences(const Module& module, const Symbols& symbols, Reporter& report);
// Sizes positive and within bounds, numbers finite, models free of cycles. The consistency checks
// rely on it.
void CheckFiniteness(const Module& module, const Symbols& symbols, Reporter& report);
// Every term and goal reads what its kind can read.
void CheckLossSignatures(const Module& module, const Symbols& symbols, Reporter& report);
// What is compared or passed agrees in domain.
void CheckDomains(const Module& module, const Symbols& symbols, Reporter& report);
// A model's properties agree with one another and with its domains; a goal with its losses.
void CheckConstraints(const Module& module, const Symbols& symbols, Reporter& report);

}  // namespace l3c::l3
