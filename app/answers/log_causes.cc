#include "app/answers/log_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/plan/term_class.h"
#include "core/software/stack_parts.h"
#include "frameworks/launch/framework.h"
#include "frameworks/launch/held_settings.h"
#include "sim/step/simulate.h"

namespace tpsim::app {
namespace {

struct Candidate {
  std::string what;
  CauseClass acts_on = CauseClass::kCompute;
  Scenario scenario;
  Plan plan;
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

// Whether the framework and the GPU have the attention kernel. No framework of today has
// FlashAttention 1. FlashAttention 3 has kernels for Hopper only, the GPUs with 8-bit formats but
// without MXFP8 on which it is faster than FlashAttention 2.
bool has_kernel(AttentionKernel kernel, const Profile& profile) {
  if (kernel != AttentionKernel::kFlash3) return kernel != AttentionKernel::kFlash1;
  const AttentionSpeeds& speeds = profile.model.attention_speeds;
  return profile.device.mxfp8_peak == FlopsPerSecond() && speeds.flash3 > speeds.flash2;
}

// Whether a run may have had this value: the framework does so by itself, or an option selects it.
// PyTorch may select attention kernels that no option states.
bool may_have_run(const PartRow& row, std::int64_t value, const Scenario& scenario,
                  const StackSpec& own) {
  if (row.get(own) == value) return true;
  if (row.part == StackPart::kAttentionKernel) {
    return has_kernel(static_cast<AttentionKernel>(value), scenario.profile);
  }
  const Framework* const framework = framework_of(scenario.stack.launcher);
  return framework == nullptr || held(framework->stack(), row.part, value) != Held::kRefused;
}

// Adds one candidate for each other value of each software part. Excludes optimizer and adapters,
// because the user of a log knows which of them ran.
void add_parts(const Scenario& scenario, const StackSpec& own, const Plan& plan,
               std::vector<Candidate>& all) {
  for (const PartRow& row : part_rows()) {
    if (row.part == StackPart::kOptimizerKind || is_of_adapters(row.part)) continue;
    const std::int64_t now = row.get(scenario.stack);
    for (const FieldWord& word : row.words) {
      if (word.value == now || !may_have_run(row, word.value, scenario, own)) continue;
      Candidate other{fmt::format("{}={}", row.key, word.word), cause_class(row), scenario, plan};
      other.scenario.stack = with_parts(scenario.stack, {{row.part, word.value}});
      all.push_back(std::move(other));
    }
  }
}

// Adds the other precision recipes. An 8-bit recipe that was not applied is a usual mistake.
void add_precisions(const Scenario& scenario, const Plan& plan, std::vector<Candidate>& all) {
  const Framework* const framework = framework_of(scenario.stack.launcher);
  for (const Precision precision : all_of<Precision>()) {
    Candidate other{fmt::format("precision={}", name_of(precision)), CauseClass::kCompute, scenario,
                    plan};
    other.plan.precision = precision;
    if (precision == Precision::kNone) other.plan.fp8_param_gather = false;
    const SettingValue value = setting_of(other.plan, Setting::kPrecision);
    const bool is_had = framework == nullptr || held(framework->stack(), value) != Held::kRefused;
    if (precision != plan.precision && is_had) all.push_back(std::move(other));
  }
}

struct Slowdown {
  double rate;
  const char* word;
};
constexpr Slowdown kSlowLinks[] = {{0.5, "a half"}, {0.25, "a quarter"}, {0.1, "a tenth"}};
constexpr Slowdown kSlowClocks[] = {{0.9, "90 %"}, {0.8, "80 %"}, {0.65, "65 %"}};

void add_machines(const Scenario& scenario, const Plan& plan, std::vector<Candidate>& all) {
  for (const auto& [rate, word] : kSlowLinks) {
    Candidate between{fmt::format("links between nodes at {} of their bandwidth", word),
                      CauseClass::kLinks, scenario, plan};
    between.scenario.cluster.inter_node.bandwidth *= rate;
    all.push_back(std::move(between));
    Candidate inside{fmt::format("links inside a node at {} of their bandwidth", word),
                     CauseClass::kLinks, scenario, plan};
    inside.scenario.cluster.intra_node.bandwidth *= rate;
    all.push_back(std::move(inside));
  }
  for (const auto& [rate, word] : kSlowClocks) {
    Candidate clock{fmt::format("GPUs at {} of their clock (thermal or power limit)", word),
                    CauseClass::kCompute, scenario, plan};
    clock.scenario.profile.model.sustained_clock *= rate;
    all.push_back(std::move(clock));
  }
}

}  // namespace

Result<std::vector<LikelyCause>> likely_causes(const Scenario& scenario, const StackSpec& own,
                                               const Plan& plan, Seconds predicted,
                                               Seconds measured, CauseClass acts_on) {
  constexpr double kLeastShare = 0.1;
  constexpr std::size_t kMostCauses = 5;
  std::vector<Candidate> candidates;
  add_parts(scenario, own, plan, candidates);
  add_precisions(scenario, plan, candidates);
  add_machines(scenario, plan, candidates);
  std::vector<LikelyCause> causes;
  const double gap = (measured - predicted).value();
  for (const Candidate& candidate : candidates) {
    if (acts_on != CauseClass::kAny && candidate.acts_on != acts_on) continue;
    const Result<Prediction> changed = simulate(candidate.scenario, candidate.plan);
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
  causes.resize(std::min(causes.size(), kMostCauses));
  return causes;
}

}  // namespace tpsim::app
