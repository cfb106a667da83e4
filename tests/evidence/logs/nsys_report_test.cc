// Reports of Nsight Systems, generated with its tables and kernel names.
#include "evidence/logs/nsys_report.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/temporary_folder.h"

namespace tpsim::cli {
namespace {

constexpr const char* kTables =
    "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);"
    "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100'), (1, 'NVIDIA H100');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,"
    " deviceId INTEGER NOT NULL, contextId INTEGER, streamId INTEGER, correlationId INTEGER,"
    " globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER,"
    " bytes INTEGER);"
    "CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL,"
    " text TEXT, globalTid INTEGER, textId INTEGER);";

std::int64_t process(std::int64_t pid) { return (std::int64_t{1} << 56) | (pid << 24); }

std::string row(const char* table, const std::string& values) {
  return fmt::format("INSERT INTO {} VALUES ({});", table, values);
}

// One step of 100 us on `device`: 40 us of GEMMs, 20 us of attention, 10 us of norms, 5 us of
// copies, and 20 us of collectives, half of them overlapped with GEMMs. The remaining 15 us are
// idle.
std::string step(std::int64_t at_us, int device, std::int64_t pid) {
  const auto kernel = [&](std::int64_t begin, std::int64_t length, int name) {
    return row("CUPTI_ACTIVITY_KIND_KERNEL",
               fmt::format("{}, {}, {}, 1, 7, 1, {}, {}, {}", 1000 * (at_us + begin),
                           1000 * (at_us + begin + length), device, process(pid), name, name));
  };
  return kernel(0, 40, 1) + kernel(40, 20, 2) + kernel(60, 10, 3) + kernel(30, 10, 4) +
         kernel(70, 10, 5) +
         row("CUPTI_ACTIVITY_KIND_MEMCPY",
             fmt::format("{}, {}, {}, 4096", 1000 * (at_us + 80), 1000 * (at_us + 85), device));
}

std::string mark(const std::string& text, std::int64_t at_us, std::int64_t pid) {
  return row("NVTX_EVENTS", fmt::format("{}, {}, 59, {}, {}, NULL", 1000 * at_us,
                                        1000 * (at_us + 100), text, process(pid) + 17));
}

std::string names() {
  std::string text;
  int id = 0;
  for (const char* name :
       {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", "void flash::flash_fwd_kernel<Traits>(params)",
        "void rms_norm_kernel<float>", "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(Args)",
        "ncclDevKernel_AllGather_RING_LL(Args)", "iteration 9"}) {
    text += row("StringIds", fmt::format("{}, '{}'", ++id, name));
  }
  return text;
}

std::string two_steps() {
  return names() + step(1000, 0, 40) + step(1100, 0, 40) + step(1000, 1, 41) +
         mark("'step 8'", 1000, 40) + mark("'step 9'", 1100, 40) + mark("'step 8'", 900, 41) +
         mark("'forward'", 1000, 40);
}

// Returns the bytes of the database that the SQL commands create.
std::string database(const std::string& commands) {
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open(":memory:", &raw) == SQLITE_OK);
  char* message = nullptr;
  const int state = sqlite3_exec(raw, commands.c_str(), nullptr, nullptr, &message);
  INFO((message == nullptr ? "" : message));
  sqlite3_free(message);
  REQUIRE(state == SQLITE_OK);
  sqlite3_int64 size = 0;
  unsigned char* image = sqlite3_serialize(raw, "main", &size, 0);
  std::string bytes(reinterpret_cast<const char*>(image), static_cast<std::size_t>(size));
  sqlite3_free(image);
  sqlite3_close(raw);
  return bytes;
}

Error refused(const std::string& bytes) {
  const auto times = read_nsys_report(bytes, "it.sqlite");
  REQUIRE_FALSE(times.ok());
  CHECK(times.error().where == "it.sqlite");
  return times.error();
}

}  // namespace

TEST_CASE("a report of Nsight Systems is summed like a trace of torch.profiler") {
  const std::string bytes = database(kTables + two_steps());
  REQUIRE(is_nsys_report(bytes));
  const KernelTimes times = read_nsys_report(bytes, "it.sqlite").value();
  REQUIRE(times.steps.size() == 2);
  CHECK(times.steps[0].value() == Approx(100e-6));
  CHECK(times[KernelClass::kProducts].value() == Approx(40e-6));
  CHECK(times[KernelClass::kAttention].value() == Approx(20e-6));
  CHECK(times[KernelClass::kOthers].value() == Approx(10e-6));
  CHECK(times[KernelClass::kCopies].value() == Approx(5e-6));
  CHECK(times[KernelClass::kCollectives].value() == Approx(20e-6));
  CHECK(times.exposed.value() == Approx(10e-6));
  CHECK(times.idle.value() == Approx(15e-6));
  REQUIRE(times.collectives.size() == 2);
  CHECK(times.collectives[0].calls == Approx(1));
  // Large reports are read from their file.
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "it.sqlite";
  std::ofstream(path, std::ios::binary) << bytes;
  CHECK(read_nsys_report_file(path.string())->idle.value() == Approx(15e-6));
}

TEST_CASE("step marks may have several names, directly or in a table of texts") {
  for (const char* text : {"'ProfilerStep#3'", "'Iteration: 3'", "'train_step_3'", "'batch3'"}) {
    CAPTURE(text);
    const auto times = read_nsys_report(
        database(kTables + names() + step(1000, 2, 40) + mark(text, 1000, 40)), "it.sqlite");
    REQUIRE(times.ok());
    CHECK(times->steps.size() == 1);
  }
  const std::string by_id =
      row("NVTX_EVENTS", fmt::format("1000000, 1100000, 59, NULL, {}, 6", process(40)));
  CHECK(
      read_nsys_report(database(kTables + names() + step(1000, 0, 40) + by_id), "it.sqlite").ok());
}

TEST_CASE("other databases and incomplete reports are one clear error") {
  CHECK_THAT(refused(database("CREATE TABLE a (b);")).message,
             Catch::Contains("without GPU kernels"));
  CHECK_THAT(refused(database(kTables + names())).message, Catch::Contains("without GPU kernels"));
  CHECK_THAT(refused(database(kTables + names() + step(1000, 0, 40) + mark("'forward'", 1000, 40)))
                 .message,
             Catch::Contains("without step marks"));
  CHECK_THAT(refused(database(kTables + two_steps() +
                              "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER);"
                              "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1);"))
                 .hint,
             Catch::Contains("--cuda-graph-trace=node"));
  // A view instead of the table is not executed.
  std::string views = kTables;
  views +=
      "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL; CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS "
      "WITH RECURSIVE x(start, end, deviceId, demangledName) AS (SELECT 1, 2, 0, 1 UNION ALL "
      "SELECT start + 1, end + 1, 0, 1 FROM x) SELECT * FROM x;";
  CHECK_THAT(refused(database(views)).message, Catch::Contains("without GPU kernels"));
  const std::string whole = database(kTables + two_steps());
  CHECK_FALSE(read_nsys_report(whole.substr(0, 100), "it.sqlite").ok());
  for (std::size_t cut = 512; cut < whole.size(); cut += 512) {
    (void)read_nsys_report(whole.substr(0, cut), "it.sqlite");  // an error, or the readable part
  }
  for (std::size_t at = 100; at < whole.size(); at += 97) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    const auto times = read_nsys_report(damaged, "it.sqlite");
    if (times.ok()) CHECK(times->step.value() > 0);
  }
}

}  // namespace tpsim::cli
