#include "tools/l3c/progress_bar.h"

#include <algorithm>
#include <iostream>

#include "tools/l3c/progress.h"

namespace l3c::tools {

void ProgressBar::Show(const std::string& what, double share, double left_seconds) const {
  if (!shown_) return;
  constexpr int kWidth = 30;
  const int full = static_cast<int>(std::clamp(share, 0.0, 1.0) * kWidth);
  const double spent =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  std::cerr << "\r\033[K[" << std::string(static_cast<size_t>(full), '=')
            << std::string(static_cast<size_t>(kWidth - full), ' ') << "] " << what << ", "
            << Duration(spent);
  if (left_seconds > 0) {
    std::cerr << ", " << Duration(left_seconds) << " left";
  } else if (left_seconds < 0 && share > 0.2) {
    std::cerr << ", " << Duration(spent / share * (1 - share)) << " left";
  }
  std::cerr << std::flush;
}

void ProgressBar::Clear() const {
  if (shown_) std::cerr << "\r\033[K" << std::flush;
}

}  // namespace l3c::tools
