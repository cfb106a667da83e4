// tpsim mcp: a server of the Model Context Protocol (modelcontextprotocol.io) on standard input and
// output, so that agents can call tpsim's commands as tools.
//
// Messages are JSON-RPC 2.0, one a line. Tools are calls of `tpsim call` (cli/commands/call.h), so
// answers are those of the command line. One thread reads messages, another one answers calls in
// their order; a cancelled call stops at its next report of progress.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "app/reports/brief.h"
#include "app/reports/error_json.h"
#include "cli/commands/call.h"
#include "cli/commands/commands.h"
#include "cli/commands/request_lines.h"
#include "cli/commands/request_schema.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/json/json_document.h"
#include "generated/tpsim_config.h"

namespace tpsim::cli {
namespace {

using Object = JsonValue::Object;

// Codes of JSON-RPC.
enum class Code { kParse = -32700, kRequest = -32600, kMethod = -32601, kParameters = -32602 };

struct Tool {
  std::string_view name;
  std::string_view call;
  std::string_view description;
  std::string_view needed = {};  // an option without which the tool makes no sense
};

constexpr Tool kTools[] = {
    {"plan", "plan",
     "Search the fastest layout (TP, PP, DP, CP, EP, ZeRO, micro-batch, recompute) of a model on a "
     "number of GPUs: step time with a 90 % interval, memory, risk of running out of memory."},
    {"simulate", "simulate", "Predict one layout: step time, speed, memory. Options state it."},
    {"explain", "explain",
     "Every term of a prediction with its formula and source; with gpus, of the best layout."},
    {"why_not", "explain", "Why another layout is not faster than the best one: why_not \"tp=8\".",
     "why_not"},
    {"compare", "compare", "Compare saved plan files term by term; path is a list of files."},
    {"campaign", "campaign",
     "Days, energy, money, failures and checkpoints of a whole training run of a number of "
     "tokens."},
    {"import_file", "import_plan",
     "Read launch scripts or configurations of Megatron, NeMo, DeepSpeed, torchtitan, Trainer, "
     "axolotl and others as a plan."},
    {"check_log", "check_log",
     "Compare a training log or profiler trace with the prediction of its plan, and name causes."},
    {"models", "models", "Names of the models in the catalogue."},
    {"clusters", "clusters", "Names of the clusters in the catalogue."},
};

// Options of software parts and assumptions are accepted too, but not listed: they are many.
bool is_listed(const CallKeyword& keyword) {
  using namespace option_group;  // NOLINT(google-build-using-namespace)
  for (const std::string_view group : {kInputs, kSearch, kLayout, kCut, kWholeRun, kTraining}) {
    if (keyword.group.starts_with(group)) return true;
  }
  return false;
}

JsonValue described(std::string_view type, std::string_view text) {
  return json_object({{"type", type}, {"description", text}});
}

JsonValue tool_json(const Tool& tool) {
  using enum CallRow::Input;
  const CallRow& row = *find_call(tool.call);
  JsonValue properties = json_object();
  std::vector<std::string> required;
  if (row.command) {
    for (const CallKeyword& keyword : call_keywords(*row.command)) {
      if (is_listed(keyword) || keyword.name == tool.needed) {
        properties.set(keyword.name, keyword_schema(keyword));
      }
    }
    properties.set("full", described("boolean", "return the whole report, 10 to 50 kB"));
  }
  if (row.plan != kNone) {
    properties.set("plan", described("string", "path of a plan file, or its text"));
    if (row.plan == kNeeds) required.emplace_back("plan");
  }
  if (row.path != kNone) {
    JsonValue path = path_schema(row.path);
    properties.set("path", path.set("description", "path of the file to read"));
    required.emplace_back("path");
  }
  if (tool.call == "plan" || tool.call == "simulate" || tool.call == "import_plan") {
    properties.set("save", described("string", "path for the (best) plan as a file"));
  }
  if (!tool.needed.empty()) required.emplace_back(tool.needed);
  JsonValue schema = json_object({{"type", "object"}});
  schema.set("properties", std::move(properties));
  schema.set("required", json_array(required));
  std::string description(tool.description);
  if (row.command) {
    description += fmt::format(" `tpsim show schema {}-request` lists further options.", tool.call);
  }
  return json_object({{"name", tool.name},
                      {"description", std::move(description)},
                      {"inputSchema", std::move(schema)}});
}

struct Cancelled : std::runtime_error {
  Cancelled() : std::runtime_error("cancelled") {}
};

// A call that waits for its answer or runs.
struct Job {
  JsonValue id, arguments, progress_token;
  const Tool* tool = nullptr;
  std::atomic<bool> is_cancelled = false;
};

// Writes messages, from several threads.
class Writer {
 public:
  explicit Writer(int descriptor) : descriptor_(descriptor) {}
  void write(JsonValue message) {
    JsonValue whole = json_object({{"jsonrpc", "2.0"}});
    for (JsonMember& member : *message.as<Object>()) whole.set(member.key, std::move(member.value));
    const std::string text = to_line(whole) + "\n";
    const std::lock_guard lock(mutex_);
    is_closed_ = is_closed_ || !write_stream(descriptor_, text, "standard output").ok();
  }
  void result(const JsonValue& id, JsonValue value) {
    write(json_object({{"id", id}, {"result", std::move(value)}}));
  }
  void error(const JsonValue& id, Code code, const std::string& message) {
    JsonValue error = json_object({{"code", static_cast<int>(code)}, {"message", message}});
    write(json_object({{"id", id}, {"error", std::move(error)}}));
  }
  bool is_closed() const { return is_closed_; }

