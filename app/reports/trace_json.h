// A step as a file for trace viewers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/captured/captured_prediction.h"
#include "sim/memory/peak_memory.h"
#include "sim/schedule/stage_lanes.h"

namespace tpsim::app {

// Returns a timeline in the Chrome trace event format for Perfetto and chrome://tracing. Each
// pipeline stage has a compute track with complete events in microseconds, and additional tracks
// for concurrent transfers, and a counter of its memory, whose peak is the predicted memory.
// `streams`: kernels and collectives of the first micro-batch. A stage's streams are a process,
// with arrows from where the compute stream starts a call to the call, and on to where it waits for
// it.
std::string trace_json(const StepMemory& step, const std::vector<StreamSpan>& streams,
                       std::string_view title);

// Returns the timeline of a captured step: a track for each stream, and the memory in use.
std::string captured_trace_json(const CapturedStep& step, const CapturedPrediction& predicted);

}  // namespace tpsim::app
