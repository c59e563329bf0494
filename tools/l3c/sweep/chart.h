// Charts as SVG: panels of marks and lines, and panels of bars. Text and lines take the colours of
// the reader's scheme, light or dark; series differ in colour and in shape.
#pragma once

#include <string>
#include <vector>

namespace l3c::tools::sweep {

struct Mark {
  double x = 0;
  double low = 0;  // low … high is drawn as a bar of error where it is longer than nothing
  double y = 0;
  double high = 0;
  std::string title;  // shown when pointed at
};

struct Series {
  std::string name;  // in the legend; the same name looks the same in all panels
  std::vector<Mark> marks;
  bool line = true;
  bool dots = true;
};

struct Panel {
  std::string title;
  std::vector<Series> series;
};

struct Chart {
  std::string title;
  std::string x_label;  // with its unit
  std::string y_label;
  bool log_x = false;
  bool log_y = false;
  std::vector<Panel> panels;
};
std::string RenderChart(const Chart& chart);

struct Bar {
  std::string label;
  double low = 0;
  double value = 0;
  double high = 0;
};

struct BarPanel {
  std::string title;
  std::vector<Bar> bars;
};

struct BarChart {
  std::string title;
  std::string x_label;
  double zero = 0;  // where bars begin
  std::vector<BarPanel> panels;
};
std::string RenderBars(const BarChart& chart);

}  // namespace l3c::tools::sweep
