// Everything here works on the decimal digits of a number rather than on products of doubles: a
// unit that is a power of ten only moves the decimal point, so no rounding happens but the one
// std::from_chars does, and printing can undo exactly what parsing did.
#include "layers/support/units.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <system_error>
#include <vector>

namespace l3c::support {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// digits × 10^exponent, without leading zeros ("" is zero), plus the unit's letters.
struct Decimal {
  std::string digits;
  int64_t exponent = 0;
  bool plain = true;  // neither fraction nor exponent was written
  std::string_view unit;
};

constexpr int64_t kMaxExponent = 100000;

std::optional<Decimal> Split(std::string_view text, std::string* error) {
  Decimal number;
  size_t i = 0;
  while (i < text.size() && IsDigit(text[i])) number.digits += text[i++];
  if (i == 0) {
    *error = "'" + std::string(text) + "' is not a number";
    return std::nullopt;
  }
  if (i + 1 < text.size() && text[i] == '.' && IsDigit(text[i + 1])) {
    number.plain = false;
    for (++i; i < text.size() && IsDigit(text[i]); ++i) {
      number.digits += text[i];
      --number.exponent;
    }
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    size_t digits = i + 1;
    const bool sign = digits < text.size() && (text[digits] == '+' || text[digits] == '-');
    const bool negative = sign && text[digits] == '-';
    if (sign) ++digits;
    if (digits < text.size() && IsDigit(text[digits])) {
      number.plain = false;
      int64_t exponent = 0;
      for (i = digits; i < text.size() && IsDigit(text[i]); ++i) {
        exponent = std::min(kMaxExponent, exponent * 10 + (text[i] - '0'));
      }
      number.exponent += negative ? -exponent : exponent;
    }
  }
  number.unit = text.substr(i);
  number.digits.erase(0, std::min(number.digits.find_first_not_of('0'), number.digits.size()));
  return number;
}

struct Unit {
  std::string_view name;
  int tens;         // the unit is 10^tens …
  int twos = 0;     // … × 2^twos …
  int seconds = 0;  // … × seconds, for min and h
};

constexpr Unit kCounts[] = {{"", 0}, {"K", 3}, {"M", 6}, {"B", 9}};
constexpr Unit kBytes[] = {{"B", 0},       {"kB", 3},     {"KB", 3},      {"MB", 6},
                           {"GB", 9},      {"TB", 12},    {"KiB", 0, 10}, {"MiB", 0, 20},
                           {"GiB", 0, 30}, {"TiB", 0, 40}};
constexpr Unit kTimes[] = {{"s", 0},   {"ms", -3},        {"us", -6},
                           {"ns", -9}, {"min", 0, 0, 60}, {"h", 0, 0, 3600}};

template <size_t N>
const Unit* Find(const Unit (&units)[N], std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

std::string_view WithoutPerSecond(std::string_view unit) {
  return unit.size() > 2 && unit.substr(unit.size() - 2) == "/s" ? unit.substr(0, unit.size() - 2)
                                                                 : std::string_view();
}

// "a time ('10ms')": what the user wrote instead of the kind that is wanted.
std::string Found(std::string_view text, std::string_view unit) {
  const std::string quoted = "'" + std::string(text) + "'";
  if (unit.empty()) return quoted + ", which has no unit";
  if (unit != "B" && Find(kCounts, unit)) return quoted + ", a count";
  if (Find(kBytes, unit)) return quoted + ", a size in bytes";
  if (Find(kBytes, WithoutPerSecond(unit))) return quoted + ", a rate";
  if (Find(kTimes, unit)) return quoted + ", a time";
  return quoted + ", whose unit '" + std::string(unit) + "' is unknown";
}

std::nullopt_t Fail(std::string* error, std::string message) {
  *error = std::move(message);
  return std::nullopt;
}

// digits × 10^exponent × 2^twos as a whole number.
std::optional<int64_t> Whole(Decimal number, int twos, std::string_view text, std::string* error) {
  const std::string quoted = "'" + std::string(text) + "'";
  constexpr uint64_t kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  while (number.exponent < 0 && !number.digits.empty() && number.digits.back() == '0') {
    number.digits.pop_back();
    ++number.exponent;
  }
  if (number.digits.empty()) return 0;
  if (number.digits.size() > 40 || number.exponent > 40) {
    return Fail(error, quoted + " is too large or too finely divided");
  }
  // Doubling the decimal digits stays exact for fractions (1.5GiB) too.
  for (int k = 0; k < twos; ++k) {
    int carry = 0;
    for (size_t i = number.digits.size(); i-- > 0;) {
      const int digit = (number.digits[i] - '0') * 2 + carry;
      number.digits[i] = static_cast<char>('0' + digit % 10);
      carry = digit / 10;
    }
    if (carry > 0) number.digits.insert(number.digits.begin(), '1');
  }
  for (; number.exponent < 0; ++number.exponent) {
    if (number.digits.empty() || number.digits.back() != '0') {
      return Fail(error, quoted + " is not a whole number");
    }
    number.digits.pop_back();
  }
  uint64_t value = 0;
  for (size_t i = 0; i < number.digits.size() + static_cast<size_t>(number.exponent); ++i) {
    const uint64_t digit =
        i < number.digits.size() ? static_cast<uint64_t>(number.digits[i] - '0') : 0;
    if (value > (kMax - digit) / 10) return Fail(error, quoted + " does not fit into 63 bits");
    value = value * 10 + digit;
  }
  return static_cast<int64_t>(value);
}

// digits × 10^exponent as the nearest double.
std::optional<double> Nearest(const Decimal& number, std::string_view text, std::string* error) {
  if (number.digits.empty()) return 0.0;
  const std::string spelled = number.digits + "e" + std::to_string(number.exponent);
  double value = 0;
  const auto result = std::from_chars(spelled.data(), spelled.data() + spelled.size(), value);
  if (result.ec == std::errc::result_out_of_range) {
    // Neither is another number: what is written is meant.
    const bool small = static_cast<int64_t>(number.digits.size()) + number.exponent < 0;
    return Fail(error, "'" + std::string(text) + "' is too " +
                           (small ? "small for 64 bits; write 0 if it is meant" : "large"));
  }
  return value;
}

std::optional<double> Times(double value, double factor, std::string_view text,
                            std::string* error) {
  value *= factor;
  if (std::isinf(value)) return Fail(error, "'" + std::string(text) + "' is too large");
  return value;
}

std::optional<int64_t> ParseHexadecimal(std::string_view text, std::string* error) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data() + 2, end, value, 16);
  if (result.ec == std::errc::invalid_argument || result.ptr != end) {
    return Fail(error, "'" + std::string(text) + "' is not a hexadecimal number");
  }
  if (result.ec != std::errc() ||
      value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return Fail(error, "'" + std::string(text) + "' does not fit into 63 bits");
  }
  return static_cast<int64_t>(value);
}

