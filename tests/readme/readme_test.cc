// README.md tells the truth: its commands run, and print what it shows.
#include <sys/wait.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
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

// Runs in the source folder, as a reader would, but with the tpsim of this build.
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

}  // namespace

TEST_CASE("every command that the README shows with its output runs and prints that") {
  const std::vector<ShownCommand> commands = shown_commands(text_of(TPSIM_SOURCE_DIR "/README.md"));
  REQUIRE_FALSE(commands.empty());
  for (const ShownCommand& shown : commands) {
    const Finished finished = run(shown.command);
    INFO("README.md:" << shown.line << ": " << shown.command << "\n" << finished.printed);
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

TEST_CASE("a shown line that was not printed is found") {
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
