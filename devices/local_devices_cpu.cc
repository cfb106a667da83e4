#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "devices/local_devices.h"

namespace tpsim::app {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

std::string system_name() {
  utsname names{};
  return uname(&names) == 0 ? fmt::format("{} {}", names.sysname, names.release) : "";
}

}  // namespace

// Each rank uses one core and an equal share of the host memory as its device.
Result<LocalDevices> cpu_devices() {
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  LocalDevices devices;
  devices.facts.name = fmt::format("core of {}", processor_name());
  devices.facts.source = "this machine";
  devices.facts.memory = Bytes(memory / static_cast<double>(cores));
  devices.facts.matmul_dtype = DType::kFloat32;
  devices.facts.asynchronous = false;
  devices.machine.description = fmt::format("{}, {} cores, {} memory, {}", processor_name(), cores,
                                            to_string(Bytes(memory)), system_name());
  devices.machine.devices = cores;
  TPSIM_TRY(devices.ranks, cpu_ranks());
  devices.free_memory = [](const Device*) { return free_memory(); };
  devices.meter = [] { return std::make_unique<ThreadLoadMeter>(); };
  return devices;
}

}  // namespace tpsim::app
