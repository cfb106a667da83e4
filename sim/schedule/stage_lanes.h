// Kernels and collectives of each stage by stream, for one micro-batch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/program/timeline.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {

// A kernel, or the calls of a collective, on its stream.
struct StreamSpan {
  std::int64_t stage = 0;
  std::int64_t chunk = 0;
  SpanKind task{};
  Stream stream{};
  Picoseconds begin = 0, end = 0;
  const char* label = "";
  std::string what;         // op with its shape, or collective with its group
  double flops = 0;         // of all kernels
  double bytes = 0;         // moved by kernels, or of one call
  std::int64_t ranks = 0;   // calls only
  Picoseconds exposed = 0;  // calls: time that they add to the task
  Picoseconds issued = -1;  // calls: when the compute stream started it; -1: in the layer before
  Picoseconds needed = -1;  // calls: when the compute stream needed it; -1: in the next layer
};

// Returns what the first micro-batch runs in every chunk of every stage, or of one. Tasks begin as
// in the timeline. Time for which a task waits for the host, and exchanges of FP8 scales, have no
// span.
std::vector<StreamSpan> stream_spans(LayerPricer& pricer, const Plan& plan,
                                     const Timeline& timeline,
                                     std::optional<std::int64_t> stage = {});

}  // namespace tpsim
