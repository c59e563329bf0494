#include "egraph/f64_text.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>

namespace l3c::egraph {
namespace {

struct Digits {
  std::string sign, digits;
  int point = 0;  // digits in front of the decimal point; not above 0 where zeros follow it
};

std::optional<std::string> NotFinite(double d) {
  if (std::isnan(d)) return "NaN";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  return std::nullopt;
}

Digits ShortestDigits(double d) {
  char buffer[40];
  const char* end =
      std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific).ptr;
  Digits result;
  const char* at = buffer;
  if (*at == '-') result.sign = *at++;
  for (; *at != 'e'; ++at) {
    if (*at != '.') result.digits += *at;
  }
  ++at;
  if (*at == '+') ++at;
  std::from_chars(at, end, result.point);
  ++result.point;
  return result;
}

// Without an exponent; without a point where there is nothing behind it.
std::string Plain(const Digits& d) {
  const auto size = static_cast<int>(d.digits.size());
  if (d.point <= 0)
    return d.sign + "0." + std::string(static_cast<size_t>(-d.point), '0') + d.digits;
  const auto point = static_cast<size_t>(d.point);
  if (d.point >= size) return d.sign + d.digits + std::string(point - d.digits.size(), '0');
  return d.sign + d.digits.substr(0, point) + "." + d.digits.substr(point);
}

}  // namespace

std::string F64Literal(double d) {
  if (const std::optional<std::string> text = NotFinite(d)) return *text;
  std::string text = Plain(ShortestDigits(d));
  int64_t i = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), i);
  if (read.ec == std::errc() && read.ptr == text.data() + text.size()) text += ".0";
  return text;
}

std::string F64ToString(double d) {
  if (const std::optional<std::string> text = NotFinite(d)) return *text;
  const Digits digits = ShortestDigits(d);
  if (d != 0 && (std::fabs(d) >= 1e16 || std::fabs(d) < 1e-4)) {
    return digits.sign + digits.digits.substr(0, 1) +
           (digits.digits.size() > 1 ? "." + digits.digits.substr(1) : "") + "e" +
           std::to_string(digits.point - 1);
  }
  const std::string text = Plain(digits);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

}  // namespace l3c::egraph
