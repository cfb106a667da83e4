// The spans of one step by pipeline stage: the result of the event simulation.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/enum_words.h"
#include "core/base/units.h"

namespace tpsim {

enum class SpanKind : std::uint8_t {
  kForward,
  kBackward,
  kWeightGradient,
  kTransfer,
  // Work at the end of the step. Each kind has the name and the time of its StepTerm in the report.
  kGradientReduction,
  kTiedEmbedding,
  kClipping,
  kOptimizer,
  kWeightGather,
  kHostStep,
  kStragglers,
  kUncalibratedOverhead,
  kOther
};
template <>
inline constexpr auto kEnumNames<SpanKind> = std::to_array<std::string_view>(
    {"forward", "backward", "weight gradient", "transfer", "gradient reduction", "tied embedding",
     "gradient clipping", "optimizer", "weight gather", "host step", "stragglers", "unmodelled",
     "other"});

// Whether a span of this kind is a task of one micro-batch.
constexpr bool is_task(SpanKind kind) { return kind < SpanKind::kTransfer; }

struct TimelineSpan {
  std::int64_t stage = 0;
  SpanKind kind{};
  std::int64_t chunk = 0;        // model chunk, for the tasks of a micro-batch
  std::int64_t micro_batch = 0;  // the same
  Picoseconds begin = 0;
  Picoseconds end = 0;
};

// Spans of each stage are sorted by begin; kTransfer spans may overlap others. The last spans end
// at `end`. While a stage has no span, it waits for other stages.
struct Timeline {
  std::int64_t stages = 1;
  Picoseconds end = 0;
  std::vector<TimelineSpan> spans;
};

}  // namespace tpsim
