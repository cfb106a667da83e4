// Runs the commands shown in README.md and three pages of docs/, and compares their output.
#include <sys/wait.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/readme/readme_commands.h"

namespace tpsim {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Finished {
  int exit_code = -1;
  std::string printed;  // both streams
};

// Runs in the source folder with the tpsim of this build.
Finished run(std::string command) {
  const std::string shown_binary = "build/release/";
  for (std::size_t at = 0; (at = command.find(shown_binary, at)) != std::string::npos;) {
    command.replace(at, shown_binary.size(), TPSIM_BINARY_DIR "/");
    at += sizeof(TPSIM_BINARY_DIR);
  }
  const std::string line = "cd '" TPSIM_SOURCE_DIR "' && { " + command + "\n} 2>&1 </dev/null";
  FILE* pipe = popen(line.c_str(), "r");
  REQUIRE(pipe != nullptr);
  Finished finished;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) {
    finished.printed.append(buffer.data(), got);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) finished.exit_code = WEXITSTATUS(status);
  return finished;
}

// Returns the first word of a line, including leading spaces.
std::string beginning(const std::string& line) {
  const std::size_t word = line.find_first_not_of(' ');
  return word == std::string::npos ? line : line.substr(0, line.find(' ', word));
}

// Replaces the lines below `shown` on the page by the next printed lines with the same beginning.
void write_anew(std::vector<std::string>& page, const ShownCommand& shown,
                const std::string& printed) {
  std::istringstream lines(printed);
  for (std::size_t i = 0; i < shown.output.size(); ++i) {
    if (shown.output[i].find("...") != std::string::npos) continue;
    const std::string wanted = beginning(shown.output[i]);
    for (std::string line; std::getline(lines, line);) {
      if (beginning(line) != wanted) continue;
      page[static_cast<std::size_t>(shown.line) + i] =
          line.substr(0, line.find_last_not_of(' ') + 1);
      break;
    }
  }
}

// Replaces all outputs on the page by current ones; review the diff. For TPSIM_REGENERATE_GOLDEN.
void regenerate(const std::string& path) {
  const std::string text = text_of(path);
  std::vector<std::string> page;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) page.push_back(line);
  for (const ShownCommand& shown : shown_commands(text)) {
    write_anew(page, shown, run(shown.command).printed);
  }
  std::ofstream out(path);
  for (const std::string& line : page) out << line << "\n";
}

}  // namespace

TEST_CASE("every command shown in README and three pages of docs prints the shown output") {
  const std::string page = GENERATE(as<std::string>{}, "README.md", "docs/tour.md",
                                    "docs/allocation.md", "docs/reference-model.md");
  const std::vector<ShownCommand> commands = shown_commands(text_of(TPSIM_SOURCE_DIR "/" + page));
  REQUIRE_FALSE(commands.empty());
  if (std::getenv("TPSIM_REGENERATE_GOLDEN") != nullptr)
    return regenerate(TPSIM_SOURCE_DIR "/" + page);
  for (const ShownCommand& shown : commands) {
    const Finished finished = run(shown.command);
    INFO(page << ":" << shown.line << ": " << shown.command << "\n" << finished.printed);
    CHECK(finished.exit_code == 0);
    CHECK(first_line_missing(shown.output, finished.printed) == "");
  }
}

TEST_CASE("commands are read from console blocks only, with their lines and outputs") {
  const std::vector<ShownCommand> commands = shown_commands(
      "text\n```sh\n$ make install\n```\n```console\n$ tpsim list\na\nb\n$ tpsim plan\n```\n$ "
      "no\n");
  REQUIRE(commands.size() == 2);
  CHECK(commands[0].command == "tpsim list");
  CHECK(commands[0].line == 6);
  CHECK(commands[0].output == std::vector<std::string>{"a", "b"});
  CHECK(commands[1].command == "tpsim plan");
  CHECK(commands[1].output.empty());
}

TEST_CASE("a shown line that is not printed is detected") {
  const std::string printed = "step 105 s\nmemory 59 GiB\nsearch 0.031 s\n";
  CHECK(first_line_missing({"step 105 s", "memory 59 GiB", "search ... s"}, printed) == "");
  CHECK(first_line_missing({}, printed) == "");
  CHECK(first_line_missing({"...", "search 0... s"}, printed) == "");
  CHECK(first_line_missing({"step 105 s", "..."}, printed) == "");
  CHECK(first_line_missing({"step 104 s", "..."}, printed) == "step 104 s");
  CHECK(first_line_missing({"step 105 s", "search ... s"}, printed) == "search ... s");
  CHECK(first_line_missing({"step 105 s"}, printed) == "(the end of the output)");
  CHECK(first_line_missing({"...", "a"}, "a\nb\na\n") == "");
  CHECK(first_line_missing({"...", "a", "...", "b"}, "a\nb\na\n") == "(the end of the output)");
  CHECK(first_line_missing({"...", "step 105 s", "step 105 s"}, printed) == "step 105 s");
}

}  // namespace tpsim
