#include <algorithm>
#include <climits>
#include <cmath>
#include <string>

#include "Cbc_C_Interface.h"
#include "ClpEventHandler.hpp"
#include "ClpSimplex.hpp"
#include "egraph/extract/linear_solver.h"

namespace l3c::egraph {
namespace {

// Seconds beyond what any caller waits for; the solvers take no infinity.
constexpr double kForever = 1e9;

// Stops Clp when the time is up.
class TimeHandler : public ClpEventHandler {
 public:
  explicit TimeHandler(const TimeLimit& time) : time_(time) {}
  int event(Event which) override { return which == endOfFactorization && time_.Passed() ? 5 : -1; }
  ClpEventHandler* clone() const override { return new TimeHandler(*this); }

 private:
  TimeLimit time_;
};

struct ModelDeleter {
  void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
};

std::string Text(double x) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.17g", x);
  return buffer;
}

}  // namespace

struct LinearSolver::State {
  ClpSimplex clp;
  std::vector<uint8_t> whole;
  bool started = false;
  double bound = -COIN_DBL_MAX;
  std::vector<double> added;

  void FindBound();
};

// Whatever the multipliers y of the rows are, c·x = (c − yA)·x + y·Ax, and both terms have a least
// value over the variables' bounds and the rows'.
void LinearSolver::State::FindBound() {
  const CoinPackedMatrix& matrix = *clp.matrix();
  const int columns = clp.numberColumns(), rows = clp.numberRows();
  std::vector<double> multipliers(clp.getRowPrice(), clp.getRowPrice() + rows);
  double least = 0;
  for (int i = 0; i < rows; ++i) {
    double& y = multipliers[i];
    const double side = y > 0 ? clp.getRowLower()[i] : clp.getRowUpper()[i];
    if (!std::isfinite(y) || std::abs(side) >= COIN_DBL_MAX) {
      y = 0;
    } else {
      least += y * side;
    }
  }
  added.assign(columns, 0);
  for (int j = 0; j < columns; ++j) {
    double cost = clp.getObjCoefficients()[j];
    const CoinBigIndex end = matrix.getVectorStarts()[j] + matrix.getVectorLengths()[j];
    for (CoinBigIndex k = matrix.getVectorStarts()[j]; k < end; ++k) {
      cost -= multipliers[matrix.getIndices()[k]] * matrix.getElements()[k];
    }
    least += std::min(0.0, cost);
    added[j] = std::max(0.0, cost);
  }
  bound = least;
}

LinearSolver::LinearSolver(std::span<const double> costs, std::span<const uint8_t> whole)
    : state_(std::make_unique<State>()) {
  state_->whole.assign(whole.begin(), whole.end());
  ClpSimplex& clp = state_->clp;
  clp.setLogLevel(0);
  clp.resize(0, static_cast<int>(costs.size()));
  for (int j = 0; j < static_cast<int>(costs.size()); ++j) {
    clp.setObjectiveCoefficient(j, costs[j]);
    clp.setColumnBounds(j, 0, 1);
  }
}

LinearSolver::~LinearSolver() = default;

bool LinearSolver::Available() { return true; }

void LinearSolver::AddRows(std::span<const LinearRow> rows) {
  std::vector<int> starts{0}, columns;
  std::vector<double> low, high, elements;
  for (const LinearRow& row : rows) {
    for (const auto& [column, coefficient] : row.terms) {
      columns.push_back(static_cast<int>(column));
      elements.push_back(coefficient);
    }
    starts.push_back(static_cast<int>(columns.size()));
    low.push_back(std::isfinite(row.low) ? row.low : -COIN_DBL_MAX);
    high.push_back(std::isfinite(row.high) ? row.high : COIN_DBL_MAX);
  }
  if (rows.empty()) return;
  state_->clp.addRows(static_cast<int>(rows.size()), low.data(), high.data(), starts.data(),
                      columns.data(), elements.data());
}

LinearStatus LinearSolver::SolveRelaxation(const TimeLimit& time) {
  ClpSimplex& clp = state_->clp;
  // Clp counts processor time; the handler looks at the clock that is meant.
  clp.setMaximumSeconds(std::min(time.SecondsLeft(), kForever));
  const TimeHandler handler(time);
  clp.passInEventHandler(&handler);
  if (state_->started) {
    clp.dual();
  } else {
    clp.initialSolve();
    state_->started = true;
  }
  state_->FindBound();
  if (clp.status() == 0) return LinearStatus::kOptimal;
  return clp.status() == 1 ? LinearStatus::kInfeasible : LinearStatus::kStopped;
}

std::span<const double> LinearSolver::values() const {
  return {state_->clp.getColSolution(), static_cast<size_t>(state_->clp.numberColumns())};
}

double LinearSolver::bound() const { return state_->bound; }

std::span<const double> LinearSolver::added() const { return state_->added; }

LinearSolver::Integer LinearSolver::SolveInteger(double cutoff, const TimeLimit& time,
                                                 uint64_t max_branch_nodes, bool cuts) const {
  const ClpSimplex& clp = state_->clp;
  const int columns = clp.numberColumns();
  std::unique_ptr<Cbc_Model, ModelDeleter> model(Cbc_newModel());
  Cbc_Model* m = model.get();
  Cbc_setLogLevel(m, 0);
  Cbc_setParameter(m, "log", "0");
  Cbc_setParameter(m, "slog", "0");
  const CoinPackedMatrix& matrix = *clp.matrix();
  Cbc_loadProblem(m, columns, clp.numberRows(), matrix.getVectorStarts(), matrix.getIndices(),
                  matrix.getElements(), clp.getColLower(), clp.getColUpper(),
                  clp.getObjCoefficients(), clp.getRowLower(), clp.getRowUpper());
  for (int j = 0; j < columns; ++j) {
    if (state_->whole[j]) Cbc_setInteger(m, j);
  }
  if (std::isfinite(cutoff)) Cbc_setParameter(m, "cutoff", Text(cutoff).c_str());
  if (!time.unlimited()) {
    Cbc_setParameter(m, "timeMode", time.kind() == TimeKind::kWall ? "elapsed" : "cpu");
    Cbc_setParameter(m, "sec", Text(std::max(time.SecondsLeft(), 0.01)).c_str());
  }
  Cbc_setParameter(m, "maxNodes",
                   std::to_string(std::min<uint64_t>(max_branch_nodes, INT_MAX)).c_str());
  if (!cuts) {
    Cbc_setParameter(m, "cutsOnOff", "off");
    Cbc_setParameter(m, "heuristicsOnOff", "off");
  }
  Cbc_setParameter(m, "ratioGap", "0");
  Cbc_setParameter(m, "allowableGap", "0");
  Cbc_solve(m);
  Integer result;
  result.branch_nodes = static_cast<uint64_t>(std::max(0, Cbc_getNodeCount(m)));
  result.bound = Cbc_getBestPossibleObjValue(m);
  if (Cbc_isProvenOptimal(m)) {
    result.status = LinearStatus::kOptimal;
  } else if (Cbc_isProvenInfeasible(m)) {
    result.status = LinearStatus::kInfeasible;
  }
  if (const double* values = Cbc_bestSolution(m)) {
    if (result.status != LinearStatus::kInfeasible && Cbc_getObjValue(m) < cutoff) {
      result.values.assign(values, values + columns);
    }
  }
  return result;
}

}  // namespace l3c::egraph
