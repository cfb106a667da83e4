// tpsim batch: answers a file of requests on all cores, and goes on where it was stopped.
//
// Each answer is one line, appended by one write(), with the number of its request's line and a
// hash of it. A start with an output file that exists drops a line that was not finished, and
// answers the requests that have no answer yet.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "cli/commands/call.h"
#include "cli/commands/commands.h"
#include "cli/commands/request_lines.h"
#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "core/base/descriptor.h"
#include "core/base/text.h"
#include "core/json/json_document.h"

namespace tpsim::cli {
namespace {

Error failed(const char* what, const std::string& path) {
  return bad_input(fmt::format("cannot {}: {}", what, std::strerror(errno)), path);
}

struct Counts {
  std::int64_t requests = 0, answered = 0, errors = 0, earlier = 0;
};

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == line.npos; }

// Answers of one file of requests.
class Batch {
 public:
  Batch(std::string input, std::string output, bool is_brief)
      : input_path_(std::move(input)),
        output_path_(std::move(output)),
        is_brief_(is_brief),
        input_(::open(input_path_.c_str(), O_RDONLY | O_CLOEXEC)),
        output_(::open(output_path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)),
        reader_(input_.number(), input_path_) {}

  Result<Counts> run(int threads, const std::function<void(double)>& progress) {
    if (input_.number() < 0) return failed("open", input_path_);
    if (output_.number() < 0) return failed("open", output_path_);
    if (::flock(output_.number(), LOCK_EX | LOCK_NB) != 0) {
      return bad_input("another tpsim batch writes this file", output_path_);
    }
    TPSIM_TRY_STATUS(read_earlier());
    size_ = std::max<std::int64_t>(1, ::lseek(input_.number(), 0, SEEK_END));
    ::lseek(input_.number(), 0, SEEK_SET);
    std::vector<std::thread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&, i] { work(i == 0 ? progress : nullptr); });
    }
    for (std::thread& worker : workers) worker.join();
    if (!error_.ok()) return error_.error();
    return counts_;
  }

 private:
  struct Answered {
    std::int64_t line = 0;
    std::uint64_t hash = 0;  // of the request
  };
  struct Request : Answered {
    std::string text;
  };

  // Reads which requests have answers. Cuts off a line without an end.
  Status read_earlier() {
    LineReader lines(output_.number(), output_path_);
    std::int64_t bytes = 0;
    const std::int64_t whole = ::lseek(output_.number(), 0, SEEK_END);
    ::lseek(output_.number(), 0, SEEK_SET);
    for (std::int64_t number = 1;; ++number) {
      TPSIM_TRY(const std::optional<std::string> line, lines.next());
      if (!line) break;
      const auto length = static_cast<std::int64_t>(line->size());
      if (bytes + length == whole) {  // no end of line
        if (::ftruncate(output_.number(), bytes) != 0)
          return failed("cut off a line of", output_path_);
        break;
      }
      bytes += length + 1;
      const std::optional<Answered> answered = start_of(*line);
      if (!answered) {
        return bad_input("is not an answer of tpsim batch",
                         fmt::format("{}:{}", output_path_, number), "choose another file for -o");
      }
      earlier_[answered->line] = answered->hash;
    }
    return Ok{};
  }

  // Start of an answer's line.
  static JsonValue start_of(const Answered& answered) {
    return json_object(
        {{"line", answered.line}, {"request", fmt::format("fnv1a:{:016x}", answered.hash)}});
  }
  static std::optional<Answered> start_of(const std::string& line) {
    Answered answered;
    constexpr const char* kStart =
        "{ \"line\" : %" SCNd64 " , \"request\" : \"fnv1a:%16" SCNx64 "\"";
    if (std::sscanf(line.c_str(), kStart, &answered.line, &answered.hash) != 2) return std::nullopt;
    return answered;
  }

  // Returns the next request without an answer.
  std::optional<Request> next() {
    const std::lock_guard lock(mutex_);
    while (error_.ok()) {
      Result<std::optional<std::string>> line = reader_.next();
      if (!line.ok()) error_ = line.error();
      if (!line.ok() || !*line) return std::nullopt;
      ++line_;
      read_ += static_cast<std::int64_t>((*line)->size()) + 1;
      if (is_blank(**line)) continue;
      ++counts_.requests;
      const std::uint64_t hash = fnv1a(**line);
      const auto earlier = earlier_.find(line_);
      if (earlier == earlier_.end()) return Request{{line_, hash}, std::move(**line)};
      if (earlier->second != hash) {
        error_ = bad_input("this request differs from the one that was answered before",
                           fmt::format("{}:{}", input_path_, line_),
                           fmt::format("choose another file than {} for -o", output_path_));
        return std::nullopt;
      }
      ++counts_.earlier;
    }
    return std::nullopt;
  }

  JsonValue answer_to(const Request& request) const {
    JsonValue line = start_of(request);
    const JsonValue answer = answer_request(parse_json(request.text, "request"));
    for (const JsonMember& member : *answer.as<JsonValue::Object>()) {
      const bool is_long = member.key == "answer" || member.key == "files";
      if (is_brief_ && is_long && answer.find("brief") != nullptr) continue;
      line.set(member.key, member.value);
    }
    return line;
  }

  void work(const std::function<void(double)>& progress) {
    while (const std::optional<Request> request = next()) {
      const JsonValue answer = answer_to(*request);
      const std::string text = to_line(answer) + "\n";
      const std::lock_guard lock(mutex_);
      if (Status written = write_stream(output_.number(), text, output_path_); !written.ok()) {
        error_ = std::move(written);
        return;
      }
      ++(answer.find("error") != nullptr ? counts_.errors : counts_.answered);
      if (progress) progress(static_cast<double>(read_) / static_cast<double>(size_));
    }
  }

  std::string input_path_, output_path_;
  bool is_brief_;
  Descriptor input_, output_;
  std::mutex mutex_;  // of the members below
  LineReader reader_;
  std::unordered_map<std::int64_t, std::uint64_t> earlier_;  // hash of an answered request by line
  std::int64_t line_ = 0, read_ = 0, size_ = 1;
  Counts counts_;
  Status error_ = Ok{};
};

}  // namespace

Result<Answer> run_batch(const Arguments& arguments, const Terminal& terminal) {
  if (arguments.positional.empty()) {
    return bad_input("the file of requests is missing", "batch",
                     "one request a line, as for tpsim call: docs/json.md");
  }
  if (!arguments.has("-o")) {
    return option_error("-o", "the file of answers is missing", "give -o answers.jsonl");
  }
  TPSIM_TRY(const int threads, threads_of(arguments));
  set_usual_threads(1);  // of a request, since requests run side by side
  ProgressBar bar(terminal, "answering");
  Batch batch(arguments.positional, *arguments["-o"], arguments.has("--brief"));
  TPSIM_TRY(const Counts counts, batch.run(threads, bar.shower()));
  bar.clear();
  return answered(
      arguments, terminal,
      [&] {
        return json_object({{"version", "tpsim-batch-report/1"},
                            {"requests", counts.requests},
                            {"answered", counts.answered},
                            {"errors", counts.errors},
                            {"answered_before", counts.earlier}});
      },
      [&](TextReport& out) {
        out.row("requests", "{}", counts.requests);
        out.row("answered", "{}, {} with an error", counts.answered + counts.errors, counts.errors);
        out.row("before", "{}", counts.earlier);
      });
}

}  // namespace tpsim::cli
