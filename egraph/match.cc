#include "egraph/match.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace l3c::egraph {
namespace {

// An index on some of the bound columns serves when it meets no more rows than this per probe;
// otherwise one on all of them is built.
constexpr double kFewRows = 8;

}  // namespace

uint64_t Matcher::BoundColumns(const Atom& atom) const {
  uint64_t columns = 0;
  for (size_t c = 0; c < atom.columns.size(); ++c) {
    if (IsBound(atom.columns[c])) columns |= uint64_t{1} << c;
  }
  return columns;
}

bool Matcher::SharesSlot(const Atom& atom) const {
  return std::any_of(atom.columns.begin(), atom.columns.end(), [this](const Operand& o) {
    return !o.is_constant && bound_[o.bits] != 0;
  });
}

double Matcher::Expected(const Atom& atom, uint32_t rows) const {
  const auto columns = static_cast<uint32_t>(atom.columns.size());
  const uint64_t bound = BoundColumns(atom);
  const uint64_t arguments = (uint64_t{1} << (columns - 1)) - 1;
  if ((bound & arguments) == arguments) return 0.5;
  if (bound == 0) return rows;
  // Where no index says better, every bound column is taken to explain an equal share of the rows.
  // An optimistic guess is corrected by the index that is built on it.
  const double free_share = 1.0 - static_cast<double>(std::popcount(bound)) / columns;
  const double guess = 1 + std::pow(static_cast<double>(rows), free_share) * 0.5;
  const ColumnIndex* index = graph_.tables_[atom.function.index].BestIndex(bound);
  return index == nullptr ? guess : std::min<double>(rows, index->RowsPerProbe());
}

void Matcher::PlanPrimitives(const Query& query) {
  // One primitive may bind the argument of another, so look again until none is added.
  for (bool again = true; again;) {
    again = false;
    for (size_t p = 0; p < query.primitives.size(); ++p) {
      const PrimitiveAtom& primitive = query.primitives[p];
      if (planned_primitives_[p]) continue;
      if (!std::all_of(primitive.args.begin(), primitive.args.end(),
                       [&](const Operand& o) { return IsBound(o); })) {
        continue;
      }
      planned_primitives_[p] = 1;
      again = true;
      Step step{Step::Kind::kPrimitive};
      step.fn = &graph_.primitives()[primitive.primitive].fn;
      step.first_key = static_cast<uint32_t>(keys_.size());
      step.key_count = static_cast<uint32_t>(primitive.args.size());
      keys_.insert(keys_.end(), primitive.args.begin(), primitive.args.end());
      if (primitive.output.is_constant) {
        step.output = {Check::Kind::kConstant, 0, primitive.output.bits};
      } else if (bound_[primitive.output.bits]) {
        step.output = {Check::Kind::kSlot, 0, primitive.output.bits};
      } else {
        step.output = {Check::Kind::kBind, 0, primitive.output.bits};
        bound_[primitive.output.bits] = 1;
      }
      steps_.push_back(step);
    }
  }
}

