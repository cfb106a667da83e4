// Checks before a run that its ranks fit into the memory that is free now.
#pragma once

#include <string>

#include "app/scenario/scenario_request.h"
#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "devices/local_devices.h"
#include "ranks/world.h"

namespace tpsim::app {

class MemoryCheck {
 public:
  // `devices` must outlive the check.
  static Result<MemoryCheck> of(const NamedScenario& named, const LocalDevices& devices);

  // Checks one rank that runs alone (`run --rank`). kDoesNotFit states the needed and the free
  // memory, and suggests options with which the rank fits.
  Status rank_alone(Device& device, const Plan& plan, std::int64_t rank) const;

  // Checks all ranks that this process starts as threads, with the same error. Returns ok if a
  // launcher started the ranks.
  Status threads(const Plan& plan) const;

  // Checks the ranks of a launcher's job, with the same error. Collective: every rank must call it,
  // and all ranks return the same result.
  Status launched(World& world, Device& device, const Plan& plan) const;

 private:
  MemoryCheck(Scenario scenario, const LocalDevices& devices)
      : scenario_(std::move(scenario)), devices_(devices) {}

  // Returns the peak memory that a rank will allocate, excluding memory that is in use already.
  Bytes peak(const Plan& plan, std::int64_t rank, bool has_neighbours) const;
  Bytes peak_of_all(const Plan& plan) const;
  // Suggests the first change of kChanges with which the memory `needed` is at most `free`.
  template <class Needed>
  std::string remedy(const Plan& plan, Bytes free, Needed needed) const;

  Scenario scenario_;
  const LocalDevices& devices_;
};

}  // namespace tpsim::app
