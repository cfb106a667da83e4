// Every report of --json has the keys and types of its JSON schema (tpsim show schema).
#include <catch2/catch.hpp>
#include <set>

#include "app/documents/report_keys.h"
#include "app/reports/brief.h"
#include "core/base/files.h"
#include "core/json/json_document.h"
#include "core/plan/report.h"
#include "tests/cli/process.h"

namespace tpsim::app {
namespace {

std::string text_at(const JsonValue& schema, std::string_view key) {
  const JsonValue* found = schema.find(key);
  return found == nullptr ? "" : *found->as<std::string>();
}

bool has_type(const JsonValue& value, std::string_view type) {
  const bool is_whole = value.as<std::int64_t>() != nullptr;
  if (type == "null") return value.is_null();
  if (type == "string") return value.as<std::string>() != nullptr;
  if (type == "boolean") return value.as<bool>() != nullptr;
  if (type == "array") return value.as<JsonValue::Array>() != nullptr;
  if (type == "object") return value.as<JsonValue::Object>() != nullptr;
  return is_whole || (type == "number" && value.as<double>() != nullptr);
}

// Collects the paths of values that the schema does not describe.
class Validator {
 public:
  explicit Validator(const JsonValue& schema) : root_(schema) {}

  void visit(const JsonValue& value, const JsonValue& given, const std::string& path) {
    const JsonValue& schema = resolved(given);
    if (const JsonValue* constant = schema.find("const")) {
      if (to_line(*constant) != to_line(value)) faults.insert(path + ": " + to_line(value));
      return;
    }
    if (!is_of_type(value, schema)) faults.insert(path + ": " + to_line(value));
    if (const auto* items = value.as<JsonValue::Array>()) {
      const JsonValue* const inner = schema.find("items");
      for (const JsonValue& one : *items) {
        if (inner != nullptr) visit(one, *inner, path + "[]");
      }
    }
    if (const auto* members = value.as<JsonValue::Object>()) {
      if (const JsonValue* required = schema.find("required")) {
        for (const JsonValue& key : *required->as<JsonValue::Array>()) {
          const std::string name = *key.as<std::string>();
          if (value.find(name) == nullptr) faults.insert(path + "." + name + ": is missing");
        }
      }
      for (const JsonMember& one : *members) {
        const JsonValue* inner = nullptr;
        if (const JsonValue* properties = schema.find("properties")) {
          inner = properties->find(one.key);
        }
        if (inner == nullptr) inner = schema.find("additionalProperties");
        const std::string place = path + "." + one.key;
        if (inner == nullptr) {
          faults.insert(place + ": no such key");
        } else {
          visit(one.value, *inner, place);
        }
      }
    }
  }

  std::set<std::string> faults;

 private:
  const JsonValue& resolved(const JsonValue& schema) const {
    const std::string reference = text_at(schema, "$ref");
    if (reference.empty()) return schema;
    const JsonValue* found =
        root_.find("$defs")->find(reference.substr(std::string_view("#/$defs/").size()));
    REQUIRE(found != nullptr);
    return *found;
  }

  static bool is_of_type(const JsonValue& value, const JsonValue& schema) {
    const JsonValue* const type = schema.find("type");
    if (type == nullptr) return false;
    if (const auto* name = type->as<std::string>()) return has_type(value, *name);
    for (const JsonValue& name : *type->as<JsonValue::Array>()) {
      if (has_type(value, *name.as<std::string>())) return true;
    }
    return false;
  }

