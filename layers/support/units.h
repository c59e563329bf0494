// Numbers with units: parsing and canonical printing.
//
//   count   500K  1M  7B  128  0x4000     K, M, B are thousands, millions, billions
//   bytes   32GB  64KiB  16B              kB, MB, GB, TB of ten; KiB, MiB, GiB, TiB of two
//   rate    2GB/s  12.5MiB/s              bytes a second
//   time    10ms  2s  5us  30min          ns, us, ms, s, min, h
//   real    3e-4  1.0  0.9  inf
//
// The parsers take the text of a number token without a sign. On failure they return nothing and
// set `*error` to a sentence: what is wrong, or which kind of unit was found instead.
// Printing is canonical and exact: parsing the printed text gives the same value, bit for bit, and
// of the spellings that do, the shortest is chosen (without a decimal point and with powers of ten
// first): 500K, 32GB, 2GB/s, 10ms, 1e-4, 1.0 print as they are written here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace l3c::support {

std::optional<int64_t> ParseCount(std::string_view text, std::string* error);
std::optional<int64_t> ParseBytes(std::string_view text, std::string* error);  // a unit is required
std::optional<double> ParseRate(std::string_view text, std::string* error);    // bytes per second
std::optional<double> ParseSeconds(std::string_view text, std::string* error);
// No unit but K, M, B. Overflow to infinity is an error; "inf" itself is a word, not a number
// token (ParserBase::ExpectReal takes it).
std::optional<double> ParseReal(std::string_view text, std::string* error);

// True when a count has no fraction, exponent or unit, so that it can be a list index, an extent …
bool IsPlainInteger(std::string_view text);

std::string PrintInteger(int64_t value);  // 1000: plain digits
std::string PrintCount(int64_t value);    // 1K: the largest of B, M, K that divides it
std::string PrintBytes(int64_t value);    // value >= 0
std::string PrintRate(double value);      // bytes per second, finite, >= 0
std::string PrintSeconds(double value);   // finite, >= 0
std::string PrintReal(double value);      // shortest that reads back as the same double
std::string PrintReal32(float value);     // shortest that reads back as the same float

}  // namespace l3c::support
