#include "egraph/plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace l3c::egraph {
namespace {

// An index on some of the bound columns serves when it meets no more rows than this per probe;
// otherwise one on all of them is built.
constexpr double kFewRows = 8;
// Rows of a sample, at most; smaller tables cost more to sample than a bad plan does.
constexpr uint32_t kSampled = 256;
constexpr uint32_t kMinSampled = 64;

}  // namespace

const JoinIndex& JoinIndexes::Get(FunctionId f, const Table& table, uint64_t mask) {
  if (by_function_.size() <= f.index) by_function_.resize(f.index + 1);
  auto& indexes = by_function_[f.index];
  auto it = std::find_if(indexes.begin(), indexes.end(),
                         [&](const auto& index) { return index->mask() == mask; });
  if (it == indexes.end()) {
    indexes.push_back(std::make_shared<JoinIndex>(table.arguments() + 1, mask));
    it = std::prev(indexes.end());
  }
  if ((*it)->IsCurrent(table)) return **it;
  if (it->use_count() > 1) {
    left_bytes_ += (*it)->Bytes();
    *it = std::make_shared<JoinIndex>(**it);
  }
  (*it)->Refresh(table);
  return **it;
}

const JoinIndex* JoinIndexes::Best(FunctionId f, uint64_t mask) const {
  if (by_function_.size() <= f.index) return nullptr;
  const JoinIndex* best = nullptr;
  for (const auto& index : by_function_[f.index]) {
    if ((index->mask() & ~mask) != 0) continue;
    if (best == nullptr || index->RowsPerProbe() < best->RowsPerProbe()) best = index.get();
  }
  return best;
}

void JoinIndexes::Unshare() {
  for (auto& indexes : by_function_) {
    for (auto& index : indexes) index = std::make_shared<JoinIndex>(*index);
  }
}

double JoinIndexes::Sampled(FunctionId f, const Table& table, uint32_t column) {
  if (samples_.size() <= f.index) samples_.resize(f.index + 1);
  samples_[f.index].resize(table.arguments() + 1);
  Sample& sample = samples_[f.index][column];
  const uint32_t rows = table.row_count();
  if (sample.rows != 0 && rows <= sample.rows + sample.rows / 2 && sample.rows <= rows + rows / 2) {
    return sample.rows_per_probe;
  }
  // Rows at equal distances, and of their pairs those with equal values.
  uint32_t values[kSampled];
  const uint32_t step = (rows + kSampled - 1) / kSampled;
  uint32_t count = 0;
  for (uint32_t row = 0; row < rows; row += step) {
    if (table.IsLive(row)) values[count++] = table.Get(row, column);
  }
  std::sort(values, values + count);
  uint64_t equal_pairs = 0;
  for (uint32_t i = 0, end = 0; i < count; i = end) {
    while (end < count && values[end] == values[i]) ++end;
    equal_pairs += uint64_t{end - i} * (end - i - 1);
  }
  const double pairs = std::max(1.0, static_cast<double>(count) * (count - 1.0));
  sample.rows = rows;
  sample.rows_per_probe = 1 + static_cast<double>(equal_pairs) / pairs * (table.live_count() - 1.0);
  return sample.rows_per_probe;
}

size_t JoinIndexes::Bytes() const {
  size_t bytes = left_bytes_;
  for (const auto& indexes : by_function_) {
    for (const auto& index : indexes) bytes += index->Bytes();
  }
  return bytes;
}

uint64_t Planner::BoundColumns(const Atom& atom) const {
  uint64_t columns = 0;
  for (size_t c = 0; c < atom.columns.size(); ++c) {
    if (IsBound(atom.columns[c])) columns |= uint64_t{1} << c;
  }
  return columns;
}

bool Planner::SharesSlot(const Atom& atom) const {
  return std::any_of(atom.columns.begin(), atom.columns.end(),
                     [this](const Operand& o) { return !o.is_constant && bound_[o.bits] != 0; });
}

// The rows expected to match an atom, given what is bound.
double Planner::Expected(const Atom& atom, uint32_t rows) {
  const auto columns = static_cast<uint32_t>(atom.columns.size());
  const uint64_t bound = BoundColumns(atom);
  const uint64_t arguments = (uint64_t{1} << (columns - 1)) - 1;
  if ((bound & arguments) == arguments) return 0.5;
  if (bound == 0) return rows;
  const JoinIndex* index = indexes_.Best(atom.function, bound);
  if (index != nullptr) return std::min<double>(rows, index->RowsPerProbe());
  // Where no index says better, every bound column is taken to explain an equal share of the rows,
  // and none to explain less than in a sample of them. An optimistic guess is corrected by the
  // index that is built on it.
  const double free_share = 1.0 - static_cast<double>(std::popcount(bound)) / columns;
  double guess = 1 + std::pow(static_cast<double>(rows), free_share) * 0.5;
  const Table& table = graph_.table(atom.function);
  if (open_atoms_.size() == 1 || table.row_count() < kMinSampled) return guess;
  for (uint32_t c = 0; c < columns; ++c) {
    if ((bound >> c & 1) != 0) guess = std::min(guess, indexes_.Sampled(atom.function, table, c));
  }
  return guess;
}

