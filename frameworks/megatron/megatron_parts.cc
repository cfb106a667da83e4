// Reads Megatron-Core's options for four software parts: Muon, expert buffers of fixed size,
// offloaded activations, and weights that several multi-token prediction layers share. Rules:
// megatron/core/transformer/transformer_config.py and optimizer/optimizer_config.py of d98e8a6.
#include <fmt/format.h>

#include <cmath>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "frameworks/launch/launch_command.h"

namespace tpsim {
namespace {

using Options = std::vector<LaunchOption>;

// Removes the option and returns its value; empty if it is absent.
std::string taken_value(Options& options, std::string_view name) {
  const LaunchOption* const found = find_option(options, name);
  if (found == nullptr) return "";
  std::string value = found->value;
  drop_option(options, name);
  return value;
}

bool taken_switch(Options& options, std::string_view name) {
  const LaunchOption* const found = find_option(options, name);
  const bool is_on = found != nullptr && !matches_any(found->value, "false False 0");
  drop_option(options, name);
  return is_on;
}

// Reads the options of Muon. Supported are five Newton-Schulz iterations on each tensor-parallel
// rank's shard of a matrix.
Status take_muon(Options& options, PartValues& parts) {
  const std::string mode = taken_value(options, "--muon-tp-mode");
  const std::string steps = taken_value(options, "--muon-num-ns-steps");
  const bool is_split = taken_switch(options, "--use-layer-wise-distributed-optimizer");
  const LaunchOption* const optimizer = find_option(options, "--optimizer");
  if (optimizer == nullptr || !matches_any(optimizer->value, "muon dist_muon")) return Ok{};
  const bool has_owners = is_split || optimizer->value == "dist_muon";
  const LaunchOption* const tensor = find_option(options, "--tensor-model-parallel-size");
  const bool is_cut = tensor != nullptr && tensor->value != "1";
  if (is_cut && mode != "blockwise") {
    return bad_input(fmt::format("Muon with --muon-tp-mode {} is not modelled",
                                 mode.empty() ? "duplicated" : mode),
                     "", "tpsim models --muon-tp-mode blockwise, or tensor-parallel size 1");
  }
  if (!steps.empty() && steps != "5") {
    return bad_input(fmt::format("Muon with {} Newton-Schulz iterations is not modelled", steps),
                     "", "tpsim models five iterations only");
  }
  drop_option(options, "--optimizer");
  parts[StackPart::kOptimizerKind] = static_cast<std::int64_t>(OptimizerKind::kMuon);
  // Muon with distributed owners: gradients are all-reduced, then each rank updates the matrices
  // that it owns and sends them to the others.
  if (has_owners && !has_option(options, "--use-distributed-optimizer")) {
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
  constexpr const char* kCapacity = "--moe-expert-rank-capacity-factor";
  constexpr const char* kStash = "--moe-paged-stash-buffer-size-factor-cuda";
  const std::string capacity = taken_value(options, kCapacity);
  const bool stashes = taken_switch(options, "--moe-paged-stash");
  std::string stash = taken_value(options, kStash);
  if (capacity.empty()) return Ok{};
  TPSIM_TRY(parts[StackPart::kExpertCapacity], thousandths(capacity, kCapacity));
  if (!stashes) return Ok{};
  if (stash.empty()) stash = "1.1";  // Megatron's default
  TPSIM_TRY(parts[StackPart::kExpertStash], thousandths(stash, kStash));
  return Ok{};
}

Status take_offloaded_layers(Options& options, PartValues& parts) {
  const std::string layers = taken_value(options, "--cpu-offloading-num-layers");
  if (!taken_switch(options, "--cpu-offloading")) return Ok{};
  const auto count = parse_number<std::int64_t>(layers);
  if (!count || *count < 1 || *count > 1 << 12) {
    return bad_input(fmt::format("--cpu-offloading-num-layers is '{}'", layers), "",
                     "--cpu-offloading needs a number of layers, at least 1");
  }
  parts[StackPart::kOffloadLayers] = *count;
  return Ok{};
}

}  // namespace

Status take_mechanisms(std::vector<LaunchOption>& options, PartValues& parts) {
  TPSIM_TRY_STATUS(take_muon(options, parts));
  TPSIM_TRY_STATUS(take_expert_buffers(options, parts));
  return take_offloaded_layers(options, parts);
}

}  // namespace tpsim
