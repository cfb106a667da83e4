#include "evidence/logs/profiler_files.h"

#include <filesystem>

#include "core/base/files.h"
#include "core/json/json_document.h"
#include "formats/python_runner.h"

namespace tpsim {
namespace {

// Returns what a reader of tpsim_recipes prints about the file at `path`.
Result<JsonValue> contents_of(const char* reader, const std::filesystem::path& path,
                              const std::string& file) {
  Result<std::string> text =
      output_of_recipes({"read", reader, std::filesystem::absolute(path).string()});
  if (!text.ok()) return Error{text.error().kind, text.error().message, file, text.error().hint};
  TPSIM_TRY(JsonValue contents, parse_json(*text, file));
  if (contents.find("error") == nullptr) return contents;
  const bool is_missing = contents.find("is_missing") != nullptr;
  return Error{is_missing ? ErrorKind::kMissing : ErrorKind::kBadInput,
               text_of_answer(contents, "error"), file, text_of_answer(contents, "hint")};
}

Result<JsonValue> contents_of(const char* reader, std::string_view bytes, const std::string& file) {
  TPSIM_TRY(const PrivateFolder folder, PrivateFolder::create());
  const std::filesystem::path copy = folder.path() / "copy";
  TPSIM_TRY_STATUS(write_file_atomically(copy, bytes));
  return contents_of(reader, copy, file);
}

const JsonValue::Array& list_at(const JsonValue& contents, std::string_view key) {
  return *contents.find(key)->as<JsonValue::Array>();
}

// Sums of a damaged file may exceed 64 bits: they are parsed as real numbers.
double number(const JsonValue& value) {
  const auto* whole = value.as<std::int64_t>();
  return whole == nullptr ? *value.as<double>() : static_cast<double>(*whole);
}

Bytes bytes_at(const JsonValue& contents, std::string_view key) {
  return Bytes(number(*contents.find(key)));
}

std::int64_t count_at(const JsonValue& contents, std::string_view key) {
  return *contents.find(key)->as<std::int64_t>();
}

// Converts begin, end, begin, end... in nanoseconds.
std::vector<TracedSpan> spans_at(const JsonValue& contents, std::string_view key) {
  const JsonValue::Array& times = list_at(contents, key);
  const auto microseconds = [&](std::size_t i) { return number(times[i]) * 1e-3; };
  std::vector<TracedSpan> spans;
  for (std::size_t i = 0; i + 1 < times.size(); i += 2) {
    spans.push_back({microseconds(i), microseconds(i + 1)});
  }
  return spans;
}

Result<KernelTimes> times_of(const Result<JsonValue>& report, const std::string& file) {
  if (!report.ok()) return report.error();
  TracedRank rank;
  rank.host_steps = spans_at(*report, "steps");
  for (const JsonValue& kernel : list_at(*report, "kernels")) {
    const std::string name = text_of_answer(kernel, "name");
    const KernelClass kind =
        *kernel.find("is_copy")->as<bool>() ? KernelClass::kCopies : class_of_kernel(name);
    for (const TracedSpan& span : spans_at(kernel, "spans")) {
      rank.kernels.push_back({span, kind, name});
    }
  }
  return kernel_times(
      rank, file,
      "put torch.cuda.nvtx.range_push(f\"step {i}\") and range_pop() around every step");
}

}  // namespace

Result<SnapshotPeak> read_snapshot_peak(std::string_view bytes, const std::string& file) {
  TPSIM_TRY(const JsonValue contents, contents_of("memory-snapshot", bytes, file));
  SnapshotPeak peak{bytes_at(contents, "allocated"),
                    bytes_at(contents, "reserved"),
                    bytes_at(contents, "kept"),
                    bytes_at(contents, "missing"),
                    bytes_at(contents, "start_up"),
                    count_at(contents, "events"),
                    {}};
  for (const JsonValue& site : list_at(contents, "live")) {
    peak.live.push_back(
        {text_of_answer(site, "site"), count_at(site, "blocks"), bytes_at(site, "bytes")});
  }
  return peak;
}

Result<KernelTimes> read_nsys_report(std::string_view bytes, const std::string& file) {
  return times_of(contents_of("nsys-report", bytes, file), file);
}

Result<KernelTimes> read_nsys_report_file(const std::string& path) {
  return times_of(contents_of("nsys-report", std::filesystem::path(path), path), path);
}

}  // namespace tpsim
