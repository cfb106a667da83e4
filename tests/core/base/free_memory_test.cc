// The memory that a process can still allocate, read from files that a test writes.
#include "core/base/free_memory.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "tests/temporary_folder.h"

namespace tpsim {
namespace {

namespace fs = std::filesystem;

// A machine with 8 GiB available, whose process is in no cgroup.
class Machine {
 public:
  Machine() { write("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable:    8388608 kB\n"); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  FreeMemory read() const { return free_memory(folder_.path()); }
  double gib() const { return read().bytes.value() / kGiB; }

 private:
  test::TemporaryFolder folder_;
};

std::string gib_in_bytes(double gib) {
  return std::to_string(static_cast<std::int64_t>(gib * kGiB)) + "\n";
}

}  // namespace

TEST_CASE("free memory is that of the machine without a limit") {
  const Machine machine;
  CHECK(machine.gib() == Approx(8));
  CHECK(machine.read().limit == "this machine");
  machine.write("proc/self/cgroup", "0::/\n");
  machine.write("sys/fs/cgroup/memory.max", "max\n");
  machine.write("sys/fs/cgroup/memory.current", gib_in_bytes(3));
  machine.write("proc/self/limits",
                "Limit                     Soft Limit           Hard Limit           Units\n"
                "Max address space         unlimited            unlimited            bytes\n");
  machine.write("proc/self/statm", "1000 10 10 10 0 10 0\n");
  CHECK(machine.gib() == Approx(8));
}

TEST_CASE("free memory is the rest of a version 2 cgroup or its parent") {
  const Machine machine;
  machine.write("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  machine.write("sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n");
  machine.write("sys/fs/cgroup/slurm/job_7/step_0/memory.current", gib_in_bytes(1));
  machine.write("sys/fs/cgroup/slurm/job_7/memory.max", gib_in_bytes(4));
  machine.write("sys/fs/cgroup/slurm/job_7/memory.current", gib_in_bytes(3));
  CHECK(machine.gib() == Approx(1));
  CHECK(machine.read().limit == "the cgroup /slurm/job_7");
  // The page cache is freed when memory is needed.
  machine.write("sys/fs/cgroup/slurm/job_7/memory.stat",
                "anon 1073741824\ninactive_file 1073741824\nactive_file 536870912\n");
  CHECK(machine.gib() == Approx(2.5));
  machine.write("sys/fs/cgroup/slurm/job_7/memory.current", gib_in_bytes(6));
  CHECK(machine.gib() == 0);
}

TEST_CASE("free memory is the rest of a version 1 cgroup, also with the host's path") {
  const Machine machine;
  machine.write("proc/self/cgroup", "9:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n");
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", gib_in_bytes(5));
  machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", gib_in_bytes(3));
  machine.write("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 1073741824\n");
  CHECK(machine.gib() == Approx(3));
  CHECK(machine.read().limit == "the cgroup /");
  // Without a limit version 1 shows a number near 2^63.
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(machine.gib() == Approx(8));
}

TEST_CASE("free memory is the rest of the address space limit") {
  const Machine machine;
  machine.write("proc/self/limits", "Max address space         " + gib_in_bytes(2));
  const auto pages = static_cast<std::int64_t>(0.5 * kGiB) / ::sysconf(_SC_PAGESIZE);
  machine.write("proc/self/statm", std::to_string(pages) + " 10 10 10 0 10 0\n");
  CHECK(machine.gib() == Approx(1.5));
  CHECK(machine.read().limit == "ulimit -v");
}

TEST_CASE("free memory is known on this machine") {
  CHECK(free_memory().bytes > Bytes());
  CHECK(std::isfinite(free_memory().bytes.value()));
}

}  // namespace tpsim
