#include "evidence/logs/nsys_report.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <memory>
#include <set>

namespace tpsim {
namespace {

constexpr const char* kHowToMark =
    "put torch.cuda.nvtx.range_push(f\"step {i}\") and range_pop() around every step";
constexpr std::int64_t kMostRows = 50'000'000;
// Limits the time of queries on untrusted files, which might not end: SQLite calls look() every
// kStepsToLook instructions of its virtual machine, and the query is aborted after kMostLooks
// calls.
constexpr int kStepsToLook = 1 << 20;
constexpr std::int64_t kMostLooks = 1'000;
constexpr double kMicrosecond = 1e-3;  // microseconds per nanosecond

struct Closer {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct Finisher {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

int look(void* looks) { return ++*static_cast<std::int64_t*>(looks) > kMostLooks ? 1 : 0; }

// A report as an untrusted SQLite database. Only plain tables are read, because views could run
// arbitrary queries.
class Report {
 public:
  Report(std::unique_ptr<sqlite3, Closer> database, std::string file)
      : database_(std::move(database)), file_(std::move(file)) {
    sqlite3* raw = database_.get();
    sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, 1 << 26);
    sqlite3_progress_handler(raw, kStepsToLook, look, looks_.get());
  }

  Error bad(std::string message, std::string hint = "") const {
    return bad_input(std::move(message), file_, std::move(hint));
  }

  Result<std::unique_ptr<sqlite3_stmt, Finisher>> prepared(const std::string& query) const {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database_.get(), query.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
      return broken();
    }
    return std::unique_ptr<sqlite3_stmt, Finisher>(statement);
  }

  // Calls `take` with every row. Returns an error if the file is truncated or corrupt.
  template <class Take>
  Status each_row(const std::string& query, const Take& take) const {
    TPSIM_TRY(const auto statement, prepared(query));
    std::int64_t rows = 0;
    int state = SQLITE_ROW;
    while ((state = sqlite3_step(statement.get())) == SQLITE_ROW) {
      if (++rows > kMostRows) return bad("has more events than tpsim can read");
      take(statement.get());
    }
    return state == SQLITE_DONE ? Status(Ok{}) : Status(broken());
  }

  // Returns the column names of a plain table; empty if the table does not exist.
  Result<std::set<std::string>> columns(const std::string& table) const {
    std::set<std::string> names;
    std::int64_t found = 0;
    TPSIM_TRY_STATUS(each_row(
        fmt::format("SELECT count(*) FROM sqlite_master WHERE type='table' AND name='{}'", table),
        [&](sqlite3_stmt* row) { found = sqlite3_column_int64(row, 0); }));
    if (found == 0) return names;
    TPSIM_TRY_STATUS(each_row(fmt::format("SELECT name FROM pragma_table_info('{}')", table),
                              [&](sqlite3_stmt* row) { names.insert(text(row, 0)); }));
    return names;
  }

