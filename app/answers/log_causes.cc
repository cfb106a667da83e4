#include "app/answers/log_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/plan/term_class.h"
#include "core/software/stack_parts.h"
#include "sim/step/simulate.h"

namespace tpsim::app {
namespace {

struct Candidate {
  std::string what;
  CauseClass acts_on = CauseClass::kCompute;
  Scenario scenario;
};

CauseClass cause_class(StepTerm term) {
  if (term == StepTerm::kHostWait || term == StepTerm::kHostStep) return CauseClass::kHost;
  return class_of(term) == TermClass::kCommunication ? CauseClass::kLinks : CauseClass::kCompute;
}

// Returns the class of the first term that the part changes; kCompute for parts that change memory
// only.
CauseClass cause_class(const PartRow& row) {
  const auto first = std::find_if(kStepTerms.begin(), kStepTerms.end(),
                                  [&](StepTerm term) { return row.terms.contains(term); });
  return first == kStepTerms.end() ? CauseClass::kCompute : cause_class(*first);
}

// Whether the kernel exists for the GPU. FlashAttention-3 has kernels for Hopper only, the GPUs
// with 8-bit formats but without MXFP8 on which it is faster than FlashAttention-2.
bool runs_on_gpu(StackPart part, std::int64_t value, const Profile& profile) {
  if (part != StackPart::kAttentionKernel) return true;
  if (static_cast<AttentionKernel>(value) != AttentionKernel::kFlash3) return true;
  const AttentionSpeeds& speeds = profile.model.attention_speeds;
  return profile.device.mxfp8_peak == FlopsPerSecond() && speeds.flash3 > speeds.flash2;
}

// Adds one candidate for each other value of each software part. Excludes the optimizer, because
// the user of a log knows which optimizer ran.
void add_parts(const Scenario& scenario, std::vector<Candidate>& all) {
  for (const PartRow& row : part_rows()) {
    if (row.part == StackPart::kOptimizerKind) continue;
    const std::int64_t now = row.get(scenario.stack);
    for (const FieldWord& word : row.words) {
      if (word.value == now || !runs_on_gpu(row.part, word.value, scenario.profile)) continue;
      Candidate other{fmt::format("{}={}", row.key, word.word), cause_class(row), scenario};
      other.scenario.stack = with_parts(scenario.stack, {{row.part, word.value}});
      all.push_back(std::move(other));
    }
  }
}

struct Slowdown {
  double rate;
  const char* word;
};
constexpr Slowdown kSlowLinks[] = {{0.5, "a half"}, {0.25, "a quarter"}, {0.1, "a tenth"}};
constexpr Slowdown kSlowClocks[] = {{0.9, "90 %"}, {0.8, "80 %"}, {0.65, "65 %"}};

void add_machines(const Scenario& scenario, std::vector<Candidate>& all) {
  for (const auto& [rate, word] : kSlowLinks) {
    Candidate between{fmt::format("links between nodes at {} of their bandwidth", word),
                      CauseClass::kLinks, scenario};
    between.scenario.cluster.inter_node.bandwidth *= rate;
    all.push_back(std::move(between));
    Candidate inside{fmt::format("links inside a node at {} of their bandwidth", word),
                     CauseClass::kLinks, scenario};
    inside.scenario.cluster.intra_node.bandwidth *= rate;
    all.push_back(std::move(inside));
  }
  for (const auto& [rate, word] : kSlowClocks) {
    Candidate clock{fmt::format("GPUs at {} of their clock (thermal or power limit)", word),
                    CauseClass::kCompute, scenario};
    clock.scenario.profile.model.sustained_clock *= rate;
    all.push_back(std::move(clock));
  }
}

}  // namespace

Result<std::vector<LikelyCause>> likely_causes(const Scenario& scenario, const Plan& plan,
                                               Seconds predicted, Seconds measured,
                                               CauseClass acts_on, std::size_t most) {
  constexpr double kLeastShare = 0.1;
  std::vector<Candidate> candidates;
  add_parts(scenario, candidates);
  add_machines(scenario, candidates);
  std::vector<LikelyCause> causes;
  const double gap = (measured - predicted).value();
  for (const Candidate& candidate : candidates) {
    if (acts_on != CauseClass::kAny && candidate.acts_on != acts_on) continue;
    const Result<Prediction> changed = simulate(candidate.scenario, plan);
    if (!changed.ok()) continue;  // the plan cannot run with this change
    const double moved = (changed->step - predicted).value();
    if (moved / gap < kLeastShare) continue;
    causes.push_back({candidate.what, changed->step});
  }
  const auto distance = [&](const LikelyCause& cause) {
    return std::abs((cause.step - measured).value());
  };
  std::stable_sort(causes.begin(), causes.end(), [&](const LikelyCause& a, const LikelyCause& b) {
    return distance(a) < distance(b);
  });
  if (causes.size() > most) causes.resize(most);
  return causes;
}

}  // namespace tpsim::app
