// Line breaks for a terminal's width, and text that is never broken.
#include "cli/options/terminal.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <sstream>
#include <string>

#include "cli/options/table.h"
#include "cli/options/wrapping.h"

namespace tpsim::cli {
namespace {

std::size_t widest(const std::string& text) {
  std::size_t most = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) most = std::max(most, display_width(line));
  return most;
}

}  // namespace

TEST_CASE("a long line continues below its text, indented by the label") {
  CHECK(fitted("  step time    54.80 s, 90 % interval 50.34 to 76.36 s; 76,538 tokens/s\n", 50) ==
        "  step time    54.80 s, 90 % interval 50.34 to\n"
        "               76.36 s; 76,538 tokens/s\n");
  CHECK(fitted("tpsim: error: a long message that says what is wrong (and how to mend it)\n", 40) ==
        "tpsim: error: a long message that says\n"
        "  what is wrong (and how to mend it)\n");
  const std::string short_enough = "RANKING\n\n  one line\n";
  CHECK(fitted(short_enough, 40) == short_enough);
}

TEST_CASE("text without a width is unchanged, and tables and commands are never broken") {
  const std::string row =
      "    1   1  64     1   2  blocks:1  flash   13.87  12.71-16.35  220.0  74.9\n";
  const std::string command =
      "  tpsim explain plan.json   # every term with its formula and source\n";
  const std::string prose =
      "  ruled out: one reason and another reason and one more reason and so on\n";
  CHECK(fitted(row + command + prose, 0) == row + command + prose);
  CHECK(fitted(row, 40) == row);
  CHECK(fitted(command, 40) == command);
  CHECK(widest(fitted(prose, 40)) <= 40);
}

TEST_CASE("a command broken over lines is the same command for a shell") {
  const std::string command =
      "  tpsim plan --model 'my model.json' --cluster dgx-h100 --gpus 64 --save plan.json   # a "
      "plan";
  const std::string broken = continued(command, 40);
  CHECK(broken ==
        "  tpsim plan --model 'my model.json' \\\n"
        "      --cluster dgx-h100 --gpus 64 \\\n"
        "      --save plan.json   # a plan");
  CHECK(widest(broken) <= 40);
  CHECK(continued(command, 200) == command);
  // A word longer than the terminal gets its own line.
  CHECK(continued("  run --a-very-long-option=that-has-no-end b", 20) ==
        "  run \\\n      --a-very-long-option=that-has-no-end \\\n      b");
}

TEST_CASE("colours do not count as columns") {
  CHECK(display_width("\033[1mbold\033[0m") == 4);
  CHECK(display_width("größe") == 5);
  CHECK(wrapped("\033[2mone two\033[0m three", 8, 2) == "\033[2mone two\033[0m\n  three");
}

TEST_CASE("COLUMNS sets the width of a terminal, and files have no width") {
  REQUIRE(::setenv("COLUMNS", "72", 1) == 0);
  CHECK(columns_of(1) == 72);
  CHECK(Terminal::detect().columns == 72);
  REQUIRE(::setenv("COLUMNS", "wide", 1) == 0);
  CHECK(columns_of(-1) == 0);
  REQUIRE(::unsetenv("COLUMNS") == 0);
  CHECK(columns_of(-1) == 0);
  Terminal terminal;
  CHECK(terminal.room(15, 85) == 85);
  terminal.columns = 220;
  CHECK(terminal.room(15, 85) == 205);
  terminal.columns = 30;
  CHECK(terminal.room(15, 85) == 20);
}

}  // namespace tpsim::cli
