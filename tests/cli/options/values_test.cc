// Option texts as values, and errors for invalid texts.
#include "cli/options/values.h"

#include <catch2/catch.hpp>

#include "core/plan/plan.h"

namespace tpsim::cli {
namespace {

Arguments with(Opt opt, const std::string& text) {
  Arguments arguments;
  arguments.set(opt, text);
  return arguments;
}

using Integers = std::vector<std::int64_t>;

std::string error_of(const std::string& text) {
  const auto values = integers_of(with(opt_of(Setting::kTp), text), opt_of(Setting::kTp));
  return values.ok() ? "" : to_string(values.error());
}

}  // namespace

TEST_CASE("lists and ranges are read in the order written") {
  CHECK(*integers_of(with(opt_of(Setting::kTp), "4"), opt_of(Setting::kTp)) == Integers{4});
  CHECK(*integers_of(with(opt_of(Setting::kTp), "8,1-3,2"), opt_of(Setting::kTp)) ==
        Integers{8, 1, 2, 3, 2});
  CHECK(integers_of(Arguments(), opt_of(Setting::kTp))->empty());
}

Integers chosen_values(Setting setting, const std::string& text) {
  return setting_choices(with(opt_of(setting), text), setting)->values;
}

TEST_CASE("a dimension of a search holds each value once, ascending") {
  CHECK(chosen_values(Setting::kTp, "8,1-3,2") == Integers{1, 2, 3, 8});
}

TEST_CASE("a count follows its word") {
  const auto some = setting_choices(with(opt_of(Setting::kRecompute), "full,blocks:2-4,none"),
                                    Setting::kRecompute);
  REQUIRE(some.ok());
  CHECK(some->values == Integers{0, 2, 3});
  CHECK(some->counts == Integers{2, 3, 4});
  const auto counted =
      setting_choices(with(opt_of(Setting::kRecompute), "full:2"), Setting::kRecompute);
  REQUIRE_FALSE(counted.ok());
  CHECK(counted.error().where == "--recompute");
}

TEST_CASE("an invalid list of whole numbers is an error with option and text") {
  CHECK(error_of("4x") == "--tp: '4x' is not a whole number");
  CHECK(error_of("") == "--tp: '' is not a whole number");
  CHECK(error_of("1,,2") == "--tp: '' is not a whole number");
  CHECK(error_of("1.5") == "--tp: '1.5' is not a whole number");
  CHECK(error_of("0") == "--tp: 0 is out of range: from 1 to 1048576");
  CHECK(error_of("-4") == "--tp: -4 is out of range: from 1 to 1048576");
  CHECK(error_of("99999999999999999999") ==
        "--tp: 99999999999999999999 is out of range: from 1 to 1048576");
  CHECK(error_of("4-1") == "--tp: '4-1' is a range whose end is below its start (write 1-4)");
  CHECK(error_of("1-1000000") == "--tp: '1-1000000' spans more than 4096 values");
  CHECK(error_of("1-") == "--tp: '' is not a whole number");
}

TEST_CASE("a plan accepts one value per setting") {
  CHECK(*integer_of(with(opt_of(Setting::kPp), "12"), opt_of(Setting::kPp), 1) == 12);
  CHECK(*integer_of(Arguments(), opt_of(Setting::kPp), 7) == 7);
  const auto several = integer_of(with(opt_of(Setting::kPp), "1,2"), opt_of(Setting::kPp), 1);
  REQUIRE_FALSE(several.ok());
  CHECK(to_string(several.error()) == "--pp: '1,2' is more than one value (give one value)");
}

TEST_CASE("words of a setting are read, and the nearest one offered") {
  CHECK(chosen_values(Setting::kRecompute, "full,none") == Integers{0, 2});
  const auto typo =
      setting_choices(with(opt_of(Setting::kRecompute), "selectve"), Setting::kRecompute);
  REQUIRE_FALSE(typo.ok());
  CHECK(to_string(typo.error()) ==
        "--recompute: unknown value 'selectve' (did you mean selective?)");
}

TEST_CASE("a switch is on, off or, in a search, both") {
  CHECK(chosen_values(Setting::kSequenceParallel, "on") == Integers{1});
  CHECK(chosen_values(Setting::kSequenceParallel, "on,off") == Integers{0, 1});
  CHECK_FALSE(
      setting_choices(with(opt_of(Setting::kSequenceParallel), "yes"), Setting::kSequenceParallel)
          .ok());
}

TEST_CASE("a size needs a unit and is above zero") {
  CHECK(bytes_of(with(Opt("--max-memory"), "72GiB"), Opt("--max-memory"))->value() == 72 * kGiB);
  CHECK(bytes_of(Arguments(), Opt("--max-memory"))->value() == 0);
  CHECK(**probability_of(with(Opt("--max-oom"), "5%"), Opt("--max-oom")) == Approx(0.05));
  CHECK(**probability_of(with(Opt("--max-oom"), "0.2"), Opt("--max-oom")) == Approx(0.2));
  CHECK_FALSE(probability_of(Arguments(), Opt("--max-oom"))->has_value());
  for (const char* text : {"5", "0", "100%", "5 %", "%", "likely", ""}) {
    CHECK_FALSE(probability_of(with(Opt("--max-oom"), text), Opt("--max-oom")).ok());
  }
  CHECK_FALSE(bytes_of(with(Opt("--max-memory"), "72"), Opt("--max-memory")).ok());
  CHECK_FALSE(bytes_of(with(Opt("--max-memory"), "0 GiB"), Opt("--max-memory")).ok());
}

}  // namespace tpsim::cli
