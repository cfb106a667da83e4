// Differences between the programs of two plans, such as those of two frameworks.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sim/step/rank_programs.h"

namespace tpsim::app {

// Time of a part for one micro-batch after a lowering pass, without overlap: the sum of all events
// on the GPU's streams.
struct TimeAfterPass {
  std::string_view pass;  // "trace" for the layers of the reference model
  Seconds first, second;
};

// An event in one program alone, or in both with different times.
struct EventDifference {
  std::optional<IssuedEvent> first, second;
};

struct PhaseDifference {
  Phase phase{};
  std::vector<EventDifference> events;  // in order; without allocations
};

struct PartDifference {
  ProgramPart part{};
  std::int64_t block = 0;      // kind of block
  bool is_recomputed = false;  // whether the first plan recomputes the block
  std::vector<TimeAfterPass> times = {};
  std::vector<PhaseDifference> phases = {};  // with differences
};

// Names of two passes, in their order; "trace" for none.
struct ComparedPasses {
  std::string_view first, second;
};
// Compares the parts of a plan after the first passes of lowering_passes(), for two numbers of
// passes. Returns those that differ. Their `times` are empty.
std::vector<PartDifference> pass_differences(LayerPricer& pricer, const Plan& plan,
                                             std::size_t first, std::size_t second);

// Compares the parts of the model that both plans have. Returns those that differ.
std::vector<PartDifference> program_differences(LayerPricer& first, const Plan& first_plan,
                                                LayerPricer& second, const Plan& second_plan);

}  // namespace tpsim::app
