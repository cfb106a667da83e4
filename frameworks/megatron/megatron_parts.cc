// Writes and reads Megatron-Core's options for mechanisms that need several options: Muon, the
// loss, replicas of shards, expert buffers of fixed size, FSDP's dtypes, offloaded activations.
// Rules: megatron/core/transformer/transformer_config.py and optimizer/optimizer_config.py of
// d98e8a6.
#include <fmt/format.h>

#include <cmath>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/software/optimizer_kinds.h"
#include "frameworks/launch/launch_command.h"
#include "lowering/passes/shard_groups.h"

namespace tpsim {
namespace {

using Options = std::vector<LaunchOption>;

constexpr const char* kMuonTpMode = "--muon-tp-mode";
constexpr const char* kOffloadedLayers = "--cpu-offloading-num-layers";
constexpr const char* kCapacity = "--moe-expert-rank-capacity-factor";
constexpr const char* kOpFuser = "--use-transformer-engine-op-fuser";
constexpr const char* kPagedStash = "--moe-paged-stash";
constexpr const char* kStash = "--moe-paged-stash-buffer-size-factor-cuda";
constexpr const char* kFsdpGradients = "--megatron-fsdp-main-grads-dtype";
constexpr const char* kFsdpReduction = "--megatron-fsdp-grad-comm-dtype";
constexpr const char* kLossFusion = "--cross-entropy-loss-fusion";
constexpr const char* kLossFusionBy = "--cross-entropy-fusion-impl";
constexpr const char* kShardInstances = "--num-distributed-optimizer-instances";

// Removes the option and returns its value; empty if it is absent.
std::string taken_value(Options& options, std::string_view name) {
  std::string value = setting_value(options, name);
  drop_settings(options, name);
  return value;
}

bool taken_switch(Options& options, std::string_view name) {
  const bool is_on = !matches_any(setting_value(options, name, "false"), "false False 0");
  drop_settings(options, name);
  return is_on;
}

// Reads SGD, and Muon with five Newton-Schulz iterations.
Status take_optimizer(Options& options, PartValues& parts) {
  const std::string mode = taken_value(options, kMuonTpMode);
  const std::string steps = taken_value(options, "--muon-num-ns-steps");
  const bool is_split = taken_switch(options, "--use-layer-wise-distributed-optimizer");
  if (!mode.empty()) {
    TPSIM_TRY(parts[StackPart::kMuonTpMode], parse_value(row_of(StackPart::kMuonTpMode), mode));
  }
  const std::string optimizer = setting_value(options, "--optimizer");
  const OptimizerRow* const row = optimizer_called(optimizer);
  if (row != nullptr && row->kind == OptimizerKind::kSgd) {
    const auto momentum = parse_number<double>(setting_value(options, "--sgd-momentum", "0.9"));
    drop_settings(options, "--sgd-momentum");
    drop_settings(options, "--optimizer");
    parts[StackPart::kOptimizerKind] = static_cast<std::int64_t>(
        momentum != 0.0 ? OptimizerKind::kSgdMomentum : OptimizerKind::kSgd);
    return Ok{};
  }
  if (row != nullptr && matches_any(name_of(row->kind), "adafactor lion")) {  // of forks
    drop_settings(options, "--optimizer");
    parts[StackPart::kOptimizerKind] = static_cast<std::int64_t>(row->kind);
  }
  if (row == nullptr || row->kind != OptimizerKind::kMuon) return Ok{};
  const bool has_owners = is_split || optimizer == "dist_muon";
  if (!steps.empty() && steps != "5") {
    return bad_input(fmt::format("Muon with {} Newton-Schulz iterations is not modelled", steps),
                     "", "tpsim models five iterations only");
  }
  drop_settings(options, "--optimizer");
  parts[StackPart::kOptimizerKind] = static_cast<std::int64_t>(row->kind);
  // Muon with distributed owners: gradients are all-reduced, then each rank updates the matrices
  // that it owns and sends them to the others.
  if (has_owners && !has_key(options, "--use-distributed-optimizer")) {
    options.push_back({"--use-distributed-optimizer", ""});
    parts[StackPart::kDataParallelSync] = static_cast<std::int64_t>(DataParallelSync::kAllReduce);
  }
  return Ok{};
}

// Parses a factor of at least 1 and returns it in thousandths.
Result<std::int64_t> thousandths(const std::string& value, std::string_view option) {
  const auto factor = parse_number<double>(value);
  if (!factor || !(*factor >= 1) || *factor > 1e6) {
    return bad_input(fmt::format("{} is {}, which is not modelled", option, value), "",
                     "tpsim models factors of at least 1");
  }
  return std::llround(*factor * 1000);
}

Status take_expert_buffers(Options& options, PartValues& parts) {
  const std::string capacity = taken_value(options, kCapacity);
  const bool stashes = taken_switch(options, kPagedStash);
  drop_settings(options, kOpFuser);
  std::string stash = taken_value(options, kStash);
  if (capacity.empty()) return Ok{};
  TPSIM_TRY(parts[StackPart::kExpertCapacity], thousandths(capacity, kCapacity));
  if (!stashes) return Ok{};
  if (stash.empty()) stash = "1.1";  // Megatron's default
  TPSIM_TRY(parts[StackPart::kExpertStash], thousandths(stash, kStash));
  return Ok{};
}

// Reads the dtypes of Megatron-FSDP's gradients. By default both are those of the weights.
void take_fsdp_dtypes(Options& options, PartValues& parts) {
  const std::string gradients = taken_value(options, kFsdpGradients);
  const std::string reduced = taken_value(options, kFsdpReduction);
  constexpr const char* kWide = "--accumulate-allreduce-grads-in-fp32";
  if (gradients == "fp32" && !has_key(options, kWide)) options.push_back({kWide, ""});
  if (!has_key(options, "--use-megatron-fsdp") || gradients.empty()) return;
  const bool is_wide = reduced == "fp32" || reduced.empty() || reduced == "auto";
  parts[StackPart::kReduceDtype] =
      static_cast<std::int64_t>(is_wide ? ReduceDtype::kAsAddedUp : ReduceDtype::kAsComputed);
}

Status take_offloaded_layers(Options& options, PartValues& parts) {
  const std::string layers = taken_value(options, kOffloadedLayers);
  if (!taken_switch(options, "--cpu-offloading")) return Ok{};
  const auto count = parse_number<std::int64_t>(layers);
  if (!count || *count < 1 || *count > 1 << 12) {
    return bad_input(fmt::format("--cpu-offloading-num-layers is '{}'", layers), "",
                     "--cpu-offloading needs a number of layers, at least 1");
  }
  parts[StackPart::kOffloadLayers] = *count;
  return Ok{};
}

void add_optimizer(const PlanFile& file, LaunchOptions& out) {
  const auto stated = [&](StackPart part) { return file.parts.find(part); };
  const auto kind = stated(StackPart::kOptimizerKind), mode = stated(StackPart::kMuonTpMode);
  const auto own =
      kind == file.parts.end() ? OptimizerKind::kAdamW : static_cast<OptimizerKind>(kind->second);
  if (own == OptimizerKind::kMuon) out.add("--optimizer", std::string(name_of(own)));
  if (own == OptimizerKind::kSgdMomentum) {
    out.add("--optimizer", std::string(name_of(OptimizerKind::kSgd)));
  }
  if (mode == file.parts.end()) return;
  out.add(kMuonTpMode, text_of(row_of(StackPart::kMuonTpMode), mode->second));
}

// Megatron's own fused kernels. Transformer Engine's ("te") are another loss head, and the checks
// of d98e8a6 refuse them (training/arguments.py:1697).
void add_loss(LaunchStack stack, LossHead head, LaunchOptions& out) {
  if (head == LossHead::kVocabParallelFused) {
    out.add(kLossFusion);
    out.add(kLossFusionBy, std::string("native"));
  } else if (stack == LaunchStack::kNemo && head == LossHead::kVocabParallel) {
    out.add(kLossFusion, std::string("false"));  // recipes switch the fusion on
  }
}

std::string factor_of(std::int64_t value) {
  return fmt::format("{}", static_cast<double>(value) / static_cast<double>(kBalancedLoad));
}

// Buffers of a fixed size need the grouped GEMMs of Transformer Engine's operation fuser
// (transformer_config.py:1873).
void add_expert_buffers(const SoftwareParts& parts, LaunchOptions& out) {
  if (parts.expert_capacity == kAnyTokens) return;
  out.add(kCapacity, factor_of(parts.expert_capacity));
  out.add(kOpFuser);
  if (parts.expert_stash == kNoStash) return;
  out.add(kPagedStash);
  out.add(kStash, factor_of(parts.expert_stash));
}

void add_fsdp_dtypes(const Plan& plan, ReduceDtype reduced, LaunchOptions& out) {
  if (plan.zero < 2 || plan.dtype == DType::kFloat32) return;
  out.add(kFsdpGradients, std::string(name_of(plan.gradient_dtype)));
  const bool is_wide = reduced == ReduceDtype::kAsAddedUp;
  out.add(kFsdpReduction, std::string(name_of(is_wide ? plan.gradient_dtype : plan.dtype)));
}

void add_offloaded_layers(std::int64_t layers, LaunchOptions& out) {
  if (layers == 0) return;
  out.add("--cpu-offloading");
  out.add(kOffloadedLayers, layers);
}

}  // namespace

void add_mechanisms(LaunchStack stack, const PlanFile& file, const StackSpec& software,
                    LaunchOptions& out) {
  add_optimizer(file, out);
  add_loss(stack, software.parts.loss_head, out);
  add_offloaded_layers(software.parts.offload_layers, out);
  if (has_experts(file.model)) add_expert_buffers(software.parts, out);
  if (stack == LaunchStack::kMegatronLm) {
    add_fsdp_dtypes(file.plan, software.training.reduce_dtype, out);
  }
}

void add_shard_instances(const Plan& plan, std::int64_t node_gpus, std::int64_t shard_group,
                         LaunchOptions& out) {
  const std::int64_t instances = data_ranks(plan) / shard_ranks(plan, node_gpus, shard_group);
  if (instances > 1) out.add(kShardInstances, instances);
}

PartValues loss_parts(const std::vector<LaunchOption>& options) {
  const bool is_fused = has_key(options, kLossFusion);
  if (is_fused && setting_value(options, kLossFusionBy) == "te") return {};
  const LossHead head = is_fused ? LossHead::kVocabParallelFused : LossHead::kVocabParallel;
  return {{StackPart::kLossHead, static_cast<std::int64_t>(head)}};
}

PartValues shard_parts(const std::vector<LaunchOption>& options, const Plan& plan,
                       const LaunchSize& size) {
  const std::int64_t instances = setting_number(options, kShardInstances);
  if (instances <= 1 || plan.zero == 0) return {};
  const std::int64_t group = data_ranks(plan) / instances * plan.degrees.tp;
  return {{StackPart::kShardGroup, shard_group_of(group, size)}};
}

Status take_mechanisms(std::vector<LaunchOption>& options, PartValues& parts) {
  TPSIM_TRY_STATUS(take_optimizer(options, parts));
  TPSIM_TRY_STATUS(take_expert_buffers(options, parts));
  take_fsdp_dtypes(options, parts);
  if (!loss_parts(options).empty()) {  // read by parts_of_megatron()
    drop_settings(options, kLossFusion);
    drop_settings(options, kLossFusionBy);
  }
  drop_settings(options, kShardInstances);
  return take_offloaded_layers(options, parts);
}

}  // namespace tpsim
