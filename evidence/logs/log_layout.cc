#include "evidence/logs/log_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/checked_product.h"
#include "core/base/text.h"
#include "evidence/logs/log_formats.h"
#include "lowering/passes/shard_groups.h"

namespace tpsim {
namespace {

std::int64_t degree_after(std::string_view line, std::string_view label) {
  return whole(number_after(line, label));
}

// Reads Megatron's world size and degrees. BigScience's fork writes "data-parallel-size" instead of
// "data-parallel size".
bool read_world_size(std::string_view line, TrainingLog& log) {
  const auto gpus = number_after(line, "using world size:");
  if (!gpus) return false;
  log.program = LogProgram::kMegatron;
  log.layout.gpus = whole(gpus);
  log.layout.dp = std::max(degree_after(line, "data-parallel size:"),
                           degree_after(line, "data-parallel-size:"));
  log.layout.tp = degree_after(line, "tensor-model-parallel size:");
  log.layout.pp = degree_after(line, "pipeline-model-parallel size:");
  // A later label, "hierarchical context-parallel sizes:", has a different meaning.
  log.layout.cp = degree_after(line, "context-parallel size:");
  return true;
}

// Sets torchtitan's degrees, and derives dp and the number of GPUs. Keeps the recompute mode,
// because another rank may already have printed it.
void set_layout(TrainingLog& log, LoggedLayout layout) {
  layout.dp = checked_product({layout.dp_replicate, layout.dp_shard}).value_or(0);
  layout.gpus = checked_product({layout.tp, layout.pp, layout.cp, layout.dp}).value_or(0);
  layout.recompute = log.layout.recompute;
  log.layout = std::move(layout);
  log.program = LogProgram::kTorchTitan;
}

// Reads "pp=1, dp_replicate=1, dp_shard=32, cp=1, tp=2, ep=1, etp=1"; some releases print fewer.
bool read_mesh(std::string_view line, TrainingLog& log) {
  constexpr std::string_view kHead = "device mesh with parallelism:";
  const std::size_t at = line.find(kHead);
  if (at == std::string_view::npos) return false;
  const std::string_view rest = line.substr(at + kHead.size());
  set_layout(log, {.tp = degree_after(rest, " tp="),
                   .pp = degree_after(rest, " pp="),
                   .cp = degree_after(rest, " cp="),
                   .ep = degree_after(rest, " ep="),
                   .dp_shard = degree_after(rest, " dp_shard="),
                   .dp_replicate = degree_after(rest, " dp_replicate=")});
  return true;
}

// Returns the items between the first "[" and "]", and removes them from the text.
std::vector<std::string_view> bracketed_items(std::string_view& text) {
  std::vector<std::string_view> items;
  cut_off(text, "[");
  std::string_view list = cut_off(text, "]");
  while (!list.empty()) {
    std::string_view item = trimmed(cut_off(list, ","));
    if (item.size() > 1 && item.front() == '\'') item = item.substr(1, item.size() - 2);
    items.push_back(item);
  }
  return items;
}

// Reads "3-D device mesh with ['pp', 'dp_shard', 'tp'], [2, 4, 2]". Dimensions of size 1 may be
// missing. False for meshes of other programs, which have other names.
bool read_named_mesh(std::string_view line, TrainingLog& log) {
  constexpr std::string_view kHead = "-D device mesh with [";
  const std::size_t at = line.find(kHead);
  if (at == std::string_view::npos) return false;
  std::string_view rest = line.substr(at + kHead.size() - 1);
  const std::vector<std::string_view> names = bracketed_items(rest), sizes = bracketed_items(rest);
  if (names.size() != sizes.size()) return false;
  LoggedLayout layout{.tp = 1, .pp = 1, .cp = 1, .dp_shard = 1, .dp_replicate = 1};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto size = logged_number(sizes[i]);
    if (!size || *size < 1) return false;
    // "dp" is the FSDP dimension. Expert parallelism uses a part of this dimension, so its degree
    // is unknown.
    std::int64_t* const degree = names[i] == "tp"             ? &layout.tp
                                 : names[i] == "pp"           ? &layout.pp
                                 : names[i] == "cp"           ? &layout.cp
                                 : names[i] == "dp_replicate" ? &layout.dp_replicate
                                 : names[i] == "dp" || names[i].starts_with("dp_shard")
                                     ? &layout.dp_shard
                                     : nullptr;
    if (degree == nullptr) return false;
    *degree = checked_product({*degree, whole(size)}).value_or(0);
  }
  set_layout(log, std::move(layout));
  return true;
}

// Reads "Applied full activation checkpointing to the model", "Applied FullAC ...". Without
// checkpointing torchtitan prints only "Applied FSDP to the model", which sets "none".
bool read_checkpointing(std::string_view line, TrainingLog& log) {
  constexpr std::string_view kApplied = "Applied ";
  const std::size_t at = line.find(kApplied);
  if (at == std::string_view::npos || !line.ends_with(" to the model")) return false;
  std::string_view rest = line.substr(at + kApplied.size());
  std::string mode = in_lower_case(std::string(cut_off(rest, " ")));
  if (rest.starts_with("activation checkpointing")) {
    if (mode.ends_with("ac")) mode.resize(mode.size() - 2);
    log.layout.recompute = mode;
    return true;
  }
  if (mode != "fsdp" && mode != "hsdp" && mode != "ddp") return false;
  if (log.layout.recompute.empty()) log.layout.recompute = "none";
  return true;
}

// Returns torchtitan's name of the plan's recompute mode.
std::string_view checkpointing_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::kNone: return "none";
    case Recompute::kFull: return "full";
    case Recompute::kSelective:
    case Recompute::kBlocks:
    case Recompute::kOps: break;
  }
  return "selective";
}