bool IsHexadecimal(std::string_view text) {
  return text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

// The shortest decimal digits that std::to_chars gives, as digits × 10^exponent.
template <class Float>
Decimal Digits(Float value) {
  char buffer[64];
  const auto result =
      std::to_chars(std::begin(buffer), std::end(buffer), value, std::chars_format::scientific);
  std::string error;
  return *Split(std::string_view(buffer, static_cast<size_t>(result.ptr - buffer)), &error);
}

// digits × 10^exponent without an exponent: "24.5", "0.003", "1200".
std::string Positional(const Decimal& number) {
  if (number.digits.empty()) return "0";
  std::string digits = number.digits;
  int64_t exponent = number.exponent;
  while (exponent < 0 && digits.size() > 1 && digits.back() == '0') {
    digits.pop_back();
    ++exponent;
  }
  if (exponent >= 0) return digits + std::string(static_cast<size_t>(exponent), '0');
  const auto fraction = static_cast<size_t>(-exponent);
  if (digits.size() <= fraction) digits.insert(0, fraction - digits.size() + 1, '0');
  digits.insert(digits.size() - fraction, ".");
  return digits;
}

// Takes `candidate` if it is shorter, or as short and without a point where `best` has one.
void KeepShorter(std::string candidate, std::string& best) {
  const auto rank = [](const std::string& text) {
    return std::pair(text.size(), text.find('.') != std::string::npos);
  };
  if (best.empty() || rank(candidate) < rank(best)) best = std::move(candidate);
}

template <class Float>
std::string PrintFloat(Float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto result = std::to_chars(std::begin(buffer), std::end(buffer), value);
  std::string text(buffer, result.ptr);
  const size_t e = text.find('e');
  if (e == std::string::npos) {
    if (text.find('.') == std::string::npos) text += ".0";
    return text;
  }
  // 1e-04 → 1e-4, 1e+05 → 1e5.
  size_t digits = e + 1;
  if (text[digits] == '+') {
    text.erase(digits, 1);
  } else {
    ++digits;
  }
  while (digits + 1 < text.size() && text[digits] == '0') text.erase(digits, 1);
  return text;
}

}  // namespace

