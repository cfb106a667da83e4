// Measures ops and collectives of a model's plans on this machine, as a profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/scenario/plan_request.h"
#include "app/scenario/scenario_request.h"
#include "core/base/result.h"
#include "core/machine/profile.h"

namespace tpsim::app {

// Gets the kind of work, "checking" or "timing", and its completed share.
using ProfilingProgress = std::function<void(const char* what, double share)>;

struct ProfilingRequest {
  ScenarioRequest scenario = {};  // without a plan file and a model only the device is measured
  StatedSettings settings = {};   // change the plan of the file
  SearchRequest search = {};      // without a plan file: the plans whose ops are measured
  std::string device = "cpu";
  bool is_quick = false;         // takes fewer samples
  bool all_collectives = false;  // every collective at every size
  std::string command;           // for the source of the profile
  ProfilingProgress progress = {};
};

struct MeasuredProfile {
  Profile profile;
  std::size_t too_large = 0;        // number of ops that do not fit in memory here
  std::size_t without_sample = 0;   // number of ops that have no time
  std::int64_t group_left_out = 0;  // ranks of the largest group that could not be timed; 0: none
  std::vector<std::string> notes;   // why some properties of the device are unknown
};

// Returns nothing in processes of a launcher that do not have the first rank. kMissing if the
// device is not available or cannot run one of the plans.
Result<std::optional<MeasuredProfile>> measured_profile(const ProfilingRequest& request);

}  // namespace tpsim::app