  const JsonValue& root_;
};

const ReportFormat& format_of(std::string_view version) {
  for (const ReportFormat& format : report_formats()) {
    if (format.version == version) return format;
  }
  FAIL("no report has the version " << version);
  return report_formats().front();
}

// Runs the command in a folder, with the small catalogue of the golden tests or with tpsim's own.
// Checks its report, and returns the report's kind.
std::string checked(const test::Folder& folder, const std::string& command,
                    const std::string& environment = "TPSIM_DATA=files/data") {
  CAPTURE(command);
  const std::string place = "cd '" + folder.path().string() + "' && export LC_ALL=C ";
  const test::Finished ended = test::run(place + environment + " && '" + TPSIM_BINARY_DIR +
                                         "/tpsim' " + command + " --json");
  CAPTURE(ended.err);
  const auto report = parse_json(ended.out, "the report");
  REQUIRE(report.ok());
  const ReportFormat& format = format_of(text_at(*report, "version"));
  const JsonValue schema = report_schema(format);
  Validator validator(schema);
  validator.visit(*report, schema, std::string(format.kind));
  for (const std::string& fault : validator.faults) FAIL_CHECK(fault);
  const JsonValue brief = brief_report(*report);
  CHECK(text_at(brief, "of") == format.version);
  CHECK(to_line(brief).size() <= kMostBriefBytes);
  return std::string(format.kind);
}

}  // namespace

TEST_CASE("explain --why-not says that the best plan has the settings") {
  const test::Finished ended =
      test::run(TPSIM_BINARY_DIR
                "/tpsim explain --model llama-2-7b --cluster dgx-h100 --gpus 8 --why-not cp=1");
  CHECK_THAT(ended.out, Catch::Contains("the best plan has these settings"));
  CHECK_THAT(ended.out, !Catch::Contains("WHY"));
}

TEST_CASE("a batch that no layout can divide is answered with a similar one") {
  const std::string tpsim = TPSIM_BINARY_DIR
      "/tpsim plan --model llama-2-7b --cluster dgx-h100 "
      "--gpus 1016 --global-batch ";
  CHECK_THAT(test::run(tpsim + "1024").err, Catch::Contains("write --global-batch 1016"));
  CHECK(test::run(tpsim + "1016 --top 1").code == 0);
}

TEST_CASE("a plan or script on standard input gives the answer of the file") {
  const test::Folder folder;
  const std::string tpsim = TPSIM_BINARY_DIR "/tpsim", place = folder.path().string();
  REQUIRE(test::run(tpsim + " simulate --model llama-2-7b --cluster dgx-h100 --dp 8 --save " +
                    place + "/a.json && " + tpsim + " export " + place +
                    "/a.json --to megatron-lm -o " + place)
              .code == 0);
  for (const std::string call : {"simulate FILE --json < a.json", "explain FILE --json < a.json",
                                 "import FILE --json < megatron-lm.sh"}) {
    const std::string file = call.substr(call.find("< ") + 2);
    const auto ended = [&](const std::string& name) {
      std::string words = call;
      return test::run("cd " + place + " && " + tpsim + " " +
                       words.replace(words.find("FILE"), 4, name));
    };
    const test::Finished piped = ended("-");
    CHECK(piped.code == 0);
    CHECK(piped.out == ended(file).out);
  }
}

TEST_CASE("every report has the keys and types of its schema") {
  const test::Folder folder;
  std::filesystem::create_symlink(std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/cli/files",
                                  folder.path() / "files");
  std::filesystem::create_symlink(std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/captures",
                                  folder.path() / "captures");
  const std::string tiny = "--model tiny --cluster four-nodes ";
  std::set<std::string> kinds;
  for (const std::string& command : std::initializer_list<std::string>{
           "simulate " + tiny + "--tp 2 --pp 2 --dp 2 --micro-batch 2 --save plan.json",
           "simulate " + tiny + "--dp 4 --save other.json",
           "simulate " + tiny + "--dp 2 --zero 9",
           "simulate --program captures/llama_fsdp.json --cluster four-nodes --stack plain",
           "simulate --program captures/llama_fsdp.json --cluster four-nodes --stack plain "
           "--ranks 16 --accumulation 2 --trace timeline.json",
           "simulate --ranks 16 " + tiny,
           "compare captures/llama_fsdp.json captures/gpt2_ddp.json --cluster "
           "four-nodes,four-nodes "
           "--stack plain",
           "plan " + tiny + "--gpus 8 --top 3",
           "plan " + tiny + "--gpus 8 --loss-head eager,chunked",
           "plan " + tiny + "--gpus 8 --within 0.01ms",
           "plan " + tiny + "--gpus 8 --max-memory 10MiB",
           "plan " + tiny + "--gpus 2,4,7",
           "plan --model tiny --gpus 8",
           "explain plan.json",
           "explain plan.json --program",
           "explain plan.json --program --diff other.json",
           "explain plan.json --program --diff trace,host",
           "explain plan.json --memory",
           "explain plan.json --what-if",
           "explain plan.json --why-not tp=8",
           "explain plan.json --why-not pp=3",
           "compare plan.json other.json",
           "simulate " + tiny +
               "--tp 2 --pp 2 --dp 2 --attention unfused --recompute full --save old.json",
           "export old.json --to megatron-deepspeed",
           "export plan.json --to megatron-lm --allow-loss",
           "campaign plan.json --tokens 10B --assumptions files/assumptions.json",
           "campaign " + tiny +
               "--gpus 4,8 --tokens 10B --deadline 100d --assumptions files/assumptions.json",
           "validate --runs files/measured.csv --cluster four-nodes",
           "calibrate files/measured.csv --cluster four-nodes --save-stack s.json",
           "batch files/requests.jsonl -o answers.jsonl",
           "list models",
           "list clusters",
           "list profiles",
           "list stacks",
           "list assumptions",
           "plan nothing"}) {
    kinds.insert(checked(folder, command));
  }
  for (const ReportFormat& format : report_formats()) {
    // The next test has these.
    const std::set<std::string_view> others = {"run-report", "rank-report", "measured-report",
                                               "log-report"};
    CAPTURE(format.kind);
    CHECK(kinds.contains(std::string(format.kind)) != others.contains(format.kind));
  }
}

TEST_CASE("reports of many kinds of plans have the keys and types of their schemas") {
  const std::string_view plans[] = {
      "--model deepseek-v3 --cluster dgx-h100 --tp 8 --pp 16 --dp 2 --ep 16 --recompute full",
      "--model mixtral-8x7b --cluster dgx-h100 --dp 16 --zero 3 --stack deepspeed-zero3 "
      "--expert-kernel looped",
      "--model llama-3-8b --cluster dgx-h100 --cp 2 --dp 4 --zero 3 --stack torchtitan "
      "--precision fp8-current",
      "--model nemotron-3-nano --cluster dgx-b200 --tp 2 --dp 8 --ep 8",
      "--model llama-2-7b --cluster l40s-8 --tp 2 --pp 2 --dp 2 --offload optimizer",
      "--model bloom-7b1 --cluster dgx-a100 --tp 2 --pp 2 --dp 2 --schedule zb-h1 --stack "
      "reference"};
  for (const std::string_view plan : plans) {
    const test::Folder folder;
    const std::string own = "TPSIM_DATA=", options(plan);
    checked(folder, "simulate " + options + " --allow-oom --save plan.json", own);
    for (const char* command :
         {"explain plan.json", "explain plan.json --program", "explain plan.json --memory",
          "explain plan.json --what-if", "compare plan.json plan.json",
          "campaign plan.json --tokens 10B --allow-oom"}) {
      checked(folder, command, own);
    }
  }
}

TEST_CASE("a plan report without plans says why, and what to change") {
  const test::Finished ended = test::run(
      TPSIM_BINARY_DIR "/tpsim plan --model llama-3-70b --cluster l40s-8 --gpus 8 --json");
  CHECK(ended.code == 3);
  const auto report = parse_json(ended.out, "the report");
  REQUIRE(report.ok());
  CHECK_THAT(text_at(*report, "none"), Catch::Contains("no plan of llama-3-70b fits"));
  CHECK_THAT(ended.err, Catch::Contains(text_at(*report, "hint")));
  CHECK_FALSE(text_at(*report, "hint").empty());
}

TEST_CASE("every term of a step is documented") {
  const JsonValue schema = report_schema(format_of("tpsim-simulate-report/1"));
  const JsonValue* const documented = schema.find("$defs")->find("terms")->find("properties");
  std::set<std::string> known, printed;
  for (const JsonMember& term : *documented->as<JsonValue::Object>()) known.insert(term.key);
  for (const StepTerm term : kStepTerms) printed.emplace(name_of(term));
  CHECK(known == printed);
}

TEST_CASE("reports of ranks and logs have the keys and types of their schemas") {
  const test::Folder folder;
  std::filesystem::create_symlink(std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/cli/files",
                                  folder.path() / "files");
  checked(folder,
          "simulate --model tiny --cluster four-nodes --tp 2 --pp 2 --dp 2 --micro-batch 2 "
          "--global-batch 64 --save plan.json");
  CHECK(checked(folder, "check-log files/logs/slower-links.log --plan plan.json") == "log-report");
  const std::string own = "TPSIM_DATA=", small = "--model files/data/models/tiny.json --seq 16 ";
  const std::string steps = "run " + small + "--steps 3 --micro-batch 1 ";
  CHECK(checked(folder, steps + "--global-batch 1", own) == "run-report");
  CHECK(checked(folder, steps + "--tp 2 --pp 2 --global-batch 4 --rank 1", own) == "rank-report");
  const std::string profile =
      "cd '" + folder.path().string() + "' && '" + TPSIM_BINARY_DIR + "/tpsim' profile --quick ";
  REQUIRE(test::run(profile + small + "--gpus 1 --global-batch 2 -o profile.json").code == 0);
  checked(folder,
          "plan " + small + "--gpus 1 --global-batch 2 --profile profile.json --save p.json", own);
  CHECK(checked(folder, "validate p.json --steps 4", own) == "measured-report");
}

TEST_CASE("schemas of reports repeat the rows of their page") {
  const JsonValue schema = report_schema(format_of("tpsim-plan-report/1"));
  CHECK(text_at(schema, "title") == "tpsim plan --json");
  const JsonValue& keys = *schema.find("properties");
  CHECK(text_at(*keys.find("version"), "const") == "tpsim-plan-report/1");
  CHECK(text_at(*keys.find("model"), "type") == "string");  // of its base
  CHECK(text_at(*keys.find("nearest_miss"), "$ref") == "#/$defs/run");
  CHECK(text_at(*keys.find("plans")->find("items"), "$ref") == "#/$defs/run");
  CHECK(text_at(*keys.find("hint"), "type") == "string");
  const JsonValue& any = *schema.find("$defs")->find("counts")->find("additionalProperties");
  CHECK(text_at(any, "type") == "integer");
  const std::string required = to_line(*schema.find("required"));
  CHECK_THAT(required, Catch::Contains("\"plans\""));
  CHECK_THAT(required, Catch::Contains("\"model\""));
  CHECK_THAT(required, !Catch::Contains("nearest_miss"));  // optional
  CHECK(text_at(schema, "description") == "The best plans of a search, best first.");
}

}  // namespace tpsim::app
