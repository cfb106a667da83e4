// Files of expert counts, and models that hold the counts.
#include "core/model/expert_counts.h"

#include <catch2/catch.hpp>

#include "core/model/model_json.h"
#include "core/model/model_spec.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

TEST_CASE("counts are one line per block, or one count per line") {
  const std::vector<double> two_blocks = {1, 2, 3, 4, 5, 6, 7, 8};
  for (const char* text : {"1 2 3 4\n5 6 7 8\n", "# tokens\n1,2,3,4 # first\n\n5;6\t7 8",
                           "1\n2\n3\n4\n5\n6\n7\n8\n", "1 2 3 4\r\n5 6 7 8\r\n"}) {
    const auto counts = parse_expert_counts(text, 4, "counts.txt");
    REQUIRE(counts.ok());
    CHECK(*counts == two_blocks);
  }
}

TEST_CASE("invalid counts and wrong numbers of counts are errors with their line") {
  const auto error_of = [](const char* text) {
    const auto counts = parse_expert_counts(text, 4, "counts.txt");
    REQUIRE_FALSE(counts.ok());
    return to_string(counts.error());
  };
  CHECK_THAT(error_of("1 2 3 4\n1 2 x 4\n"),
             Catch::StartsWith("counts.txt:2: 'x' is not a token count"));
  CHECK_THAT(error_of("1 2 3 -4\n"), Catch::StartsWith("counts.txt:1: '-4' is not a token count"));
  CHECK_THAT(error_of("1 2 3 nan\n"),
             Catch::StartsWith("counts.txt:1: 'nan' is not a token count"));
  CHECK_THAT(error_of("1 2 3 4\n1 2 3\n"),
             Catch::StartsWith("counts.txt:2: the line has 3 counts for 4"));
  CHECK_THAT(error_of("1\n2\n3\n"), Catch::StartsWith("counts.txt: the file has 3 counts for 4"));
  CHECK_THAT(error_of("# nothing\n"), Catch::StartsWith("counts.txt: the file has 0 counts for 4"));
}

TEST_CASE("a model's file keeps its counts, and a wrong number of counts is refused") {
  ModelSpec model = test::small_mixture();
  const auto each = static_cast<std::size_t>(model.experts.count);
  model.experts.counts.assign(2 * each, 3.5);
  REQUIRE(validate(model).ok());
  const auto again = parse_model(to_json(model), "model.json");
  REQUIRE(again.ok());
  CHECK(again->experts == model.experts);
  model.experts.counts.pop_back();
  CHECK_FALSE(validate(model).ok());
  model.experts.counts.assign(each, 0);
  CHECK_FALSE(validate(model).ok());
}

}  // namespace
}  // namespace tpsim
