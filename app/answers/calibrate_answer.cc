#include "app/answers/calibrate_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

#include "app/scenario/field.h"
#include "core/base/date.h"
#include "core/base/text.h"
#include "core/scenario/catalogue.h"

namespace tpsim::app {
namespace {

// Returns the name of the calibrated entry: `name` with the suffix "-calibrated".
std::string calibrated_name(const std::string& name) {
  constexpr std::string_view kEnd = "-calibrated";
  return name.ends_with(kEnd) ? name : name + std::string(kEnd);
}

// Rounds to four significant digits.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

bool moved(const FittedConstant& fitted) { return fitted.before != fitted.after; }

std::string word_of(StackPart part, std::int64_t value) { return text_of(row_of(part), value); }

// Returns the changed constants of a stack or cluster: "host.per_op 14.5 us to 9 us, norm_kernel
// fused to torch".
std::string changes_text(const Calibration& found, ConstantOwner owner) {
  std::string text;
  const auto add = [&](std::string_view key, const std::string& before, const std::string& after) {
    text += fmt::format("{}{} {} to {}", text.empty() ? "" : ", ", key, before, after);
  };
  for (const FittedConstant& fitted : found.constants) {
    if (fitted.constant->owner != owner || !moved(fitted)) continue;
    add(fitted.constant->key, fitted.constant->text(fitted.before),
        fitted.constant->text(fitted.after));
  }
  if (owner == ConstantOwner::kStack) {
    for (const FittedPart& part : found.parts) {
      add(row_of(part.part).key, word_of(part.part, part.before), word_of(part.part, part.after));
    }
  }
  return text;
}

std::string provenance(const CalibrationAnswer& answer, ConstantOwner owner) {
  const std::string changes = changes_text(answer.found, owner);
  return fmt::format("; calibrated on {}, {}: {}; mean error of left-out rows {:.1f} %",
                     answer.inputs.of, utc_date(),
                     changes.empty() ? "no constant changed" : changes,
                     100 * answer.found.error_left_out());
}

CalibrationFacts facts_of(const CalibrationAnswer& answer) {
  const Calibration& found = answer.found;
  CalibrationFacts facts;
  facts.rows = static_cast<std::int64_t>(found.steps.size());
  facts.on = answer.inputs.of;
  facts.date = utc_date();
  facts.left_out_error = found.error_left_out();
  facts.host_spread = found.host_spread;
  facts.kernel_spread = found.kernel_spread;
  facts.network_spread = found.network_spread;
  return facts;
}

template <class T>
void round_time(T& time) {
  time = T(rounded(time.value()));
}

void round_constants(StackSpec& stack) {
  for (double* value : {&stack.uncalibrated_overhead, &stack.eager_traffic, &stack.flash_speed,
                        &stack.overlap_slowdown, &stack.tp_overlap, &stack.rank_jitter}) {
    *value = rounded(*value);
  }
  for (Seconds* time : times_of(stack.host)) round_time(*time);
}

void round_facts(CalibrationFacts& facts) {
  for (double* value :
       {&facts.left_out_error, &facts.host_spread, &facts.kernel_spread, &facts.network_spread}) {
    *value = rounded(*value);
  }
}

std::set<std::string> gpus_of(const std::vector<MeasuredStep>& steps) {
  std::set<std::string> profiles;
  for (const MeasuredStep& step : steps) profiles.insert(step.scenario.profile.name);
  return profiles;
}

Scenario owners_of(const CalibrationInputs& inputs) {
  Scenario scenario;
  scenario.stack = inputs.stack;
  scenario.cluster = inputs.cluster;
  return scenario;
}

}  // namespace

std::string file_names(const std::vector<std::string>& files) {
  return joined_text(files, ", ", [](const std::string& file) {
    return std::filesystem::path(file).filename().string();
  });
}

Result<CalibrationAnswer> calibrate_answer(const CalibrateRequest& request,
                                           const std::optional<OpenedLog>& first) {
  CalibrationAnswer answer;
  TPSIM_TRY(answer.inputs, calibration_inputs(request, first));
  answer.moves_stack = request.fits_stack();
  answer.moves_cluster = request.fits_cluster();
  CalibrationChoices choices;
  choices.stack = answer.moves_stack;
  choices.cluster = answer.moves_cluster;
  choices.threads = request.threads;
  choices.progress = request.progress;
  TPSIM_TRY(answer.found, calibrate(answer.inputs.steps, choices));
  return answer;
}

StackSpec calibrated_stack(const CalibrationAnswer& answer) {
  StackSpec stack = calibrated(owners_of(answer.inputs), answer.found, {}).stack;
  round_constants(stack);
  stack.name = calibrated_name(stack.name);
  stack.source += provenance(answer, ConstantOwner::kStack);
  stack.aliases.clear();
  stack.residual_spread = rounded(std::min(1.0, answer.found.spread));
  // The rows are of the user's program and GPUs.
  stack.spread_programs.clear();
  if (!stack.spread_gpus.empty()) {
    stack.spread_gpus =
        joined_text(gpus_of(answer.inputs.steps), ",", [](const auto& gpu) { return gpu; });
  }
  stack.calibrated = facts_of(answer);
  round_facts(stack.calibrated);
  return stack;
}

ClusterSpec calibrated_cluster(const CalibrationAnswer& answer) {
  ClusterSpec cluster = calibrated(owners_of(answer.inputs), answer.found, {}).cluster;
  for (double* value : {&cluster.intra_node.efficiency, &cluster.inter_node.efficiency,
                        &cluster.nic_collision_efficiency, &cluster.gpu_clock}) {
    *value = rounded(*value);
  }
  round_time(cluster.inter_node.latency);
  cluster.name = calibrated_name(cluster.name);
  cluster.source += provenance(answer, ConstantOwner::kCluster);
  cluster.aliases.clear();
  cluster.calibrated = facts_of(answer);
  round_facts(cluster.calibrated);
  return cluster;
}

Result<LinkAnswer> link_answer(const CalibrateRequest& request, const OpenedLog& first) {
  if (request.overrides.cluster.empty()) {
    return field_error(Field::kCluster, "the measured cluster is missing",
                       "give a name of tpsim list clusters, or a cluster file");
  }
  if (request.saves_stack) {
    return field_error(Field::kSaveStack, "cannot be used here",
                       "nccl-tests calibrate the links of a cluster: use --save-cluster");
  }
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  LinkAnswer answer;
  TPSIM_TRY(answer.cluster, catalogue.load_cluster(request.overrides.cluster));
  TPSIM_TRY(const Profile profile, catalogue.load_profile(answer.cluster.profile));
  std::vector<NcclTest> tests;
  for (const std::string& file : request.measured) {
    TPSIM_TRY(const OpenedLog opened, open_or_reuse(first, file));
    TPSIM_TRY(const std::vector<NcclTest> read, parse_nccl_tests(opened.text, file));
    for (const NcclTest& test : read) answer.messages += std::ssize(test.messages);
    tests.insert(tests.end(), read.begin(), read.end());
  }
  answer.files = file_names(request.measured);
  TPSIM_TRY(answer.link, fit_link(tests, answer.cluster, profile));
  return answer;
}

ClusterSpec calibrated_cluster(const LinkAnswer& answer) {
  ClusterSpec cluster = answer.cluster;
  LinkSpec& link = answer.link.between_nodes ? cluster.inter_node : cluster.intra_node;
  link.efficiency = rounded(answer.link.after.efficiency);
  link.latency = Seconds(rounded(answer.link.after.latency.value()));
  cluster.name = calibrated_name(cluster.name);
  cluster.aliases.clear();
  cluster.source += fmt::format(
      "; {}: calibrated on {} messages of {}, {}: efficiency {:.3g} to {:.3g}, latency {} to {}",
      answer.key(), answer.messages, answer.files, utc_date(), answer.link.before.efficiency,
      link.efficiency, to_string(answer.link.before.latency), to_string(link.latency));
  return cluster;
}

}  // namespace tpsim::app
