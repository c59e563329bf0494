// Results as a table of Markdown, its columns as wide as what stands in them.
#pragma once

#include <string>
#include <vector>

#include "tools/l3c/sweep/summary.h"

namespace l3c::tools::sweep {

// Rows of cells, the first one the head.
std::string RenderTable(const std::vector<std::vector<std::string>>& rows);

// "19.7", "0.00123", "1.2e+09": four digits at most.
std::string FigureText(double value);

// A row a point: its workload, the axes that vary, its figures; of measured ones the median and
// half the distance of the quartiles in percent.
std::string ResultTable(const std::vector<Summary>& points);

// Axes with more than one label among the points, in the grammar's order.
std::vector<std::string> VaryingAxes(const std::vector<Summary>& points);

}  // namespace l3c::tools::sweep