 private:
  int descriptor_;
  std::mutex mutex_;
  std::atomic<bool> is_closed_ = false;
};

Error unknown_tool(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Tool& tool : kTools) names.push_back(tool.name);
  return choose("tool", name, names).error();
}

// Returns the request of a tool's call. Arguments that `tpsim call` does not know are stored in
// `is_full` and `save`.
Result<JsonValue> request_of(const Job& job, bool& is_full, std::string& save) {
  JsonValue request = json_object({{"format", kRequestFormat}, {"call", job.tool->call}});
  JsonValue options = json_object();
  const auto* members = job.arguments.as<Object>();
  for (const JsonMember& member : members != nullptr ? *members : Object()) {
    const auto* text = member.value.as<std::string>();
    if (member.key == "full" || member.key == "save") {
      const auto* is_on = member.value.as<bool>();
      if (member.key == "full" ? is_on == nullptr : text == nullptr) {
        return bad_input(fmt::format("'{}' is {}", member.key, kind_of(member.value)),
                         std::string(job.tool->name));
      }
      if (is_on != nullptr) is_full = *is_on;
      if (text != nullptr) save = *text;
    } else if (member.key == "plan" && text != nullptr && !text->starts_with('{')) {
      TPSIM_TRY(std::string plan, read_file(*text, kMostJsonBytes));
      request.set("plan", std::move(plan));
    } else if (member.key == "plan" || member.key == "path") {
      request.set(member.key, member.value);
    } else {
      options.set(member.key, member.value);
    }
  }
  if (!job.tool->needed.empty() && options.find(job.tool->needed) == nullptr) {
    return bad_input(fmt::format("needs '{}'", job.tool->needed), std::string(job.tool->name));
  }
  return request.set("options", std::move(options));
}

JsonValue tool_result(const JsonValue& content, bool is_error) {
  const JsonValue text = json_object({{"type", "text"}, {"text", to_line(content)}});
  JsonValue result = json_object({{"content", json_array(std::vector<JsonValue>{text})}});
  if (content.as<Object>() != nullptr) result.set("structuredContent", content);
  return result.set("isError", is_error);
}

class Server {
 public:
  explicit Server(int answers) : writer_(answers), worker_([this] { work(); }) {}
  ~Server() {
    {
      const std::lock_guard lock(mutex_);
      is_ended_ = true;
    }
    wake_.notify_all();
    worker_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void hear(const std::string& line) {
    const Result<JsonValue> message = parse_json(line, "message");
    if (!message.ok()) return writer_.error({}, Code::kParse, to_string(message.error()));
    const JsonValue* method = message->find("method");
    const auto* name = method != nullptr ? method->as<std::string>() : nullptr;
    const JsonValue* id = message->find("id");
    if (name == nullptr) {
      return writer_.error(id != nullptr ? *id : JsonValue(), Code::kRequest,
                           "the message has no method");
    }
    const JsonValue* parameters = message->find("params");
    const JsonValue none = json_object();
    if (id == nullptr) return notified(*name, parameters != nullptr ? *parameters : none);
    answer(*name, *id, parameters != nullptr ? *parameters : none);
  }

 private:
  void notified(const std::string& method, const JsonValue& parameters) {
    if (method != "notifications/cancelled") return;
    const JsonValue* id = parameters.find("requestId");
    const std::lock_guard lock(mutex_);
    for (const std::shared_ptr<Job>& job : jobs_) {
      if (id != nullptr && to_line(job->id) == to_line(*id)) job->is_cancelled = true;
    }
  }

  void answer(const std::string& method, const JsonValue& id, const JsonValue& parameters) {
    if (method == "initialize") return writer_.result(id, greeting(parameters));
    if (method == "ping") return writer_.result(id, json_object());
    if (method == "tools/list") {
      return writer_.result(id, json_object({{"tools", json_array(kTools, tool_json)}}));
    }
    if (method != "tools/call") {
      return writer_.error(id, Code::kMethod, fmt::format("unknown method {}", method));
    }
    const JsonValue* name = parameters.find("name");
    const auto* wanted = name != nullptr ? name->as<std::string>() : nullptr;
    if (wanted == nullptr)
      return writer_.error(id, Code::kParameters, "the tool's name is missing");
    const auto* tool = std::find_if(std::begin(kTools), std::end(kTools),
                                    [&](const Tool& one) { return one.name == *wanted; });
    if (tool == std::end(kTools)) {
      return writer_.error(id, Code::kParameters, to_string(unknown_tool(*wanted)));
    }
    auto job = std::make_shared<Job>();
    job->id = id;
    job->tool = tool;
    if (const JsonValue* arguments = parameters.find("arguments")) job->arguments = *arguments;
    const JsonValue* meta = parameters.find("_meta");
    const JsonValue* token = meta != nullptr ? meta->find("progressToken") : nullptr;
    if (token != nullptr) job->progress_token = *token;
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    wake_.notify_one();
  }

  static JsonValue greeting(const JsonValue& parameters) {
    constexpr std::string_view kVersions[] = {"2025-06-18", "2025-03-26", "2024-11-05"};
    const JsonValue* wanted = parameters.find("protocolVersion");
    const auto* text = wanted != nullptr ? wanted->as<std::string>() : nullptr;
    std::string_view version = kVersions[0];
    for (const std::string_view known : kVersions) {
      if (text != nullptr && *text == known) version = known;
    }
    return json_object(
        {{"protocolVersion", version},
         {"capabilities", json_object({{"tools", json_object()}})},
         {"serverInfo", json_object({{"name", "tpsim"}, {"version", kVersion}})},
         {"instructions",
          "Plans 3D-parallel training of language models. Start with `plan` (model, gpus, "
          "cluster). Answers are short; `full` returns the whole report. Step times have a 90 % "
          "interval: say how sure a number is, and state what `assumed` lists to narrow it."}});
  }

  void work() {
    while (true) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return is_ended_ || !jobs_.empty(); });
        if (jobs_.empty()) return;
        job = jobs_.front();
      }
      run(*job);
      const std::lock_guard lock(mutex_);
      jobs_.pop_front();
    }
  }

  // A cancelled call has no answer.
  void run(const Job& job) {
    bool is_full = false;
    std::string save;
    const Result<JsonValue> request = request_of(job, is_full, save);
    JsonValue result;
    if (!request.ok()) {
      result = tool_result(error_json(request.error()), true);
    } else if (!job.is_cancelled) {
      result = result_of(answer_request(*request, listener_of(job)), is_full, save);
    }
    if (!job.is_cancelled) writer_.result(job.id, std::move(result));
  }

  static JsonValue result_of(const JsonValue& answer, bool is_full, const std::string& save) {
    if (const JsonValue* error = answer.find("error")) return tool_result(*error, true);
    const JsonValue* files = answer.find("files");
    const auto* texts = files != nullptr ? files->as<JsonValue::Array>() : nullptr;
    if (!save.empty() && texts != nullptr && !texts->empty()) {
      const Status saved = write_file_atomically(save, *texts->front().as<std::string>());
      if (!saved.ok()) return tool_result(error_json(saved.error()), true);
    }
    const JsonValue* brief = answer.find("brief");
    return tool_result(brief != nullptr && !is_full ? *brief : *answer.find("answer"), false);
  }

  std::function<void(double)> listener_of(const Job& job) {
    static constexpr std::chrono::milliseconds kPause(100);
    return [this, &job, last = std::chrono::steady_clock::time_point()](double share) mutable {
      if (job.is_cancelled || writer_.is_closed()) throw Cancelled();
      const auto now = std::chrono::steady_clock::now();
      if (job.progress_token.is_null() || now - last < kPause) return;
      last = now;
      writer_.write(json_object({{"method", "notifications/progress"},
                                 {"params", json_object({{"progressToken", job.progress_token},
                                                         {"progress", share},
                                                         {"total", 1}})}}));
    };
  }

  Writer writer_;
  std::mutex mutex_;  // of the members below
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> jobs_;  // the first one runs
  bool is_ended_ = false;
  std::thread worker_;
};

}  // namespace

Result<Answer> run_mcp(const Arguments&, const Terminal&) {
  TPSIM_TRY(const ProgramStreams streams, move_standard_streams());
  LineReader reader(streams.requests, "standard input");
  Server server(streams.answers);
  while (true) {
    TPSIM_TRY(const std::optional<std::string> line, reader.next());
    if (!line) return Answer{};
    server.hear(*line);
  }
}

}  // namespace tpsim::cli
