// Stands in for linear_solver_coin.cc where the library is not installed.
#include "egraph/extract/linear_solver.h"

namespace l3c::egraph {

struct LinearSolver::State {};

LinearSolver::LinearSolver(std::span<const double>, std::span<const uint8_t>) {}
LinearSolver::~LinearSolver() = default;
bool LinearSolver::Available() { return false; }
void LinearSolver::AddRows(std::span<const LinearRow>) {}
LinearStatus LinearSolver::SolveRelaxation(const TimeLimit&) { return LinearStatus::kStopped; }
double LinearSolver::objective() const { return 0; }
std::span<const double> LinearSolver::values() const { return {}; }
std::span<const double> LinearSolver::reduced_costs() const { return {}; }
LinearSolver::Integer LinearSolver::SolveInteger(double, const TimeLimit&, uint64_t, bool) const {
  return {};
}

}  // namespace l3c::egraph
