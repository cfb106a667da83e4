#include "gui/views/timeline_search.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "core/base/leading_number.h"

namespace tpsim::gui {
namespace {

enum class Field : std::uint8_t { kKind, kMicroBatch, kStage, kChunk };

struct Condition {
  Field field{};
  std::int64_t number = 0;
  std::string text;
};

std::vector<Condition> conditions_of(const std::string& words) {
  std::istringstream stream(words);
  std::vector<Condition> conditions;
  Field named = Field::kMicroBatch;  // field that the next number belongs to
  for (std::string word; stream >> word;) {
    const auto number = parse_number<std::int64_t>(word);
    const auto stage = parse_number<std::int64_t>(std::string_view(word).substr(1));
    if (word[0] == 's' && stage) {
      conditions.push_back({Field::kStage, *stage, ""});
    } else if (number) {
      conditions.push_back({named, *number, ""});
      named = Field::kMicroBatch;
    } else if (word == "stage") {
      named = Field::kStage;
    } else if (word == "chunk") {
      named = Field::kChunk;
    } else {
      conditions.push_back({Field::kKind, 0, word});
    }
  }
  return conditions;
}

bool holds(const TimelineSpan& span, const Condition& condition) {
  switch (condition.field) {
    case Field::kKind: return name_of(span.kind).starts_with(condition.text);
    case Field::kMicroBatch:
      return span.kind <= SpanKind::kTransfer && span.micro_batch == condition.number;
    case Field::kStage: return span.stage == condition.number;
    case Field::kChunk: return span.kind <= SpanKind::kTransfer && span.chunk == condition.number;
  }
  return false;
}

}  // namespace

SpanMask matching_spans(const Timeline& timeline, const std::string& words) {
  const std::vector<Condition> conditions = conditions_of(words);
  SpanMask mask(timeline.spans.size());
  for (std::size_t i = 0; i < mask.size(); ++i) {
    mask[i] = std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
      return holds(timeline.spans[i], condition);
    });
  }
  return mask;
}

std::uint32_t next_span(const Timeline& timeline, const SpanMask& mask, double after_seconds) {
  const Picoseconds after = to_picoseconds(Seconds(after_seconds));
  // Sort key: spans that start after the given time precede all others, and both groups are sorted
  // by start.
  const auto key = [&](std::uint32_t i) {
    return std::pair(timeline.spans[i].begin <= after, timeline.spans[i].begin);
  };
  std::uint32_t best = kManySpans;
  for (std::uint32_t i = 0; i < mask.size(); ++i) {
    if (mask[i] && (best == kManySpans || key(i) < key(best))) best = i;
  }
  return best;
}

}  // namespace tpsim::gui
