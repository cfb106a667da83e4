// Text output: tables, numbers, blocks of a report.
#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>
#include <sstream>

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

TEST_CASE("a table leaves out optional columns on a narrow terminal, and names them") {
  Table table(columns_of("a|?<note|?hw|GiB"));
  table.add_row({"1", "long text", "2", "3"});
  Terminal terminal;
  CHECK(table.text(terminal) == "  a  note       hw  GiB\n  1  long text   2    3\n");
  terminal.columns = 20;
  CHECK(table.text(terminal) ==
        "  a  note       GiB\n  1  long text    3\n"
        "  not shown at this width: hw\n");
  terminal.columns = 10;
  CHECK(table.text(terminal) == "  a  GiB\n  1    3\n  not shown at this width: note, hw\n");
}

TEST_CASE("rows of terms with their bars are at most as wide as the terminal") {
  Terminal terminal;
  for (const std::size_t columns : {50, 60, 80, 100}) {
    terminal.columns = columns;
    TextReport report(terminal);
    write_breakdown(report, test::small_run().predicted, 12);
    std::istringstream text(report.text());
    for (std::string line; std::getline(text, line);) {
      INFO(line);
      CHECK(display_width(line) <= columns);
    }
  }
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
  CHECK(time_text(Seconds(11118)) == "11,118 s");
  CHECK(time_text(Seconds(-1234567)) == "-1,234,567 s");
  CHECK(gib_text(Bytes(2119.5 * kGiB)) == "2,119.5");
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

TEST_CASE("only options that narrow the interval are named as doing so") {
  app::NamedScenario named;
  const auto choice = [](OpenInput input, double upper) {
    OpenChoice one{.input = input, .taken = "x"};
    one.half_width_if_stated = upper;
    return one;
  };
  named.assumed.open = {choice(OpenInput::kSoftware, 0.09), choice(OpenInput::kNetwork, 0.199)};
  named.assumed.half_width_all_open = 0.2;
  const auto shown = [&] {
    TextReport report({});
    write_assumed(report, named);
    return std::regex_replace(report.text(), std::regex("\n +"), " ");
  };
  CHECK_THAT(shown(), Catch::Contains("falls from +20 % to +9 % with --stack\n"));
  named.assumed.open.erase(named.assumed.open.begin());
  CHECK_THAT(shown(), Catch::Contains("network x\n") && !Catch::Contains("falls"));
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