void Planner::AddPrimitives(const Query& query) {
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
      JoinPlan::Step step{JoinPlan::Step::Kind::kPrimitive};
      step.primitive = primitive.primitive;
      step.first_key = static_cast<uint32_t>(plan_.keys.size());
      step.key_count = static_cast<uint32_t>(primitive.args.size());
      plan_.keys.insert(plan_.keys.end(), primitive.args.begin(), primitive.args.end());
      using Kind = JoinPlan::Check::Kind;
      if (primitive.output.is_constant) {
        step.output = {Kind::kConstant, 0, primitive.output.bits};
      } else if (bound_[primitive.output.bits]) {
        step.output = {Kind::kSlot, 0, primitive.output.bits};
      } else {
        step.output = {Kind::kBind, 0, primitive.output.bits};
        bound_[primitive.output.bits] = 1;
      }
      plan_.steps.push_back(step);
    }
  }
}

void Planner::AddAtom(const Query& query, uint32_t number, RowRange range) {
  using Kind = JoinPlan::Step::Kind;
  const Atom& atom = query.atoms[number];
  const Table& table = graph_.table(atom.function);
  JoinPlan::Step step{Kind::kScan};
  step.atom = number;
  step.first_key = static_cast<uint32_t>(plan_.keys.size());

  const uint32_t arguments = table.arguments();
  const uint64_t bound_columns = BoundColumns(atom);
  const uint64_t argument_columns = (uint64_t{1} << arguments) - 1;
  uint64_t key = 0;  // columns that the access path has compared already
  if ((bound_columns & argument_columns) == argument_columns) {
    step.kind = Kind::kLookup;
    key = argument_columns;
  } else if (bound_columns != 0 && plan_.steps.empty() && range == RowRange::kNew) {
    // Met once, and only where it is new: to enter the new rows into an index costs more than to
    // look at them.
    step.kind = Kind::kScanBack;
  } else if (bound_columns != 0) {
    step.kind = Kind::kProbe;
    const JoinIndex* best = indexes_.Best(atom.function, bound_columns);
    const uint64_t output_column = uint64_t{1} << arguments;
    if (best != nullptr && best->RowsPerProbe() <= kFewRows) {
      key = best->mask();
    } else if (best == nullptr && (bound_columns & output_column) != 0) {
      // A class holds few e-nodes of one constructor, as a rule.
      key = output_column;
    } else {
      key = bound_columns;
    }
    step.index_mask = indexes_.Get(atom.function, table, key).mask();
  }
  for (uint32_t c = 0; c <= arguments; ++c) {
    if ((key >> c & 1) != 0) plan_.keys.push_back(atom.columns[c]);
  }
  step.key_count = static_cast<uint32_t>(plan_.keys.size()) - step.first_key;

  step.first_check = static_cast<uint32_t>(plan_.checks.size());
  for (uint32_t c = 0; c <= arguments; ++c) {
    if ((key >> c & 1) != 0) continue;
    const Operand& operand = atom.columns[c];
    using Check = JoinPlan::Check;
    if (operand.is_constant) {
      plan_.checks.push_back({Check::Kind::kConstant, c, operand.bits});
    } else if (bound_[operand.bits]) {
      plan_.checks.push_back({Check::Kind::kSlot, c, operand.bits});
    } else {
      plan_.checks.push_back({Check::Kind::kBind, c, operand.bits});
      bound_[operand.bits] = 1;
    }
  }
  step.check_count = static_cast<uint32_t>(plan_.checks.size()) - step.first_check;
  plan_.steps.push_back(step);
}

JoinPlan Planner::Plan(const Query& query, std::span<const uint32_t> rows, size_t delta_atom) {
  plan_ = JoinPlan();
  plan_.steps.reserve(query.atoms.size() + query.primitives.size());
  size_t operands = 0;
  for (const Atom& atom : query.atoms) operands += atom.columns.size();
  for (const PrimitiveAtom& primitive : query.primitives) operands += primitive.args.size();
  plan_.keys.reserve(operands);
  plan_.checks.reserve(operands);
  bound_.assign(query.slot_sorts.size(), 0);
  planned_primitives_.assign(query.primitives.size(), 0);
  for (const Query::Preset& preset : query.presets) bound_[preset.slot] = 1;
  open_atoms_.clear();
  for (uint32_t i = 0; i < query.atoms.size(); ++i) open_atoms_.push_back(i);

  AddPrimitives(query);
  while (!open_atoms_.empty()) {
    size_t best = 0;
    double best_rows = 0;
    for (size_t c = 0; c < open_atoms_.size(); ++c) {
      const Atom& atom = query.atoms[open_atoms_[c]];
      double expected = Expected(atom, rows[open_atoms_[c]]);
      // An atom that shares nothing with what is bound multiplies the matches, and so the work of
      // all that follows until something joins the two: it counts twice.
      if (expected > 1 && !SharesSlot(atom)) expected *= expected;
      // On a tie the atom with new rows goes first: its other matches are not even looked at.
      if (c == 0 || expected < best_rows ||
          (expected == best_rows && open_atoms_[c] == delta_atom)) {
        best = c;
        best_rows = expected;
      }
    }
    const uint32_t chosen = open_atoms_[best];
    open_atoms_.erase(open_atoms_.begin() + static_cast<ptrdiff_t>(best));
    AddAtom(query, chosen, RangeOf(chosen, delta_atom));
    AddPrimitives(query);
  }
  return std::move(plan_);
}

}  // namespace l3c::egraph
