#include "tools/l3c/sweep/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace l3c::tools::sweep {
namespace {

constexpr double kPanelWidth = 360, kPanelHeight = 240;
constexpr double kLeft = 70, kRight = 20, kTop = 34, kBottom = 48;
constexpr double kTitle = 34, kLegendLine = 20;
constexpr size_t kColumns = 3;
constexpr size_t kLooks = 8;  // of series; then they repeat

// The palette of Okabe and Ito, whose colours people with any colour vision tell apart; brighter
// where the paper is dark.
constexpr const char* kStyle =
    "<style>\n"
    "svg{--paper:#fff;--ink:#1f2328;--faint:#d8dee4}\n"
    ".s0{--c:#0072b2}.s1{--c:#d55e00}.s2{--c:#009e73}.s3{--c:#cc79a7}\n"
    ".s4{--c:#8a6d00}.s5{--c:#56b4e9}.s6{--c:#000}.s7{--c:#999}\n"
    "@media (prefers-color-scheme:dark){\n"
    "svg{--paper:#0d1117;--ink:#e6edf3;--faint:#30363d}\n"
    ".s0{--c:#4aa8e0}.s1{--c:#ff8a3d}.s2{--c:#2fcf9f}.s3{--c:#e8a0c8}\n"
    ".s4{--c:#f0e442}.s5{--c:#8fd0f5}.s6{--c:#fff}.s7{--c:#aaa}}\n"
    "text{fill:var(--ink);font:12px sans-serif}.t{font-weight:bold}.h{font:bold 15px sans-serif}\n"
    ".g{stroke:var(--faint)}.a{stroke:var(--ink)}\n"
    ".l{fill:none;stroke:var(--c);stroke-width:1.8}.e{stroke:var(--c)}\n"
    ".d{fill:var(--c);stroke:var(--paper);stroke-width:.8}\n"
    "</style>\n";

__attribute__((format(printf, 2, 3))) void Append(std::string& to, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  to += text;
}

std::string Escape(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

void Text(std::string& to, double x, double y, const char* anchor, const char* look,
          const std::string& text) {
  Append(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>", x, y, anchor, look);
  to += Escape(text) + "</text>\n";
}

std::string Number(double value) {
  char text[32];
  if (value != 0 && std::abs(value) >= 1e4) {
    const char* units[] = {"k", "M", "G", "T"};
    double scaled = value;
    for (const char* unit : units) {
      scaled /= 1000;
      if (std::abs(scaled) < 1000 || unit == units[3]) {
        std::snprintf(text, sizeof text, "%.4g%s", scaled, unit);
        return text;
      }
    }
  }
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

// An axis: where a value lies between 0 and 1, and where its ticks are.
class Scale {
 public:
  Scale(double low, double high, bool logarithmic) : log_(logarithmic && low > 0) {
    if (log_) {
      low_ = std::log10(low), high_ = std::log10(high);
    } else {
      low_ = low, high_ = high;
    }
    const double margin = high_ > low_ ? (high_ - low_) * 0.06 : std::abs(high_) * 0.1 + 0.1;
    low_ -= margin, high_ += margin;
    if (log_) {
      LogTicks();
    } else {
      LinearTicks(low_, high_);
    }
  }
  double At(double value) const {
    return ((log_ ? std::log10(value) : value) - low_) / (high_ - low_);
  }
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  void LogTicks() {
    const bool few = high_ - low_ < 2;
    for (double decade = std::floor(low_); decade <= high_; ++decade) {
      for (double step : {1.0, 2.0, 5.0}) {
        if (step > 1 && !few) continue;
        const double at = decade + std::log10(step);
        if (at >= low_ && at <= high_) ticks_.push_back(std::pow(10, at));
      }
    }
    while (ticks_.size() > 7) {  // every other decade
      std::vector<double> fewer;
      for (size_t i = 0; i < ticks_.size(); i += 2) fewer.push_back(ticks_[i]);
      ticks_ = fewer;
    }
    if (ticks_.size() >= 3) return;
    ticks_.clear();
    LinearTicks(std::pow(10, low_), std::pow(10, high_));
  }
  void LinearTicks(double low, double high) {
    const double rough = (high - low) / 5;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (double nice : {1.0, 2.0, 5.0}) {
      if (nice * power >= rough) {
        step = nice * power;
        break;
      }
    }
    for (double i = std::ceil(low / step); i * step <= high; ++i) {
      ticks_.push_back(i == 0 ? 0 : i * step);
    }
  }

  bool log_;
  double low_ = 0, high_ = 1;
  std::vector<double> ticks_;
};

void Dot(std::string& to, size_t look, double x, double y, const std::string& title) {
  switch (look % 4) {
    case 0:
      Append(to, "<circle class=\"d\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\">", x, y);
      break;
    case 1:
      Append(to, "<rect class=\"d\" x=\"%.1f\" y=\"%.1f\" width=\"7\" height=\"7\">", x - 3.5,
             y - 3.5);
      break;
    case 2:
      Append(to, "<path class=\"d\" d=\"M%.1f %.1fl4.5 8h-9z\">", x, y - 5);
      break;
    default:
      Append(to, "<path class=\"d\" d=\"M%.1f %.1fl5 5l-5 5l-5-5z\">", x, y - 5);
      break;
  }
  to += "<title>" + Escape(title) + "</title>";
  to += look % 4 == 0 ? "</circle>\n" : look % 4 == 1 ? "</rect>\n" : "</path>\n";
}

std::string Page(double width, double height, const std::string& title, const std::string& body) {
  std::string page;
  Append(page,
         "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
         "height=\"%.0f\">\n",
         width, height, width, height);
  page += kStyle;
  page += "<rect width=\"100%\" height=\"100%\" style=\"fill:var(--paper)\"/>\n";
  Text(page, 16, 23, "start", " class=\"h\"", title);
  return page + body + "</svg>\n";
}

class ChartDrawer {
 public:
  explicit ChartDrawer(const Chart& chart) : chart_(chart) {
    for (const Panel& panel : chart.panels) {
      for (const Series& series : panel.series) {
        if (std::find(names_.begin(), names_.end(), series.name) == names_.end()) {
          names_.push_back(series.name);
        }
      }
    }
  }

  std::string Run() {
    const size_t columns = std::clamp<size_t>(chart_.panels.size(), 1, kColumns);
    const size_t rows = (chart_.panels.size() + columns - 1) / columns;
    for (size_t p = 0; p < chart_.panels.size(); ++p) {
      Draw(chart_.panels[p], static_cast<double>(p % columns) * kPanelWidth,
           kTitle + static_cast<double>(p / columns) * kPanelHeight);
    }
    const double width = static_cast<double>(columns) * kPanelWidth;
    double y = kTitle + static_cast<double>(rows) * kPanelHeight + 6;
    y = Legend(width, y);
    return Page(width, y, chart_.title, body_);
  }

 private:
  size_t LookOf(const Series& series) const {
    return static_cast<size_t>(std::find(names_.begin(), names_.end(), series.name) -
                               names_.begin());
  }

  void Draw(const Panel& panel, double x0, double y0) {
    double bounds[4] = {0, 0, 0, 0};
    bool any = false;
    for (const Series& series : panel.series) {
      for (const Mark& mark : series.marks) {
        const double found[4] = {mark.x, mark.x, std::min(mark.low, mark.y),
                                 std::max(mark.high, mark.y)};
        for (int i = 0; i < 4; ++i) {
          bounds[i] =
              !any ? found[i]
                   : (i % 2 == 0 ? std::min(bounds[i], found[i]) : std::max(bounds[i], found[i]));
        }
        any = true;
      }
    }
    const double left = x0 + kLeft, right = x0 + kPanelWidth - kRight;
    const double top = y0 + kTop, bottom = y0 + kPanelHeight - kBottom;
    Text(body_, (left + right) / 2, y0 + 22, "middle", " class=\"t\"", panel.title);
    if (!any) return;
    const Scale across(bounds[0], bounds[1], chart_.log_x);
    const Scale up(bounds[2], bounds[3], chart_.log_y);
    const auto x = [&](double value) { return left + across.At(value) * (right - left); };
    const auto y = [&](double value) { return bottom - up.At(value) * (bottom - top); };
    for (double tick : across.ticks()) {
      Append(body_, "<line class=\"g\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
             x(tick), x(tick), top, bottom);
      Text(body_, x(tick), bottom + 16, "middle", "", Number(tick));
    }
    for (double tick : up.ticks()) {
      Append(body_, "<line class=\"g\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", left,
             right, y(tick), y(tick));
      Text(body_, left - 6, y(tick) + 4, "end", "", Number(tick));
    }
    Append(body_, "<path class=\"a\" fill=\"none\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", left, top,
           bottom, right);
    Text(body_, (left + right) / 2, bottom + 34, "middle", "", chart_.x_label);
    Append(body_, "<g transform=\"rotate(-90 %.1f %.1f)\">", x0 + 16, (top + bottom) / 2);
    Text(body_, x0 + 16, (top + bottom) / 2, "middle", "", chart_.y_label);
    body_ += "</g>\n";
    for (const Series& series : panel.series) {
      const size_t look = LookOf(series);
      Append(body_, "<g class=\"s%zu\">\n", look % kLooks);
      if (series.line && series.marks.size() > 1) {
        body_ += "<path class=\"l\" d=\"";
        const char* step = "M";
        for (const Mark& mark : series.marks) {
          Append(body_, "%s%.1f %.1f", step, x(mark.x), y(mark.y));
          step = "L";
        }
        body_ += "\"/>\n";
      }
      for (const Mark& mark : series.marks) {
        if (!series.dots) break;
        if (mark.high > mark.low) {
          Append(body_, "<line class=\"e\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                 x(mark.x), x(mark.x), y(mark.low), y(mark.high));
        }
        Dot(body_, look, x(mark.x), y(mark.y), mark.title);
      }
      body_ += "</g>\n";
    }
  }

  double Legend(double width, double y) {
    double x = 16;
    for (size_t n = 0; n < names_.size(); ++n) {
      const double needed = 26 + 7.2 * static_cast<double>(names_[n].size());
      if (x > 16 && x + needed > width) {
        x = 16;
        y += kLegendLine;
      }
      Append(body_, "<g class=\"s%zu\">", n % kLooks);
      Dot(body_, n, x + 5, y, names_[n]);
      body_ += "</g>";
      Text(body_, x + 16, y + 4, "start", "", names_[n]);
      x += needed;
    }
    return y + kLegendLine;
  }

  const Chart& chart_;
  std::vector<std::string> names_;
  std::string body_;
};

}  // namespace

std::string RenderChart(const Chart& chart) { return ChartDrawer(chart).Run(); }

std::string RenderBars(const BarChart& chart) {
  constexpr double kNames = 250, kBars = 420, kLine = 18;
  std::string body;
  double y = kTitle;
  for (const BarPanel& panel : chart.panels) {
    double low = chart.zero, high = chart.zero;
    for (const Bar& bar : panel.bars) {
      low = std::min({low, bar.low, bar.value});
      high = std::max({high, bar.high, bar.value});
    }
    const Scale across(low, high, false);
    const auto x = [&](double value) { return kNames + across.At(value) * kBars; };
    Text(body, kNames + kBars / 2, y + 20, "middle", " class=\"t\"", panel.title);
    const double top = y + 30;
    const double bottom = top + kLine * static_cast<double>(panel.bars.size());
    for (double tick : across.ticks()) {
      Append(body, "<line class=\"g\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x(tick),
             x(tick), top, bottom);
      Text(body, x(tick), bottom + 15, "middle", "", Number(tick));
    }
    for (size_t b = 0; b < panel.bars.size(); ++b) {
      const Bar& bar = panel.bars[b];
      const double line = top + kLine * static_cast<double>(b);
      Text(body, kNames - 8, line + 13, "end", "", bar.label);
      const double from = std::min(x(chart.zero), x(bar.value));
      const double to = std::max(x(chart.zero), x(bar.value));
      Append(body,
             "<g class=\"s0\"><rect class=\"d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
             "height=\"%.1f\">",
             from, line + 3, std::max(0.5, to - from), kLine - 6);
      body += "<title>" + Escape(bar.label + ": " + Number(bar.value)) + "</title></rect></g>\n";
      if (bar.high > bar.low) {
        Append(body, "<line class=\"a\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
               x(bar.low), x(bar.high), line + kLine / 2, line + kLine / 2);
      }
    }
    Append(body, "<line class=\"a\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
           x(chart.zero), x(chart.zero), top, bottom);
    Text(body, kNames + kBars / 2, bottom + 33, "middle", "", chart.x_label);
    y = bottom + 44;
  }
  return Page(kNames + kBars + 30, y + 10, chart.title, body);
}

}  // namespace l3c::tools::sweep
