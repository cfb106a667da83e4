#include "cli/commands/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "app/reports/brief.h"
#include "app/reports/error_json.h"
#include "cli/commands/request_lines.h"
#include "core/base/text.h"
#include "core/json/json_document.h"
#include "core/scenario/plan_json.h"

namespace tpsim::cli {
namespace {

constexpr const char* kWhere = "request";

// A request: values of options by keyword.
struct CallRequest {
  std::string call;
  JsonValue::Object options;        // {"micro_batch": [1, 2]}; or as on the command line, "1,2"
  std::optional<JsonValue> plan;    // a plan file
  std::vector<std::string> paths;   // of the files to read
  std::optional<JsonValue> report;  // a report of --json
};

struct CallAnswer {
  JsonValue document;                // output of the command with --json
  std::vector<std::string> files{};  // plan files of the plans in the document, in the same order
};

Result<std::string> member_text(const JsonMember& member) {
  if (const auto* text = member.value.as<std::string>()) return *text;
  return bad_input(fmt::format("'{}' is {}, not text", member.key, kind_of(member.value)), kWhere);
}

Result<std::vector<std::string>> member_texts(const JsonMember& member) {
  const auto* list = member.value.as<JsonValue::Array>();
  std::vector<std::string> texts;
  for (const JsonValue& one : list != nullptr ? *list : JsonValue::Array{member.value}) {
    TPSIM_TRY(texts.emplace_back(), member_text({member.key, one}));
  }
  return texts;
}

Result<OptionValue> value_of(const JsonMember& member) {
  const JsonValue& value = member.value;
  if (const auto* text = value.as<std::string>()) return OptionValue(*text);
  if (const auto* is_on = value.as<bool>()) return OptionValue(*is_on);
  if (const auto* whole = value.as<std::int64_t>()) {
    return OptionValue(static_cast<double>(*whole));
  }
  if (const auto* number = value.as<double>()) return OptionValue(*number);
  return bad_input(
      fmt::format("'{}' is {}, not a text, number, switch or list", member.key, kind_of(value)),
      kWhere);
}

// Sets an option that takes a value. A single text is read as on the command line.
Status set_option(Opt opt, const JsonMember& member, Arguments& arguments) {
  if (const auto* text = member.value.as<std::string>()) {
    arguments.set(opt, *text);
    return Ok{};
  }
  std::vector<OptionValue> values;
  if (const auto* list = member.value.as<JsonValue::Array>()) {
    for (const JsonValue& one : *list) {
      TPSIM_TRY(values.emplace_back(), value_of({member.key, one}));
    }
  } else {
    TPSIM_TRY(values.emplace_back(), value_of(member));
  }
  arguments.set(opt, std::move(values));
  return Ok{};
}

Status set_switch(const CallRow& row, Opt opt, const JsonMember& member, Arguments& arguments) {
  const auto* is_on = member.value.as<bool>();
  if (is_on == nullptr) {
    return bad_input(fmt::format("{} is a switch: its value must be true or false", member.key),
                     std::string(row.name));
  }
  if (*is_on) arguments.set(opt, "");
  return Ok{};
}

Result<CallRequest> request_of(const JsonValue& document) {
  static const std::vector<std::string_view> kKeys = {"format", "call",   "options", "plan",
                                                      "path",   "report", "id"};
  const auto* members = document.as<JsonValue::Object>();
  if (members == nullptr) {
    return bad_input(fmt::format("is {}, not an object", kind_of(document)), kWhere);
  }
  const JsonValue* format = document.find("format");
  const auto* written = format == nullptr ? nullptr : format->as<std::string>();
  if (written == nullptr || *written != kRequestFormat) {
    return bad_input("the format is unknown", kWhere,
                     fmt::format("write \"format\": \"{}\"", kRequestFormat));
  }
  CallRequest request;
  for (const JsonMember& member : *members) {
    TPSIM_TRY(const std::size_t key, choose("key", member.key, kKeys));
    if (member.value.is_null()) continue;
    const std::string_view name = kKeys[key];
    if (name == "options") {
      const auto* options = member.value.as<JsonValue::Object>();
      if (options == nullptr) {
        return bad_input(fmt::format("'options' is {}, not an object", kind_of(member.value)),
                         kWhere);
      }
      request.options = *options;
    }
    if (name == "report") request.report = member.value;
    if (name == "call") {
      TPSIM_TRY(request.call, member_text(member));
    }
    if (name == "path") {
      TPSIM_TRY(request.paths, member_texts(member));
    }
    if (name == "plan") {
      const auto* text = member.value.as<std::string>();
      TPSIM_TRY(request.plan,
                text != nullptr ? parse_json(*text, "plan") : Result<JsonValue>(member.value));
    }
  }
  return request;
}

// Checks an input of a request, such as the plan: it must be present if the call needs it, and
// absent if the call does not accept it.
Status check_input(const CallRow& row, std::string_view key, CallRow::Input wanted, bool is_given) {
  if (is_given && wanted == CallRow::Input::kNone) {
    return bad_input(fmt::format("does not accept '{}'", key), std::string(row.name));
  }
  const bool is_needed = wanted == CallRow::Input::kNeeds || wanted == CallRow::Input::kNeedsSome;
  if (!is_given && is_needed) {
    return bad_input(fmt::format("needs a '{}'", key), std::string(row.name));
  }
  return Ok{};
}

Result<Arguments> arguments_of(const CallRow& row, const CallRequest& request) {
  Arguments arguments;
  if (row.command) arguments.command = *row.command;
  if (!request.paths.empty()) {
    arguments.positional = request.paths.front();
    arguments.more.assign(request.paths.begin() + 1, request.paths.end());
  }
  const auto is_stream = [](const JsonMember& member) {
    const auto* text = member.value.as<std::string>();
    return text != nullptr && *text == "-";
  };
  if (request.report) arguments.positional = to_line(*request.report);
  const auto names_stream = [](const std::string& path) { return path == "-"; };
  if (std::any_of(request.paths.begin(), request.paths.end(), names_stream) ||
      std::any_of(request.options.begin(), request.options.end(), is_stream)) {
    return bad_input("'-' is standard input, which carries the requests", std::string(row.name),
                     "write the input to a file");
  }
  if (request.plan) {
    TPSIM_TRY(arguments.plan, plan_from_json(*request.plan, "plan"));
  }
  arguments.set("--json", "");
  arguments.set("--quiet", "");
  const std::vector<CallKeyword> keywords =
      row.command ? call_keywords(*row.command) : std::vector<CallKeyword>();
  const std::vector<std::string_view> names = texts_of(keywords, &CallKeyword::name);
  for (const JsonMember& member : request.options) {
    const auto found = std::find_if(keywords.begin(), keywords.end(),
                                    [&](const CallKeyword& one) { return one.name == member.key; });
    if (found == keywords.end()) {
      std::string option = "--" + member.key;
      std::replace(option.begin(), option.end(), '_', '-');
      const std::string_view instead = written_instead(option);
      return bad_input(fmt::format("does not accept the option {}", member.key),
                       std::string(row.name),
                       instead.empty() ? meant(nearest(member.key, names)) : std::string(instead));
    }
    TPSIM_TRY_STATUS(found->value.empty() ? set_switch(row, found->opt, member, arguments)
                                          : set_option(found->opt, member, arguments));
  }
  return arguments;
}

Result<CallAnswer> answer_of(const JsonValue& document,
                             const std::function<void(double)>& progress) {
  TPSIM_TRY(const CallRequest request, request_of(document));
  TPSIM_TRY(const std::size_t index,
            choose("call", request.call, texts_of(call_rows(), &CallRow::name)));
  const CallRow& row = call_rows()[index];
  TPSIM_TRY_STATUS(check_input(row, "plan", row.plan, request.plan.has_value()));
  TPSIM_TRY_STATUS(check_input(row, "path", row.path, !request.paths.empty()));
  TPSIM_TRY_STATUS(check_input(row, "report", row.report, request.report.has_value()));
  if (request.paths.size() > 1 && row.path != CallRow::Input::kNeedsSome) {
    return bad_input("reads one file", std::string(row.name));
  }
  TPSIM_TRY(const Arguments arguments, arguments_of(row, request));
  TPSIM_TRY(Answer answer, row.answer(arguments, Terminal{.listener = progress}));
  TPSIM_TRY_STATUS(answer.outcome);
  CallAnswer all{.document = std::move(answer.document)};
  for (const PlanFile& file : answer.plans) all.files.push_back(to_json(file));
  return all;
}

JsonValue answer_document(Result<CallAnswer> answer) {
  JsonValue document = json_object({{"format", kAnswerFormat}});
  if (!answer.ok()) return document.set("error", error_json(answer.error()));
  if (answer->document.find("version") != nullptr) {
    document.set("brief", brief_report(answer->document));
  }
  document.set("answer", std::move(answer->document));
  return document.set("files", json_array(answer->files));
}

}  // namespace

JsonValue answer_request(const Result<JsonValue>& request,
                         const std::function<void(double)>& progress) {
  if (!request.ok()) return answer_document(request.error());
  JsonValue answer;
  try {
    answer = answer_document(answer_of(*request, progress));
  } catch (const std::exception& error) {
    answer = answer_document(error_from(error));
  }
  if (const JsonValue* id = request->find("id")) answer.set("id", *id);
  return answer;
}

std::string answer_line(std::string_view request, const std::function<void(double)>& progress) {
  return to_line(answer_request(parse_json(request, kWhere), progress));
}

Result<Answer> run_call(const Arguments&, const Terminal&) {
  TPSIM_TRY(const ProgramStreams streams, move_standard_streams());
  LineReader reader(streams.requests, "standard input");
  const auto stop_unread = [&](double) {
    if (is_closed(streams.answers))
      throw std::runtime_error("the reader of the answers closed the pipe");
  };
  while (true) {
    TPSIM_TRY(const std::optional<std::string> line, reader.next());
    if (!line) return Answer{};
    TPSIM_TRY_STATUS(
        write_stream(streams.answers, answer_line(*line, stop_unread) + "\n", "standard output"));
  }
}

}  // namespace tpsim::cli
