#include "core/base/leading_number.h"

#include <catch2/catch.hpp>

namespace tpsim {

TEST_CASE("a text is a number if all of it is and the type holds it") {
  CHECK(parse_number<double>("-1.5e3") == -1500.0);
  CHECK(parse_number<int>("-12") == -12);
  CHECK(parse_number<std::int64_t>("9223372036854775807") == 9223372036854775807);
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "x", "-", "1,5"}) {
    INFO(text);
    CHECK_FALSE(parse_number<double>(text).has_value());
    CHECK_FALSE(parse_number<int>(text).has_value());
  }
  CHECK_FALSE(parse_number<int>("1.5").has_value());
  CHECK_FALSE(parse_number<int>("3000000000").has_value());
  CHECK_FALSE(parse_number<double>("1e999").has_value());
}

TEST_CASE("a leading number ends where its spelling does") {
  CHECK(leading_number("300 GB/s")->length == 3);
  CHECK(leading_number("2e")->length == 1);
  CHECK_FALSE(leading_number("GB").has_value());
}

}  // namespace tpsim