  static std::string text(sqlite3_stmt* row, int column) {
    const auto* bytes = sqlite3_column_text(row, column);
    const int size = sqlite3_column_bytes(row, column);
    return bytes == nullptr
               ? ""
               : std::string(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }

 private:
  Error broken() const {
    return bad(
        fmt::format("is a damaged or incomplete report: {}", sqlite3_errmsg(database_.get())),
        "export it again: nsys export --type sqlite report.nsys-rep");
  }

  std::unique_ptr<std::int64_t> looks_ = std::make_unique<std::int64_t>(0);
  std::unique_ptr<sqlite3, Closer> database_;
  std::string file_;
};

// Returns the process id in a combined id of NVTX or CUPTI (machine, process and thread).
std::int64_t process_of(std::int64_t global) { return (global >> 24) & 0xffffff; }

// Whether the text of an NVTX range marks a step: a word for steps, then a number: "step 7",
// "Iteration: 7", "ProfilerStep#7", "train_step_7".
bool marks_step(std::string_view text) {
  const std::size_t last = text.find_last_not_of("0123456789");
  if (last == std::string_view::npos || last + 1 == text.size()) return false;
  std::string word;
  for (const char c : text.substr(0, last + 1)) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  constexpr std::array<std::string_view, 9> kWords = {"step",         "iteration",      "iter",
                                                      "profilerstep", "globalstep",     "trainstep",
                                                      "trainingstep", "trainiteration", "batch"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

TracedSpan span_of(std::int64_t begin, std::int64_t end) {
  const double from = static_cast<double>(begin) * kMicrosecond;
  return {from, std::max(from, static_cast<double>(end) * kMicrosecond)};
}

struct Seen {
  TracedRank rank;
  std::int64_t device = 0;
  std::map<std::int64_t, std::int64_t> kernels_by_process;

  std::int64_t process() const {
    const auto most =
        std::max_element(kernels_by_process.begin(), kernels_by_process.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == kernels_by_process.end() ? -1 : most->first;
  }
};

Status read_kernels(const Report& report, Seen& seen) {
  constexpr const char* kTable = "CUPTI_ACTIVITY_KIND_KERNEL";
  TPSIM_TRY(const auto columns, report.columns(kTable));
  const std::string name = columns.contains("demangledName") ? "demangledName" : "shortName";
  const bool is_whole = columns.contains("start") && columns.contains("end") &&
                        columns.contains("deviceId") && columns.contains(name);
  if (!is_whole) {
    return report.bad(
        "is a database without GPU kernels",
        "profile with nsys profile --trace=cuda,nvtx, then nsys export --type sqlite");
  }
  TPSIM_TRY_STATUS(
      report.each_row(fmt::format("SELECT min(deviceId) FROM {}", kTable),
                      [&](sqlite3_stmt* row) { seen.device = sqlite3_column_int64(row, 0); }));
  std::map<std::int64_t, std::string> names;
  TPSIM_TRY_STATUS(report.each_row("SELECT id, value FROM StringIds", [&](sqlite3_stmt* row) {
    names[sqlite3_column_int64(row, 0)] = Report::text(row, 1);
  }));
  const char* process = columns.contains("globalPid") ? "globalPid" : "0";
  TPSIM_TRY_STATUS(
      report.each_row(fmt::format("SELECT start, \"end\", {}, {} FROM {} WHERE deviceId = {}", name,
                                  process, kTable, seen.device),
                      [&](sqlite3_stmt* row) {
                        const std::string& text = names[sqlite3_column_int64(row, 2)];
                        seen.rank.kernels.push_back(
                            {span_of(sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)),
                             class_of_kernel(text), text});
                        ++seen.kernels_by_process[process_of(sqlite3_column_int64(row, 3))];
                      }));
  if (!seen.rank.kernels.empty()) return Ok{};
  return report.bad("is a report without GPU kernels",
                    "profile with nsys profile --trace=cuda,nvtx");
}

Status read_copies(const Report& report, Seen& seen) {
  for (const char* table : {"CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"}) {
    TPSIM_TRY(const auto columns, report.columns(table));
    if (!columns.contains("start") || !columns.contains("end") || !columns.contains("deviceId")) {
      continue;
    }
    TPSIM_TRY_STATUS(report.each_row(
        fmt::format("SELECT start, \"end\" FROM {} WHERE deviceId = {}", table, seen.device),
        [&](sqlite3_stmt* row) {
          seen.rank.kernels.push_back(
              {span_of(sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)),
               KernelClass::kCopies, "copy"});
        }));
  }
  TPSIM_TRY(const auto graphs, report.columns("CUPTI_ACTIVITY_KIND_GRAPH_TRACE"));
  std::int64_t hidden = 0;
  if (!graphs.empty()) {
    TPSIM_TRY_STATUS(
        report.each_row("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                        [&](sqlite3_stmt* row) { hidden = sqlite3_column_int64(row, 0); }));
  }
  if (hidden == 0) return Ok{};
  return report.bad("does not contain the kernels of CUDA graphs",
                    "profile with --cuda-graph-trace=node");
}

Status read_marks(const Report& report, Seen& seen) {
  TPSIM_TRY(const auto columns, report.columns("NVTX_EVENTS"));
  if (!columns.contains("start") || !columns.contains("end") || !columns.contains("text")) {
    return Ok{};
  }
  const bool has_ids = columns.contains("textId");
  const bool has_threads = columns.contains("globalTid");
  const std::int64_t process = seen.process();
  return report.each_row(
      fmt::format(
          "SELECT n.start, n.\"end\", {}, {} FROM NVTX_EVENTS n{} WHERE n.\"end\" IS NOT NULL",
          has_ids ? "coalesce(n.text, s.value)" : "n.text", has_threads ? "n.globalTid" : "0",
          has_ids ? " LEFT JOIN StringIds s ON s.id = n.textId" : ""),
      [&](sqlite3_stmt* row) {
        const bool is_own =
            !has_threads || process <= 0 || process_of(sqlite3_column_int64(row, 3)) == process;
        if (!is_own || !marks_step(Report::text(row, 2))) return;
        seen.rank.host_steps.push_back(
            span_of(sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)));
      });
}

Result<KernelTimes> times_of(const Report& report, const std::string& file) {
  Seen seen;
  TPSIM_TRY_STATUS(read_kernels(report, seen));
  TPSIM_TRY_STATUS(read_copies(report, seen));
  TPSIM_TRY_STATUS(read_marks(report, seen));
  return kernel_times(seen.rank, file, kHowToMark);
}

Error cannot_open(const std::string& file, const char* why) {
  return bad_input(fmt::format("cannot be read as a SQLite database: {}", why), file);
}

}  // namespace

Result<KernelTimes> read_nsys_report(std::string_view bytes, const std::string& file) {
  sqlite3* raw = nullptr;
  const int state = sqlite3_open_v2(":memory:", &raw, SQLITE_OPEN_READWRITE, nullptr);
  std::unique_ptr<sqlite3, Closer> database(raw);
  if (state != SQLITE_OK) return cannot_open(file, sqlite3_errstr(state));
  // SQLite does not write to a read-only database, but its interface requires a non-const pointer.
  auto* image = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  const int loaded =
      sqlite3_deserialize(raw, "main", image, size, size, SQLITE_DESERIALIZE_READONLY);
  if (loaded != SQLITE_OK) return cannot_open(file, sqlite3_errstr(loaded));
  return times_of(Report(std::move(database), file), file);
}

Result<KernelTimes> read_nsys_report_file(const std::string& path) {
  sqlite3* raw = nullptr;
  const int state = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READONLY, nullptr);
  std::unique_ptr<sqlite3, Closer> database(raw);
  if (state != SQLITE_OK) return cannot_open(path, sqlite3_errstr(state));
  return times_of(Report(std::move(database), path), path);
}

}  // namespace tpsim
