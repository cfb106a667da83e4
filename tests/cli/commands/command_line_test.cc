// argv to arguments, and the nearest valid word in the error for an unknown one.
#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>
#include <vector>

#include "cli/commands/program.h"
#include "core/base/text.h"

namespace tpsim::cli {
namespace {

Result<std::variant<Arguments, Answer>> parsed(std::vector<const char*> words) {
  words.insert(words.begin(), "tpsim");
  return parse_command_line(static_cast<int>(words.size()), words.data());
}

Arguments arguments_of(std::vector<const char*> words) {
  const auto result = parsed(std::move(words));
  REQUIRE(result.ok());
  return std::get<Arguments>(*result);
}

std::string error_of(std::vector<const char*> words) {
  const auto result = parsed(std::move(words));
  return result.ok() ? "" : to_string(result.error());
}

std::string printed(std::vector<const char*> words) {
  const auto result = parsed(std::move(words));
  REQUIRE(result.ok());
  return std::get<Answer>(*result).text;
}

}  // namespace

TEST_CASE("options and the plan file arrive as they were typed") {
  const Arguments arguments = arguments_of({"simulate", "a plan.json", "--tp=4", "--allow-oom"});
  CHECK(arguments.command == Command::kSimulate);
  CHECK(arguments.positional == "a plan.json");
  CHECK(arguments[opt_of(Setting::kTp)] == "4");
  CHECK(arguments.has(Opt("--allow-oom")));
  CHECK_FALSE(arguments.has(opt_of(Setting::kPp)));
  CHECK(arguments.command_line == "tpsim simulate 'a plan.json' --tp=4 --allow-oom");
}

TEST_CASE("unknown words are refused with the nearest known word") {
  CHECK(error_of({"simulat"}) == "unknown command 'simulat' (did you mean simulate?)");
  CHECK(error_of({"plan", "--micro-bach", "2"}) ==
        "plan: unknown option '--micro-bach' (did you mean --micro-batch?)");
  CHECK(error_of({"plan", "--micro=2"}) ==
        "plan: unknown option '--micro' (did you mean --micro-batch?)");
  CHECK(error_of({"plan", "--trace", "x"}) ==
        "plan: does not accept --trace (it is an option of simulate)");
  CHECK(error_of({"export", "a", "b"}) ==
        "export: unexpected argument 'b' (see tpsim export --help)");
}

TEST_CASE("options of fine-tuning programs are answered with options that exist") {
  for (const char* word : {"--gradient-checkpointing", "--fsdp", "--epochs", "--num-train-epochs",
                           "--8bit-adam", "--use-liger-kernel", "--deepspeed", "--flash-attn",
                           "--lora-r", "--qlora", "--load-in-4bit", "--load-in-8bit",
                           "--use-rslora", "--learning-rate", "--optim", "--packing"}) {
    const std::string error = error_of({"plan", word, "4"});
    INFO(error);
    CHECK(error.find("see tpsim plan --help") == std::string::npos);
    CHECK(error.find("did you mean") == std::string::npos);
    std::istringstream words(error.substr(error.find('(') + 1));
    for (std::string one; words >> one;) {
      while (!one.empty() && std::string_view("(),:;.").find(one.back()) != std::string::npos) {
        one.pop_back();
      }
      while (one.starts_with("(")) one.erase(0, 1);
      const auto rows = option_rows();
      const auto is_one = [&](const OptionRow& row) { return row.name == one; };
      if (one.starts_with("--")) CHECK(std::any_of(rows.begin(), rows.end(), is_one));
    }
  }
  // No option of tpsim makes weights smaller than 16 bits.
  CHECK(error_of({"plan", "--qlora"}).find("use --precision") == std::string::npos);
  for (const char* word : {"--max-seq-length", "--cutoff-len", "--per-device-train-batch-size"}) {
    CHECK(error_of({"plan", word}) != error_of({"plan", "--unknown-word"}));
  }
}

TEST_CASE("a value that is missing, given twice or before the command is an error") {
  CHECK(error_of({"plan", "--gpus"}) == "--gpus: needs a value");
  CHECK(error_of({"plan", "--gpus", "1", "--gpus", "2"}) ==
        "--gpus: is given 2 times (give it once)");
  CHECK(error_of({"--gpus", "1", "plan"}).starts_with("--gpus must follow the command"));
  CHECK(error_of({"plan", "--model", "a", "--model", "b"}) ==
        "--model: is given 2 times (give it once)");
}

TEST_CASE("options of import may be repeated, and the last value counts") {
  const Arguments arguments = arguments_of(
      {"import", "run.sh", "--set", "A=1,B=2", "--model", "a", "--set", "A=3", "--model", "b"});
  CHECK(arguments[Opt("--set")] == "A=1,B=2,A=3");
  CHECK(arguments[Opt("--model")] == "b");
  CHECK(error_of({"import", "run.sh", "--gpus", "8", "--gpus", "16"}) ==
        "--gpus: is given 2 times (give it once)");
}

TEST_CASE("help of a command names every option that it takes, and only those") {
  for (const CommandRow& command : command_rows()) {
    const std::string help = printed({command.name, "--help"});
    CHECK(help.ends_with('\n'));
    CHECK(help.find("Examples:") != std::string::npos);
    for (const OptionRow& row : option_rows()) {
      INFO(command.name << " " << row.name);
      const bool shown = help.find("  " + std::string(row.name) + " ") != std::string::npos;
      CHECK(shown == takes(command.command, row.opt));
    }
  }
}

TEST_CASE("help fits 100 columns") {
  for (const CommandRow& command : command_rows()) {
    std::string help = printed({command.name, "--help"});
    for (std::size_t end; (end = help.find('\n')) != std::string::npos; help.erase(0, end + 1)) {
      INFO(help.substr(0, end));
      CHECK(end <= 100);
    }
  }
}

TEST_CASE("a word is quoted for a shell when it has to be") {
  CHECK(shell_quoted("plan.json") == "plan.json");
  CHECK(shell_quoted("") == "''");
  CHECK(shell_quoted("a b") == "'a b'");
  CHECK(shell_quoted("it's") == "'it'\\''s'");
}

}  // namespace tpsim::cli
