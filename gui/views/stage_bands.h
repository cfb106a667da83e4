// One stage over a step, on the axis of the timeline: a lane for each stream with its
// kernels and collectives, and memory by category. This header does not draw.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gui/views/timeline_layout.h"
#include "sim/memory/peak_memory.h"
#include "sim/schedule/stage_lanes.h"

namespace tpsim::gui {

struct StageBands {
  std::int64_t stage = 0;
  std::vector<TimelineSpan> work;  // of the stage, in order of time; transfers included
  std::vector<Stream> streams;     // that occur: the lanes from top to bottom
  // Kernels and calls of a chunk's task, for its first micro-batch, in order of begin.
  std::map<std::pair<std::int64_t, SpanKind>, std::vector<StreamSpan>> kernels;
  std::map<std::pair<std::int64_t, SpanKind>, Picoseconds> begins;  // of these tasks
  MemorySamples samples;
  StageMemory overheads;  // memory besides the samples
  double peak_gib = 0;    // highest of the step
};

// Returns the stage with the highest memory.
const StageMemory& fullest_stage(const std::vector<StageMemory>& memory);

// `timeline` and `costs`: of the plan. `memory`: of the stage, as predicted.
StageBands stage_bands(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs,
                       const Timeline& timeline, const StageMemory& memory);

// The lanes in a time window as a timeline whose "stages" are streams. Time for which the stage
// waits for a call is a span of its own; the part of a call that compute hides is not in `exposed`.
struct StageLanes {
  Timeline timeline;
  TimelineIndex index;
  SpanMask exposed;
  std::vector<const StreamSpan*> kernels;  // by span; null: a part of several, or a span of `work`
};
// Tasks that are narrower than their kernels are drawn by their shares.
StageLanes lanes_in(const StageBands& bands, const TimelineWindow& window);

// Bytes of the memory categories, context and fragmentation (memory_part_name()).
using MemoryColumn = std::array<double, kMemoryPartCount>;
// Returns the highest memory in each pixel of the window.
std::vector<MemoryColumn> memory_columns(const StageBands& bands, const TimelineWindow& window);

// Returns what a kernel or call is, with its rate, bytes and exposed time.
std::string kernel_text(const StreamSpan& span);

}  // namespace tpsim::gui