std::optional<int64_t> ParseCount(std::string_view text, std::string* error) {
  if (IsHexadecimal(text)) return ParseHexadecimal(text, error);
  auto number = Split(text, error);
  if (!number) return std::nullopt;
  const Unit* unit = Find(kCounts, number->unit);
  if (!unit)
    return Fail(error, "expected a count such as 500K, found " + Found(text, number->unit));
  number->exponent += unit->tens;
  return Whole(*std::move(number), 0, text, error);
}

std::optional<int64_t> ParseBytes(std::string_view text, std::string* error) {
  auto number = IsHexadecimal(text) ? Decimal{} : Split(text, error);
  if (!number) return std::nullopt;
  const Unit* unit = Find(kBytes, number->unit);
  if (!unit) {
    return Fail(error, "expected a size in bytes such as 32GB, found " + Found(text, number->unit));
  }
  number->exponent += unit->tens;
  return Whole(*std::move(number), unit->twos, text, error);
}

std::optional<double> ParseRate(std::string_view text, std::string* error) {
  auto number = IsHexadecimal(text) ? Decimal{} : Split(text, error);
  if (!number) return std::nullopt;
  const Unit* unit = Find(kBytes, WithoutPerSecond(number->unit));
  if (!unit)
    return Fail(error, "expected a rate such as 2GB/s, found " + Found(text, number->unit));
  number->exponent += unit->tens;
  const auto value = Nearest(*number, text, error);
  if (!value || unit->twos == 0) return value;
  return Times(*value, std::ldexp(1.0, unit->twos), text, error);
}

std::optional<double> ParseSeconds(std::string_view text, std::string* error) {
  auto number = IsHexadecimal(text) ? Decimal{} : Split(text, error);
  if (!number) return std::nullopt;
  const Unit* unit = Find(kTimes, number->unit);
  if (!unit) return Fail(error, "expected a time such as 10ms, found " + Found(text, number->unit));
  number->exponent += unit->tens;
  const auto value = Nearest(*number, text, error);
  if (!value || unit->seconds == 0) return value;
  return Times(*value, unit->seconds, text, error);
}

std::optional<double> ParseReal(std::string_view text, std::string* error) {
  if (IsHexadecimal(text)) {
    const auto whole = ParseHexadecimal(text, error);
    if (!whole) return std::nullopt;
    return static_cast<double>(*whole);
  }
  auto number = Split(text, error);
  if (!number) return std::nullopt;
  const Unit* unit = Find(kCounts, number->unit);
  if (!unit) {
    return Fail(error, "expected a number without a unit, found " + Found(text, number->unit));
  }
  number->exponent += unit->tens;
  return Nearest(*number, text, error);
}

bool IsPlainInteger(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

std::string PrintInteger(int64_t value) { return std::to_string(value); }

std::string PrintCount(int64_t value) {
  if (value == 0) return "0";
  if (value % 1000000000 == 0) return std::to_string(value / 1000000000) + "B";
  if (value % 1000000 == 0) return std::to_string(value / 1000000) + "M";
  if (value % 1000 == 0) return std::to_string(value / 1000) + "K";
  return std::to_string(value);
}

std::string PrintBytes(int64_t value) {
  std::string best = std::to_string(value) + "B";
  for (const Unit& unit : kBytes) {
    if (unit.name == "KB") continue;  // read, but kB is the name that is written
    int64_t size = int64_t{1} << unit.twos;
    for (int i = 0; i < unit.tens; ++i) size *= 10;
    if (value != 0 && value % size == 0) {
      KeepShorter(std::to_string(value / size) + std::string(unit.name), best);
    }
  }
  return best;
}

std::string PrintRate(double value) {
  std::string best;
  for (const Unit& unit : kBytes) {
    if (unit.name == "KB") continue;
    Decimal number = Digits(std::ldexp(value, -unit.twos));
    number.exponent -= unit.tens;
    std::string candidate = Positional(number) + std::string(unit.name) + "/s";
    std::string error;
    if (ParseRate(candidate, &error) == value) KeepShorter(std::move(candidate), best);
  }
  return best;
}

std::string PrintSeconds(double value) {
  std::string best;
  for (const Unit& unit : kTimes) {
    if (unit.seconds != 0) continue;  // minutes and hours are read, seconds are written
    Decimal number = Digits(value);
    number.exponent -= unit.tens;
    KeepShorter(Positional(number) + std::string(unit.name), best);
  }
  return best;
}

std::string PrintReal(double value) { return PrintFloat(value); }
std::string PrintReal32(float value) { return PrintFloat(value); }

}  // namespace l3c::support
