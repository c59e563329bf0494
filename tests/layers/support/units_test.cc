#include "layers/support/units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace l3c::support {
namespace {

template <class T>
std::string Failure(std::optional<T> (*parse)(std::string_view, std::string*),
                    std::string_view text) {
  std::string error;
  EXPECT_FALSE(parse(text, &error).has_value()) << text;
  return error;
}

TEST(UnitsTest, SpellingsOfTheSpecificationRoundTrip) {
  std::string error;
  for (const char* text : {"500K", "1M", "128", "7B", "0", "1500K"}) {
    EXPECT_EQ(PrintCount(ParseCount(text, &error).value()), text);
  }
  for (const char* text : {"32GB", "24GB", "64KiB", "16B", "0B", "1500MB", "3GiB"}) {
    EXPECT_EQ(PrintBytes(ParseBytes(text, &error).value()), text);
  }
  for (const char* text : {"2GB/s", "50GB/s", "24.5GB/s", "12.5MiB/s", "0B/s", "500MB/s"}) {
    EXPECT_EQ(PrintRate(ParseRate(text, &error).value()), text);
  }
  for (const char* text : {"10ms", "2s", "5us", "1ns", "0.5s", "1250us", "0s"}) {
    EXPECT_EQ(PrintSeconds(ParseSeconds(text, &error).value()), text);
  }
  for (const char* text : {"1e-4", "3e-4", "1.0", "0.9", "0.999", "1e-8", "0.0", "1.5e10"}) {
    EXPECT_EQ(PrintReal(ParseReal(text, &error).value()), text);
  }
}

TEST(UnitsTest, ValuesAreExact) {
  std::string error;
  EXPECT_EQ(ParseCount("0x4000", &error), 0x4000);
  EXPECT_EQ(ParseCount("1.5M", &error), 1500000);
  EXPECT_EQ(ParseCount("1e3", &error), 1000);
  EXPECT_EQ(ParseCount("9223372036854775807", &error), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(ParseBytes("1.5GiB", &error), int64_t{3} << 29);
  EXPECT_EQ(ParseBytes("1.1GB", &error), 1100000000);
  EXPECT_EQ(ParseRate("2GB/s", &error), 2e9);
  EXPECT_EQ(ParseRate("0.1GB/s", &error), 1e8);
  EXPECT_EQ(ParseSeconds("10ms", &error), 0.01);
  EXPECT_EQ(ParseSeconds("2min", &error), 120.0);
  EXPECT_EQ(ParseReal("3e-4", &error), 3e-4);
  EXPECT_EQ(ParseReal("1e-9999", &error), std::nullopt);
}

TEST(UnitsTest, WrongUnitsAreNamed) {
  EXPECT_EQ(Failure(ParseBytes, "2GB/s"),
            "expected a size in bytes such as 32GB, found '2GB/s', a rate");
  EXPECT_EQ(Failure(ParseBytes, "32"),
            "expected a size in bytes such as 32GB, found '32', which has no unit");
  EXPECT_EQ(Failure(ParseRate, "2GB"),
            "expected a rate such as 2GB/s, found '2GB', a size in bytes");
  EXPECT_EQ(Failure(ParseSeconds, "10K"), "expected a time such as 10ms, found '10K', a count");
  EXPECT_EQ(Failure(ParseCount, "10ms"), "expected a count such as 500K, found '10ms', a time");
  EXPECT_EQ(Failure(ParseReal, "3q"),
            "expected a number without a unit, found '3q', whose unit 'q' is unknown");
  EXPECT_EQ(Failure(ParseCount, "1.5"), "'1.5' is not a whole number");
  EXPECT_EQ(Failure(ParseCount, "9223372036854775808"),
            "'9223372036854775808' does not fit into 63 bits");
  EXPECT_EQ(Failure(ParseCount, "0xFFFFFFFFFFFFFFFF"),
            "'0xFFFFFFFFFFFFFFFF' does not fit into 63 bits");
  EXPECT_EQ(Failure(ParseReal, "1e999"), "'1e999' is too large");
  EXPECT_EQ(Failure(ParseReal, "1e-400"),
            "'1e-400' is too small for 64 bits; write 0 if it is meant");
  EXPECT_EQ(Failure(ParseSeconds, "1e-400ms"),
            "'1e-400ms' is too small for 64 bits; write 0 if it is meant");
  EXPECT_EQ(Failure(ParseBytes, "0x40"),
            "expected a size in bytes such as 32GB, found '0x40', which has no unit");
}

TEST(UnitsTest, HugeSpellingsEndQuickly) {
  std::string error;
  EXPECT_FALSE(ParseCount("1e99999999999", &error));
  EXPECT_FALSE(ParseCount(std::string(1 << 20, '9'), &error));
  EXPECT_FALSE(ParseBytes("1e-999999999TiB", &error));
  EXPECT_FALSE(ParseReal("1" + std::string(400, '0'), &error));
}

TEST(UnitsTest, PrintedValuesReadBackBitForBit) {
  std::mt19937_64 random(7);
  std::string error;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bits = random();
    double real;
    std::memcpy(&real, &bits, sizeof real);
    if (std::isfinite(real)) {
      const double positive = std::fabs(real);
      EXPECT_EQ(ParseReal(PrintReal(positive), &error), positive);
      // Rates and times of any use; the text of 1e-300 s would be three hundred digits long.
      const double moderate = std::ldexp(1.0 + std::fabs(std::sin(static_cast<double>(i))),
                                         static_cast<int>(bits % 100) - 50);
      EXPECT_EQ(ParseRate(PrintRate(moderate), &error), moderate) << PrintRate(moderate);
      EXPECT_EQ(ParseSeconds(PrintSeconds(moderate), &error), moderate);
    }
    const auto whole = static_cast<int64_t>(bits >> (1 + bits % 60));
    EXPECT_EQ(ParseCount(PrintCount(whole), &error), whole);
    EXPECT_EQ(ParseBytes(PrintBytes(whole), &error), whole);
  }
}

TEST(UnitsTest, FloatsPrintShort) {
  EXPECT_EQ(PrintReal32(0.1f), "0.1");
  EXPECT_EQ(PrintReal32(3e-4f), "3e-4");
  EXPECT_EQ(PrintReal(100000.0), "1e5");
  EXPECT_EQ(PrintReal(-0.0), "-0.0");
  EXPECT_EQ(PrintReal(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(PrintReal(std::nan("")), "nan");
}

}  // namespace
}  // namespace l3c::support