// Whether plans can express this mode. Other modes, such as memory_budget, are not compared.
bool is_of_a_plan(std::string_view checkpointing) {
  return checkpointing == "none" || checkpointing == "full" || checkpointing == "selective";
}

bool is_other(std::int64_t ran, std::int64_t planned) { return ran != 0 && ran != planned; }

// Returns the layout that a log of the plan would state.
LoggedLayout planned_layout(const Scenario& scenario, const Plan& plan) {
  const ParallelDegrees& d = plan.degrees;
  LoggedLayout layout{
      .gpus = gpu_count(plan), .tp = d.tp, .pp = d.pp, .dp = d.dp, .cp = d.cp, .ep = d.ep};
  layout.dp_shard = plan.zero < 2 ? 1 : shard_ranks(scenario, plan) / d.cp;
  layout.dp_replicate = d.dp / std::max<std::int64_t>(1, layout.dp_shard);
  layout.recompute = checkpointing_of(plan.recompute);
  return layout;
}

// Formats the degrees of `layout` that `ran`, the log's layout, states: "tp 2 pp 1 dp 32 (dp_shard
// 32, dp_replicate 1) on 64 GPUs, activation checkpointing selective".
std::string layout_text(const LoggedLayout& layout, const LoggedLayout& ran) {
  std::string text = fmt::format("tp {} pp {} dp {}", layout.tp, layout.pp, layout.dp);
  if (layout.cp > 1) text += fmt::format(" cp {}", layout.cp);
  if (layout.ep > 1) text += fmt::format(" ep {}", layout.ep);
  if (ran.dp_shard > 0) {
    text += fmt::format(" (dp_shard {}, dp_replicate {})", layout.dp_shard, layout.dp_replicate);
  }
  text += fmt::format(" on {} GPUs", layout.gpus);
  if (is_of_a_plan(ran.recompute)) {
    text += fmt::format(", activation checkpointing {}", layout.recompute);
  }
  return text;
}

}  // namespace

bool read_layout(std::string_view line, TrainingLog& log) {
  line = trimmed(line);
  return read_world_size(line, log) || read_mesh(line, log) || read_named_mesh(line, log) ||
         read_checkpointing(line, log);
}

Status check_layout(const Scenario& scenario, const Plan& plan, const LoggedLayout& logged) {
  const LoggedLayout planned = planned_layout(scenario, plan);
  const bool same_degrees = !is_other(logged.gpus, planned.gpus) &&
                            !is_other(logged.tp, planned.tp) && !is_other(logged.pp, planned.pp) &&
                            !is_other(logged.dp, planned.dp) && !is_other(logged.cp, planned.cp) &&
                            !is_other(logged.ep, planned.ep) &&
                            !is_other(logged.dp_shard, planned.dp_shard) &&
                            !is_other(logged.dp_replicate, planned.dp_replicate);
  const bool same_recompute =
      !is_of_a_plan(logged.recompute) || logged.recompute == planned.recompute;
  if (same_degrees && same_recompute) return Ok{};
  return bad_input(fmt::format("the layout in the log is {}, but the plan's is {}",
                               layout_text(logged, logged), layout_text(planned, logged)),
                   "", "give the plan of this run");
}

}  // namespace tpsim
