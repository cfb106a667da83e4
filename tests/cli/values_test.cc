// Texts of options as values, and what is said about those that are none.
#include "cli/values.h"

#include <catch2/catch.hpp>

#include "core/plan.h"

namespace tpsim::cli {
namespace {

Arguments with(Opt opt, const std::string& text) {
  Arguments arguments;
  arguments.set(opt, text);
  return arguments;
}

using Integers = std::vector<std::int64_t>;

std::string error_of(const std::string& text) {
  const auto values = integers_of(with(Opt::kTp, text), Opt::kTp);
  return values.ok() ? "" : to_string(values.error());
}

}  // namespace

TEST_CASE("lists and ranges are read in the order written") {
  CHECK(*integers_of(with(Opt::kTp, "4"), Opt::kTp) == Integers{4});
  CHECK(*integers_of(with(Opt::kTp, "8,1-3,2"), Opt::kTp) == Integers{8, 1, 2, 3, 2});
  CHECK(integers_of(Arguments(), Opt::kTp)->empty());
}

TEST_CASE("a dimension of a search holds each value once, ascending") {
  CHECK(*dimension_of(with(Opt::kTp, "8,1-3,2"), Opt::kTp) == Integers{1, 2, 3, 8});
}

TEST_CASE("what is no list of whole numbers is an error that names the option and the text") {
  CHECK(error_of("4x") == "--tp: '4x' is no whole number");
  CHECK(error_of("") == "--tp: '' is no whole number");
  CHECK(error_of("1,,2") == "--tp: '' is no whole number");
  CHECK(error_of("1.5") == "--tp: '1.5' is no whole number");
  CHECK(error_of("0") == "--tp: 0 is out of range: from 1 to 1048576");
  CHECK(error_of("-4") == "--tp: -4 is out of range: from 1 to 1048576");
  CHECK(error_of("99999999999999999999") ==
        "--tp: 99999999999999999999 is out of range: from 1 to 1048576");
  CHECK(error_of("4-1") == "--tp: '4-1' runs backwards (write 1-4)");
  CHECK(error_of("1-1000000") == "--tp: '1-1000000' spans more than 4096 values");
  CHECK(error_of("1-") == "--tp: '' is no whole number");
}

TEST_CASE("one value is wanted where a plan has one") {
  CHECK(*integer_of(with(Opt::kPp, "12"), Opt::kPp, 1) == 12);
  CHECK(*integer_of(Arguments(), Opt::kPp, 7) == 7);
  const auto several = integer_of(with(Opt::kPp, "1,2"), Opt::kPp, 1);
  REQUIRE_FALSE(several.ok());
  CHECK(to_string(several.error()) == "--pp: '1,2' is more than one value (give one)");
}

TEST_CASE("names of an enumeration are read, and the nearest one offered") {
  const std::vector<Recompute> all = {Recompute::kNone, Recompute::kSelective, Recompute::kFull};
  CHECK(*choices_of<Recompute>(with(Opt::kRecompute, "full,none"), Opt::kRecompute, all) ==
        std::vector<Recompute>{Recompute::kNone, Recompute::kFull});
  const auto typo = choices_of<Recompute>(with(Opt::kRecompute, "selectve"), Opt::kRecompute, all);
  REQUIRE_FALSE(typo.ok());
  CHECK(to_string(typo.error()) ==
        "--recompute: unknown value 'selectve' (did you mean selective?)");
}

TEST_CASE("a switch is on, off or, in a search, both") {
  CHECK(*switch_of(with(Opt::kSequenceParallel, "on"), Opt::kSequenceParallel, false));
  CHECK(switches_of(with(Opt::kSequenceParallel, "on,off"), Opt::kSequenceParallel)->size() == 2);
  CHECK_FALSE(switch_of(with(Opt::kSequenceParallel, "yes"), Opt::kSequenceParallel, false).ok());
}

TEST_CASE("a size needs its unit and more than nothing") {
  CHECK(bytes_of(with(Opt::kMaxMemory, "72GiB"), Opt::kMaxMemory)->value() == 72 * kGiB);
  CHECK(bytes_of(Arguments(), Opt::kMaxMemory)->value() == 0);
  CHECK(*probability_of(with(Opt::kMaxOom, "5%"), Opt::kMaxOom, 0.5) == Approx(0.05));
  CHECK(*probability_of(with(Opt::kMaxOom, "0.2"), Opt::kMaxOom, 0.5) == Approx(0.2));
  CHECK(*probability_of(Arguments(), Opt::kMaxOom, 0.5) == 0.5);
  for (const char* text : {"5", "0", "100%", "5 %", "%", "likely", ""}) {
    CHECK_FALSE(probability_of(with(Opt::kMaxOom, text), Opt::kMaxOom, 0.5).ok());
  }
  CHECK_FALSE(bytes_of(with(Opt::kMaxMemory, "72"), Opt::kMaxMemory).ok());
  CHECK_FALSE(bytes_of(with(Opt::kMaxMemory, "0 GiB"), Opt::kMaxMemory).ok());
}

}  // namespace tpsim::cli
