// Stands in for linear_solver_coin.cc where the library is not installed.
#include <limits>

#include "egraph/extract/linear_solver.h"

namespace l3c::egraph {

struct LinearSolver::State {};

LinearSolver::LinearSolver(std::span<const double>, std::span<const uint8_t>) {}
LinearSolver::~LinearSolver() = default;
bool LinearSolver::Available() { return false; }
void LinearSolver::AddRows(std::span<const LinearRow>) {}
LinearStatus LinearSolver::SolveRelaxation(const TimeLimit&) { return LinearStatus::kStopped; }
std::span<const double> LinearSolver::values() const { return {}; }
double LinearSolver::bound() const { return -std::numeric_limits<double>::infinity(); }
std::span<const double> LinearSolver::added() const { return {}; }
LinearSolver::Integer LinearSolver::SolveInteger(double, const TimeLimit&, uint64_t, bool) const {
  return {};
}

}  // namespace l3c::egraph
