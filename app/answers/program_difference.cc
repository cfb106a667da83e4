#include "app/answers/program_difference.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace tpsim::app {
namespace {

constexpr double kSameTime = 1e-6;  // relative
constexpr auto kMicroBatchPhases = all_up_to<Phase::kAccumulate>();

bool is_memory(const IssuedEvent& event) {
  return std::holds_alternative<IssuedMemory>(event.what);
}

// Returns a text that is equal for events that do the same work at the same place.
struct Identity {
  std::string operator()(const LoweredOp& op) const {
    return to_string(op.key) + " x" + std::to_string(op.launches) + " " + op.label.text;
  }
  std::string operator()(const LoweredCollective& record) const {
    return std::string(name_of(record.kind)) + " " + std::string(name_of(record.group)) + " " +
           std::to_string(record.ranks) + " " + std::to_string(record.bytes) + " " +
           record.label.text;
  }
  std::string operator()(const IssuedWait& wait) const { return "wait " + (*this)(wait.record); }
  std::string operator()(const LoweredCopy& copy) const { return copy.label.text; }
  std::string operator()(const HostWork& work) const { return work.label; }
  std::string operator()(const IssuedMemory&) const { return ""; }
};

struct NamedEvent {
  IssuedEvent event;
  std::string identity;
};

std::vector<NamedEvent> events_of(const PartProgram& part, Phase phase) {
  std::vector<NamedEvent> events;
  for (const PhaseProgram& program : part.phases) {
    if (program.phase != phase) continue;
    for (const IssuedEvent& event : program.events) {
      if (is_memory(event)) continue;
      const std::string when = event.call > 0 ? "start " : "";
      events.push_back({event, when + std::visit(Identity(), event.what)});
    }
  }
  return events;
}

// Lengths of the longest common subsequence of the events from i and from j on.
class CommonEvents {
 public:
  CommonEvents(const std::vector<NamedEvent>& a, const std::vector<NamedEvent>& b)
      : width_(b.size() + 1), lengths_((a.size() + 1) * width_) {
    for (std::size_t i = a.size(); i-- > 0;) {
      for (std::size_t j = b.size(); j-- > 0;) {
        lengths_[i * width_ + j] = a[i].identity == b[j].identity
                                       ? 1 + length(i + 1, j + 1)
                                       : std::max(length(i + 1, j), length(i, j + 1));
      }
    }
  }
  std::size_t length(std::size_t i, std::size_t j) const { return lengths_[i * width_ + j]; }

 private:
  std::size_t width_;
  std::vector<std::size_t> lengths_;
};

bool has_same_time(const IssuedEvent& a, const IssuedEvent& b) {
  const double difference = std::abs((a.time - b.time).value());
  return difference <= kSameTime * std::max(a.time.value(), b.time.value());
}

std::vector<EventDifference> differences(const std::vector<NamedEvent>& a,
                                         const std::vector<NamedEvent>& b) {
  const CommonEvents common(a, b);
  std::vector<EventDifference> list;
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i].identity == b[j].identity) {
      if (!has_same_time(a[i].event, b[j].event)) list.push_back({a[i].event, b[j].event});
      ++i;
      ++j;
    } else if (j == b.size() ||
               (i < a.size() && common.length(i + 1, j) >= common.length(i, j + 1))) {
      list.push_back({a[i++].event, std::nullopt});
    } else {
      list.push_back({std::nullopt, b[j++].event});
    }
  }
  return list;
}

Seconds time_of(const PartProgram& part) {
  Seconds time;
  for (const Phase phase : kMicroBatchPhases) {
    for (const NamedEvent& one : events_of(part, phase)) {
      if (one.event.stream != Stream::kHost) time += one.event.time;
    }
  }
  return time;
}

using Programs = std::vector<PartProgram>;

// Returns the same part of the other program, with the same recompute if there is one; null if the
// program has no such part.
const PartProgram* same_part(const PartProgram& part, const Programs& programs) {
  const PartProgram* found = nullptr;
  for (const PartProgram& other : programs) {
    if (other.part != part.part || other.block != part.block) continue;
    if (found == nullptr || other.is_recomputed == part.is_recomputed) found = &other;
  }
  return found;
}

PartDifference difference(const PartProgram& a, const PartProgram& b) {
  PartDifference part{.part = a.part, .block = a.block, .is_recomputed = a.is_recomputed};
  for (const Phase phase : all_of<Phase>()) {
    PhaseDifference found{phase, differences(events_of(a, phase), events_of(b, phase))};
    if (!found.events.empty()) part.phases.push_back(std::move(found));
  }
  return part;
}

}  // namespace

std::vector<PartDifference> pass_differences(LayerPricer& pricer, const Plan& plan,
                                             std::size_t first, std::size_t second) {
  const Programs before = rank_programs(pricer, plan, first_passes(first));
  const Programs after = rank_programs(pricer, plan, first_passes(second));
  std::vector<PartDifference> parts;
  for (std::size_t i = 0; i < before.size(); ++i) {
    PartDifference found = difference(before[i], after[i]);
    if (!found.phases.empty()) parts.push_back(std::move(found));
  }
  return parts;
}

std::vector<PartDifference> program_differences(LayerPricer& first, const Plan& first_plan,
                                                LayerPricer& second, const Plan& second_plan) {
  std::vector<std::pair<Programs, Programs>> after;  // by number of passes
  for (std::size_t passes = 0; passes <= lowering_passes().size(); ++passes) {
    after.emplace_back(rank_programs(first, first_plan, first_passes(passes)),
                       rank_programs(second, second_plan, first_passes(passes)));
  }
  std::vector<PartDifference> parts;
  for (std::size_t i = 0; i < after.back().first.size(); ++i) {
    const PartProgram& part = after.back().first[i];
    const PartProgram* other = same_part(part, after.back().second);
    if (other == nullptr) continue;
    PartDifference found = difference(part, *other);
    if (found.phases.empty()) continue;
    for (std::size_t passes = 0; passes < after.size(); ++passes) {
      const auto& [a, b] = after[passes];
      found.times.push_back({passes == 0 ? "trace" : lowering_passes()[passes - 1].name,
                             time_of(a[i]), time_of(*same_part(a[i], b))});
    }
    parts.push_back(std::move(found));
  }
  return parts;
}

}  // namespace tpsim::app
