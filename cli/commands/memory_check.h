// Whether the ranks of a run fit into the memory that is free where they run, before they start.
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
  // `devices` outlives the check.
  static Result<MemoryCheck> of(const NamedScenario& named, const LocalDevices& devices);

  // kDoesNotFit, naming the memory that is needed and free and a change that fits, for one rank
  // alone (`run --rank`) on its device.
  Status rank_alone(Device& device, const Plan& plan, std::int64_t rank) const;

  // The same for all ranks of a plan that this process starts as threads. Returns Ok where a
  // launcher starts the ranks.
  Status threads(const Plan& plan) const;

  // The same for ranks that a launcher started: every rank calls this, and all return the same.
  Status launched(World& world, Device& device, const Plan& plan) const;

 private:
  MemoryCheck(Scenario scenario, const LocalDevices& devices)
      : scenario_(std::move(scenario)), devices_(devices) {}

  // The memory that a rank takes at its peak from what is free on its device now.
  Bytes peak(const Plan& plan, std::int64_t rank, bool has_neighbours) const;
  Bytes peak_of_all(const Plan& plan) const;
  // The first of some changes with which `needed` is at most `free`.
  template <class Needed>
  std::string remedy(const Plan& plan, Bytes free, Needed needed) const;

  Scenario scenario_;
  const LocalDevices& devices_;
};

}  // namespace tpsim::cli
