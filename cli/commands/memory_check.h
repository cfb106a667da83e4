// Checks, before a run starts, that its ranks fit into the free memory.
#pragma once

#include <string>
#include <vector>

#include "cli/devices/local_devices.h"
#include "cli/options/inputs.h"
#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "ranks/world.h"

namespace tpsim::cli {

class MemoryCheck {
 public:
  // `devices` must outlive the check.
  static Result<MemoryCheck> of(const NamedScenario& named, const LocalDevices& devices);

  // Checks one rank alone (`run --rank`) on its device. kDoesNotFit with needed and free memory,
  // and a change that fits.
  Status rank_alone(Device& device, const Plan& plan, std::int64_t rank) const;

  // Likewise for all ranks that this process starts as threads. Returns Ok if a launcher starts the
  // ranks.
  Status threads(const Plan& plan) const;

  // Likewise for ranks of a launcher. Every rank must call it, and all return the same result.
  Status launched(World& world, Device& device, const Plan& plan) const;

 private:
  MemoryCheck(Scenario scenario, const LocalDevices& devices)
      : scenario_(std::move(scenario)), devices_(devices) {}

  // Returns a rank's peak of additional memory, relative to the memory in use now.
  Bytes peak(const Plan& plan, std::int64_t rank, bool has_neighbours) const;
  Bytes peak_of_all(const Plan& plan) const;
  // Returns the first change for which `needed` is at most `free`.
  template <class Needed>
  std::string remedy(const Plan& plan, Bytes free, Needed needed) const;

  Scenario scenario_;
  const LocalDevices& devices_;
};

}  // namespace tpsim::cli
