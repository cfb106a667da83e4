// Requests of `tpsim call` and their answers.
#include "cli/commands/call.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "app/reports/report_json.h"
#include "core/json/json_document.h"
#include "core/scenario/plan_json.h"
#include "tests/cli/typed_answers.h"

namespace tpsim::cli {
namespace {

constexpr const char* kOptions =
    R"({"model": "bloom-560m", "tp": "2", "pp": "2", "dp": "4", "micro_batch": "2", "global_batch": "64"})";

JsonValue answered(const std::string& request) {
  const std::string line = answer_line(request);
  CHECK(line.find('\n') == std::string::npos);
  const JsonValue document = parse_json(line, "answer").value();
  CHECK(*document.find("format")->as<std::string>() == kAnswerFormat);
  CHECK((document.find("answer") == nullptr) == (document.find("error") != nullptr));
  return document;
}

std::string requested(const std::string& call, const std::string& more = "") {
  return fmt::format(R"({{"format": "{}", "call": "{}"{}}})", kRequestFormat, call, more);
}

std::string text_at(const JsonValue& document, std::string_view part, std::string_view key) {
  const JsonValue* object = document.find(part);
  REQUIRE(object != nullptr);
  return *object->find(key)->as<std::string>();
}

std::string error_of(const std::string& request) {
  return text_at(answered(request), "error", "text");
}

}  // namespace

TEST_CASE("an answer is the document that --json prints, to the last digit, with the plan's file") {
  Arguments arguments;
  arguments.command = Command::kSimulate;
  arguments.set(Opt("--model"), "bloom-560m");
  arguments.set(opt_of(Setting::kTp), "2");
  arguments.set(opt_of(Setting::kPp), "2");
  arguments.set(opt_of(Setting::kDp), "4");
  arguments.set(opt_of(Setting::kMicroBatch), "2");
  arguments.set(opt_of(Setting::kGlobalBatch), "64");
  const SimulatedPlan one = simulate_answer(arguments, std::nullopt).value();
  const JsonValue document =
      answered(requested("simulate", fmt::format(R"(, "options": {})", kOptions)));
  CHECK(to_text(*document.find("answer")) == to_text(simulate_report(one.named, one.run)));
  const auto& files = *document.find("files")->as<JsonValue::Array>();
  REQUIRE(files.size() == 1);
  const std::string file = *files.front().as<std::string>();
  CHECK(file == to_json(plan_file_of(one.named, one.run.plan)));

  SECTION("a plan goes back as text or as the document that it is") {
    const std::string text = to_line(JsonValue(file));
    const std::string object = to_line(parse_json(file, "plan").value());
    for (const std::string& plan : {text, object}) {
      const JsonValue again = answered(requested("simulate", R"(, "plan": )" + plan));
      CHECK(to_line(*again.find("answer")) == to_line(*document.find("answer")));
    }
  }
}

TEST_CASE("a row of a table of runs is explained") {
  const JsonValue document =
      answered(requested("explain", R"(, "options": {"runs": "bloom_jean_zay", "row": "A-097"})"));
  REQUIRE(document.find("answer") != nullptr);
  CHECK(text_at(document, "answer", "version") == "tpsim-explain-report/1");
}

TEST_CASE("every call is answered, with an error that names a missing key") {
  for (const CallRow& row : call_rows()) {
    CAPTURE(row.name);
    const JsonValue document = answered(requested(std::string(row.name)));
    const auto is_needed = [](CallRow::Input input) {
      return input == CallRow::Input::kNeeds || input == CallRow::Input::kNeedsSome;
    };
    const bool needs = is_needed(row.plan) || is_needed(row.path) || is_needed(row.report);
    if (needs) CHECK_THAT(text_at(document, "error", "text"), Catch::Contains("needs a '"));
    if (!needs && !row.command) CHECK(document.find("answer") != nullptr);
    if (row.plan == CallRow::Input::kNone) {
      CHECK_THAT(error_of(requested(std::string(row.name), R"(, "plan": {})")),
                 Catch::Contains("does not accept 'plan'"));
    }
  }
}

TEST_CASE("an invalid request is answered with what is wrong") {
  CHECK_THAT(error_of(""), Catch::StartsWith("request:1: "));
  CHECK_THAT(error_of("{"), Catch::StartsWith("request:1: "));
  CHECK(error_of("7") == "request: is a whole number, not an object");
  CHECK_THAT(error_of("{}"), Catch::Contains(R"(write "format": "tpsim-request/1")"));
  CHECK_THAT(error_of(requested("simulat")), Catch::Contains("did you mean simulate?"));
  CHECK_THAT(error_of(requested("plan", R"(, "option": {})")),
             Catch::Contains("did you mean options?"));
  CHECK_THAT(
      error_of(requested("plan", R"(, "options": {"gpu": "8"})")),
      Catch::Contains("does not accept the option gpu (write --cluster, or --profile for the"));
  CHECK_THAT(error_of(requested("plan", R"(, "options": {"gpus": 8.5})")),
             Catch::Contains("--gpus: '8.5'"));
  CHECK_THAT(error_of(requested("plan", R"(, "options": {"pareto": "yes"})")),
             Catch::Contains("pareto is a switch"));
  CHECK_THAT(error_of(requested("models", R"(, "options": {"json": ""})")),
             Catch::Contains("does not accept the option json"));
  CHECK_THAT(error_of(requested("check_log", R"(, "path": "-", "plan": {})")),
             Catch::Contains("carries the requests"));
  CHECK_THAT(error_of(requested("import_plan", R"(, "path": "a.sh", "options": {"plan": "-"})")),
             Catch::Contains("carries the requests"));
}

TEST_CASE("numbers and texts of options give the same answer") {
  const auto answer = [](const std::string& options) {
    const JsonValue document = answered(requested("plan", R"(, "options": )" + options));
    return to_line(*document.find("answer")->find("plans"));
  };
  CHECK(
      answer(
          R"({"model": "mixtral-8x7b", "cluster": "dgx-h100", "gpus": 64, "tp": [1, 2], "max_oom": 0.1,
                   "node_gbps": 800, "expert_load": 1.25, "shard_group": 8, "zero": [1], "overlap_p2p": true,
                   "sequence_parallel": [true, false], "recompute": ["none", "blocks:2"],
                   "exclude": ["pp=2", "tp=1"]})") ==
      answer(
          R"({"model": "mixtral-8x7b", "cluster": "dgx-h100", "gpus": "64", "tp": "1,2", "max_oom": "0.1",
                   "node_gbps": "800", "expert_load": "1.25", "shard_group": "8", "zero": "1", "overlap_p2p": "on",
                   "sequence_parallel": "on,off", "recompute": "none,blocks:2",
                   "exclude": "pp=2,tp=1"})"));
  const auto error = [](const std::string& option) {
    return error_of(requested("plan", R"(, "options": {"model": "bloom-560m", )" + option + "}"));
  };
  CHECK_THAT(error(R"("gpus": 8.5)"), Catch::Contains("--gpus: '8.5' is not a whole number"));
  CHECK_THAT(error(R"("gpus": 8, "tp": 0)"), Catch::Contains("--tp: 0 is out of range"));
  CHECK_THAT(error(R"("gpus": 8, "expert_load": 0.5)"), Catch::Contains("0.5"));
  CHECK_THAT(error(R"("gpus": 8, "recompute": 1)"),
             Catch::Contains("--recompute: '1' is not a text"));
  CHECK_THAT(error(R"("gpus": [8, true])"), Catch::Contains("--gpus: 'on' is not a whole number"));
}