void Matcher::PlanAtom(const Atom& atom, uint32_t from, uint32_t to) {
  Table& table = graph_.tables_[atom.function.index];
  Step step{Step::Kind::kScan};
  step.table = &table;
  step.from = from;
  step.to = to;
  step.first_key = static_cast<uint32_t>(keys_.size());

  const uint32_t arguments = table.arguments();
  const uint64_t bound_columns = BoundColumns(atom);
  const uint64_t argument_columns = (uint64_t{1} << arguments) - 1;
  uint64_t key = 0;  // columns that the access path has compared already
  if ((bound_columns & argument_columns) == argument_columns) {
    step.kind = Step::Kind::kLookup;
    key = argument_columns;
  } else if (bound_columns != 0) {
    step.kind = Step::Kind::kProbe;
    const ColumnIndex* best = table.BestIndex(bound_columns);
    const uint64_t output_column = uint64_t{1} << arguments;
    if (best != nullptr && best->RowsPerProbe() <= kFewRows) {
      key = best->mask();
    } else if (best == nullptr && (bound_columns & output_column) != 0) {
      // A class holds few e-nodes of one constructor, as a rule.
      key = output_column;
    } else {
      key = bound_columns;
    }
    step.index = &table.Index(key);
  }
  for (uint32_t c = 0; c <= arguments; ++c) {
    if ((key >> c & 1) != 0) keys_.push_back(atom.columns[c]);
  }
  step.key_count = static_cast<uint32_t>(keys_.size()) - step.first_key;

  step.first_check = static_cast<uint32_t>(checks_.size());
  for (uint32_t c = 0; c <= arguments; ++c) {
    if ((key >> c & 1) != 0) continue;
    const Operand& operand = atom.columns[c];
    if (operand.is_constant) {
      checks_.push_back({Check::Kind::kConstant, c, operand.bits});
    } else if (bound_[operand.bits]) {
      checks_.push_back({Check::Kind::kSlot, c, operand.bits});
    } else {
      checks_.push_back({Check::Kind::kBind, c, operand.bits});
      bound_[operand.bits] = 1;
    }
  }
  step.check_count = static_cast<uint32_t>(checks_.size()) - step.first_check;
  steps_.push_back(step);
}

bool Matcher::Plan(const Query& query, const Delta& delta, size_t delta_atom) {
  candidates_.clear();
  for (uint32_t i = 0; i < query.atoms.size(); ++i) {
    const uint32_t rows = graph_.tables_[query.atoms[i].function.index].row_count();
    const uint32_t from = i == delta_atom ? delta.old_rows[i] : 0;
    const uint32_t to = i < delta_atom ? delta.old_rows[i] : rows;
    if (from >= to) return false;
    candidates_.push_back({i, from, to});
  }
  steps_.clear();
  keys_.clear();
  checks_.clear();
  bound_.assign(query.slot_sorts.size(), 0);
  planned_primitives_.assign(query.primitives.size(), 0);
  for (const Query::Preset& preset : query.presets) bound_[preset.slot] = 1;

  PlanPrimitives(query);
  while (!candidates_.empty()) {
    size_t best = 0;
    double best_rows = 0;
    for (size_t c = 0; c < candidates_.size(); ++c) {
      const Candidate& candidate = candidates_[c];
      const Atom& atom = query.atoms[candidate.atom];
      double rows = Expected(atom, candidate.to - candidate.from);
      // An atom that shares nothing with what is bound multiplies the matches, and so the work of
      // all that follows until something joins the two: it counts twice.
      if (rows > 1 && !SharesSlot(atom)) rows *= rows;
      // On a tie the atom with new rows goes first: its other matches are not even looked at.
      if (c == 0 || rows < best_rows || (rows == best_rows && candidate.atom == delta_atom)) {
        best = c;
        best_rows = rows;
      }
    }
    const Candidate chosen = candidates_[best];
    candidates_.erase(candidates_.begin() + static_cast<ptrdiff_t>(best));
    PlanAtom(query.atoms[chosen.atom], chosen.from, chosen.to);
    PlanPrimitives(query);
  }
  return true;
}

bool Matcher::Accept(const Step& step, uint32_t row) {
  const Table& table = *step.table;
  if (!table.IsVisible(row) && !(see_subsumed_ && table.IsLive(row))) return false;
  for (uint32_t i = 0; i < step.check_count; ++i) {
    const Check& check = checks_[step.first_check + i];
    const uint32_t value = table.Get(row, check.column);
    switch (check.kind) {
      case Check::Kind::kConstant:
        if (value != check.bits) return false;
        break;
      case Check::Kind::kSlot:
        if (value != slots_[check.bits]) return false;
        break;
      case Check::Kind::kBind:
        slots_[check.bits] = value;
        break;
    }
  }
  return true;
}

}  // namespace l3c::egraph
