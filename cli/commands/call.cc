#include "cli/commands/call.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

#include "app/reports/error_json.h"
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
  std::optional<std::string> path;  // path of the file to read
};

struct CallAnswer {
  JsonValue document;                // output of the command with --json
  std::vector<std::string> files{};  // plan files of the plans in the document, in the same order
};

Result<std::string> member_text(const JsonMember& member) {
  if (const auto* text = member.value.as<std::string>()) return *text;
  return bad_input(fmt::format("'{}' is {}, not text", member.key, kind_of(member.value)), kWhere);
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
  static const std::vector<std::string_view> kKeys = {"format", "call", "options", "plan", "path"};
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
    if (name == "call" || name == "path") {
      TPSIM_TRY(std::string text, member_text(member));
      (name == "call" ? request.call : request.path.emplace()) = std::move(text);
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
  if (!is_given && wanted == CallRow::Input::kNeeds) {
    return bad_input(fmt::format("needs a '{}'", key), std::string(row.name));
  }
  return Ok{};
}

Result<Arguments> arguments_of(const CallRow& row, const CallRequest& request) {
  Arguments arguments;
  if (row.command) arguments.command = *row.command;
  arguments.positional = request.path.value_or("");
  const auto is_stream = [](const JsonMember& member) {
    const auto* text = member.value.as<std::string>();
    return text != nullptr && *text == "-";
  };
  if (arguments.positional == "-" ||
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

Result<CallAnswer> answer_of(std::string_view text, const std::function<void(double)>& progress) {
  TPSIM_TRY(const JsonValue document, parse_json(text, kWhere));
  TPSIM_TRY(const CallRequest request, request_of(document));
  TPSIM_TRY(const std::size_t index,
            choose("call", request.call, texts_of(call_rows(), &CallRow::name)));
  const CallRow& row = call_rows()[index];
  TPSIM_TRY_STATUS(check_input(row, "plan", row.plan, request.plan.has_value()));
  TPSIM_TRY_STATUS(check_input(row, "path", row.path, request.path.has_value()));
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
  document.set("answer", std::move(answer->document));
  return document.set("files", json_array(answer->files));
}

// Reads lines from a file descriptor. A line above the size limit of JSON documents is truncated,
// and the JSON parser then rejects it.
class LineReader {
 public:
  explicit LineReader(int descriptor) : descriptor_(descriptor) {}

  // Returns nothing at the end of the input.
  Result<std::optional<std::string>> next() {
    std::string line;
    bool has_begun = false;
    while (true) {
      if (at_ == filled_) TPSIM_TRY_STATUS(fill());
      if (filled_ == 0) return has_begun ? std::optional(std::move(line)) : std::nullopt;
      has_begun = true;
      const char* begin = buffer_.data() + at_;
      const auto* end = static_cast<const char*>(std::memchr(begin, '\n', filled_ - at_));
      const std::size_t length = end != nullptr ? end - begin : filled_ - at_;
      line.append(begin, std::min(length, kMostJsonBytes + 1 - line.size()));
      at_ += length + (end != nullptr ? 1 : 0);
      if (end != nullptr) return std::optional(std::move(line));
    }
  }

 private:
  Status fill() {
    ssize_t count = 0;
    do {
      count = ::read(descriptor_, buffer_.data(), buffer_.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
      return bad_input(fmt::format("cannot read: {}", std::strerror(errno)), "standard input");
    }
    at_ = 0;
    filled_ = static_cast<std::size_t>(count);
    return Ok{};
  }

  int descriptor_;
  std::array<char, 1 << 16> buffer_;
  std::size_t at_ = 0, filled_ = 0;
};

Status write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return bad_input(fmt::format("cannot write: {}", std::strerror(errno)), "standard output");
    }
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return Ok{};
}

// Duplicates a standard stream to a new descriptor and redirects the original one to /dev/null. A
// request that names the path /dev/stdin then reads an empty file and not the following requests.
Result<int> moved_stream(int descriptor, int flags) {
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int nothing = ::open("/dev/null", flags | O_CLOEXEC);
  if (moved < 0 || nothing < 0 || ::dup2(nothing, descriptor) < 0) {
    return Error{ErrorKind::kMissing, std::strerror(errno), "standard streams", ""};
  }
  ::close(nothing);
  return moved;
}

}  // namespace

std::string answer_line(std::string_view request, const std::function<void(double)>& progress) {
  try {
    return to_line(answer_document(answer_of(request, progress)));
  } catch (const std::exception& error) {
    return to_line(answer_document(error_from(error)));
  }
}

Result<Answer> run_call(const Arguments&, const Terminal&) {
  TPSIM_TRY(const int requests, moved_stream(STDIN_FILENO, O_RDONLY));
  TPSIM_TRY(const int answers, moved_stream(STDOUT_FILENO, O_WRONLY));
  LineReader reader(requests);
  const auto stop_unread = [answers](double) {
    pollfd reader_side{.fd = answers, .events = 0, .revents = 0};
    if (::poll(&reader_side, 1, 0) > 0)
      throw std::runtime_error("the reader of the answers closed the pipe");
  };
  while (true) {
    TPSIM_TRY(const std::optional<std::string> line, reader.next());
    if (!line) return Answer{};
    TPSIM_TRY_STATUS(write_all(answers, answer_line(*line, stop_unread) + "\n"));
  }
}

}  // namespace tpsim::cli