TEST_CASE("a value in a list keeps its commas") {
  const auto error = error_of(
      requested("import_plan", R"(, "path": "none.sh", "options": {"set": ["ARGS=a,b", "TP"]})"));
  CHECK_THAT(error, Catch::Contains("--set: 'TP' is not NAME=VALUE"));
}

TEST_CASE("an error has the parts and the exit code of the command") {
  const JsonValue document = answered(requested(
      "plan", R"(, "options": {"model": "bloom-7b1", "gpus": "1", "global_batch": "8"})"));
  CHECK(text_at(document, "error", "kind") == "does_not_fit");
  CHECK(*document.find("error")->find("exit_code")->as<std::int64_t>() == 3);
  const JsonValue typo =
      answered(requested("plan", R"(, "options": {"model": "blom-7b1", "gpus": "8"})"));
  CHECK(text_at(typo, "error", "where") == "--model");
  CHECK_THAT(text_at(typo, "error", "hint"), Catch::Contains("bloom-7b1"));
}

TEST_CASE("options that only direct output are refused in calls") {
  for (const CallRow& row : call_rows()) {
    if (!row.command) continue;
    for (const CallKeyword& keyword : call_keywords(*row.command)) {
      CAPTURE(row.name, keyword.name);
      CHECK(takes(*row.command, keyword.opt));
      for (const char* output : {"json", "save", "color", "quiet", "trace", "plot", "o", "plan"}) {
        CHECK(keyword.name != output);
      }
    }
  }
}

}  // namespace tpsim::cli
