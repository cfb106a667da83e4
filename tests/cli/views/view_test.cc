// Text output: tables, numbers, blocks of a report.
#include <algorithm>
#include <catch2/catch.hpp>

#include "app/scenario/fit.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"
#include "tests/cli/small_run.h"

namespace tpsim::cli {

TEST_CASE("a table aligns its columns and ends no line in a space") {
  Table table({{"name", Align::kLeft}, {"n"}, {"", Align::kLeft}});
  table.add_row({"a", "1", ""});
  table.add_row({"longer", "100", "x"});
  CHECK(table.text({}) == "  name      n\n  a         1\n  longer  100  x\n");
}

TEST_CASE("colours do not move columns") {
  Table table({{""}, {""}});
  table.add_row({Cell("1", Ink::kBad), "2"});
  table.add_row({"100", "3"});
  CHECK(table.text({}) == "    1  2\n  100  3\n");
  Terminal colored;
  colored.color = true;
  CHECK(table.text(colored) == "    \033[31m1\033[0m  2\n  100  3\n");
}

TEST_CASE("a table counts characters, not bytes") {
  Table table({{"", Align::kLeft}, {""}});
  table.add_row({"ä", "1"});
  table.add_row({"ab", "2"});
  CHECK(table.text({}) == "  ä   1\n  ab  2\n");
}

TEST_CASE("a bar is as long as its share") {
  CHECK(Terminal{}.bar(0.5, 10) == "#####");
  CHECK(Terminal{}.bar(2.0, 4) == "####");
  CHECK(Terminal{}.bar(-1.0, 4).empty());
  CHECK(Terminal{}.gauge(0.25, 4) == "[#...]");
  Terminal blocks;
  blocks.block_bars = true;
  CHECK(blocks.bar(0.5, 3) == "█▌");
}

TEST_CASE("text from outside loses its control characters") {
  CHECK(printable("a\033[31mb\nc\x7f") == "a?[31mb?c?");
  CHECK(printable("\xC2\x9B"
                  "1m") == "?1m");
  CHECK(printable("größe") == "größe");
}

TEST_CASE("numbers have few digits and a unit") {
  CHECK(time_text(Seconds(104.83)) == "104.8 s");
  CHECK(time_text(Seconds(0.0123456)) == "12.35 ms");
  CHECK(time_text(Seconds(4e-6)) == "4.000 us");
  CHECK(time_text(Seconds(0)) == "0 s");
  CHECK(gib_text(Bytes(1.25 * kGiB), gib_decimals(Bytes(1.25 * kGiB))) == "1.25");
  CHECK(count_text(1234567) == "1,234,567");
  CHECK(count_text(-123) == "-123");
  CHECK(count_text(123) == "123");
  CHECK(chance_text(1e-9) == "< 0.1 %");
  CHECK(chance_text(0.25) == "25.0 %");
  CHECK(chance_text(1.0) == "> 99.9 %");
  CHECK(parameters_text(176247271424) == "176.2 B");
  const std::vector<std::int64_t> layers = {5, 6, 6, 6, 5};
  CHECK(layers_text(layers) == "5, 3 x 6, 5");
}

TEST_CASE("paragraphs break at spaces within their width") {
  CHECK(wrapped("aa bb cc", 5, 2) == "aa bb\n  cc");
  CHECK(wrapped("longword x", 3, 0) == "longword\nx");
}

TEST_CASE("the terms shown add up to the step") {
  const PlannedRun run = test::small_run();
  TextReport report({});
  write_breakdown(report, run.predicted, 2);
  const std::string& text = report.text();
  CHECK(text.find("matmul") != std::string::npos);
  CHECK(text.find("2 others  4.00 s  40.0 %") != std::string::npos);
}

TEST_CASE("only the first, the fullest and the last of many stages are shown") {
  Prediction predicted = test::small_run().predicted;
  predicted.memory.clear();
  for (int stage = 0; stage < 20; ++stage) {
    predicted.memory.push_back(test::stage_memory(stage, stage == 12 ? 5 : 1));
  }
  TextReport report({});
  write_memory(report, predicted, 6);
  const std::string& text = report.text();
  CHECK(text.find("\n     12 ") != std::string::npos);
  CHECK(text.find("\n     19 ") != std::string::npos);
  CHECK(text.find("\n      3 ") != std::string::npos);
  CHECK(text.find("\n      4 ") == std::string::npos);
  CHECK(text.find("14 stages are not shown") != std::string::npos);
}

TEST_CASE("plans within the interval of the best are marked as ties") {
  PlannedRun best = test::small_run();
  PlannedRun tie = best;
  PlannedRun slower = best;
  tie.predicted.step = Seconds(10.9);
  slower.predicted.step = Seconds(11.1);
  const std::vector<PlannedRun> runs = {best, tie, slower};
  const auto marks = [&](bool marks_ties) {
    TextReport report({});
    write_ranking(report, runs, marks_ties);
    return std::count(report.text().begin(), report.text().end(), '=');
  };
  CHECK(marks(true) == 1);
  CHECK(marks(false) == 0);
}

TEST_CASE("a shortage names need, limit, stage, margin and the largest part") {
  const Prediction predicted = test::small_run().predicted;
  CHECK(shortage_text(predicted, Bytes(16 * kGiB)) ==
        "needs 31.0 GiB on stage 0, 15.0 GiB more than the limit of 16.0 GiB (the GPU has "
        "40.0 GiB); 97 % of the peak is optimizer");
}

}  // namespace tpsim::cli
