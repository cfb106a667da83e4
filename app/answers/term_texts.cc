#include "app/answers/term_texts.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/normal.h"
#include "core/base/numbers.h"
#include "core/plan/plan_settings.h"
#include "core/scenario/node_map.h"
#include "core/software/cpu_optimizers.h"
#include "costs/scan_model.h"
#include "lowering/passes/context_exchange.h"
#include "lowering/passes/expert_load.h"
#include "lowering/passes/quantization.h"
#include "lowering/passes/step_habits.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim::app {
namespace {

std::string device_source(const Scenario& s) {
  return fmt::format("profile {} ({}); {}", s.profile.name, name_of(s.profile.provenance),
                     s.profile.source);
}
std::string cluster_source(const Scenario& s) {
  return fmt::format("profile {} inside a node, cluster {} between nodes", s.profile.name,
                     s.cluster.name);
}
std::string stack_source(const Scenario& s) {
  return fmt::format("stack {}; {}", s.stack.name, s.stack.source);
}

std::string group_text(const Plan& plan, GroupKind group, const Scenario& s) {
  const GroupPlacement p = place_group(plan, group, node_map(s, plan));
  if (p.nodes == 1) return fmt::format("{} ranks inside a node", p.ranks);
  // Only NICs near the GPUs that the job uses are counted.
  const std::int64_t used = node_size(s.cluster, gpu_count(plan));
  const std::int64_t nics =
      p.node.gpus > 0 ? p.node.nics : s.cluster.nics_per_node * used / s.cluster.gpus_per_node;
  return fmt::format("{} ranks on {} nodes; {} such groups share {} NICs per node", p.ranks,
                     p.nodes, p.groups_per_node, std::max<std::int64_t>(1, nics));
}

// Returns the fine-tuning of a run, to follow other inputs; empty if all weights are trained.
std::string finetune_text(const Scenario& s) {
  const Finetune& tuned = s.stack.training.finetune;
  if (!tuned.freezes()) return "";
  if (!tuned.adapts) {
    return "; no weight gradients of frozen weights, and no backward below the trained ones";
  }
  const bool is_fused = tuned.kernel == LoraKernel::kFused || s.stack.parts.compile;
  std::string text = fmt::format(
      "; adapters of rank {} on {}: 2 GEMMs forward and 4 backward each{}; no weight gradients of "
      "frozen weights",
      tuned.rank, text_of(row_of(StackPart::kLoraTargets), tuned.targets),
      is_fused ? "" : ", with peft's passes over inputs and outputs");
  if (tuned.quantizes_base()) {
    text +=
        fmt::format("; frozen weights dequantized from {} before each GEMM", name_of(tuned.base));
  }
  return text;
}

// Returns the work of an optimizer other than AdamW, to follow other inputs.
std::string update_text(const OptimizerRow& optimizer, const Scenario& s, const Plan& plan) {
  if (optimizer.kind == OptimizerKind::kAdamW) return "";
  std::string text = fmt::format("; {}", optimizer.ops);
  const std::string_view collectives = optimizer.collectives[static_cast<std::size_t>(plan.zero)];
  if (has_replicas(plan) && !collectives.empty()) text += fmt::format("; {}", collectives);
  if (plan.degrees.tp > 1) {
    text += fmt::format("; matrices over tp: {}", muon_tp_mode(s.stack));
  }
  return text;
}

TermText optimizer_text(const Scenario& s, const Plan& plan) {
  const OptimizerRow& optimizer = optimizer_of(s.stack);
  const std::string shares =
      fmt::format("ZeRO {} over dp = {}{}", plan.zero, plan.degrees.dp,
                  plan.degrees.cp > 1 ? fmt::format(" x cp = {}", plan.degrees.cp) : "");
  if (!offloads_optimizer(plan)) {
    const char* cleared = overwrites_gradients(s.stack.training)
                              ? "zeroing the gradients that no GEMM overwrites"
                              : "zeroing the gradients";
    return {fmt::format("{} on the rank's shard + {}, slowest stage", optimizer.title, cleared),
            shares + update_text(optimizer, s, plan), device_source(s)};
  }
  const HostSpec& host = s.cluster.host;
  const CpuOptimizerRow& row = row_of(s.stack.parts.cpu_optimizer);
  return {
      fmt::format("gradients to the host + {} there + weights back + zeroing gradients, slowest "
                  "stage{}",
                  optimizer.title, row.overlaps_backward ? ", minus the last backward" : ""),
      fmt::format("{}; link {} at {:.0f} %, host memory {} at {:.0f} % for {} GPUs, of which {} "
                  "reaches {:.0f} %",
                  shares, to_string(host.link), 100 * host.link_efficiency,
                  to_string(host.memory_bandwidth), 100 * host.memory_efficiency,
                  host_size(s.cluster), row.title, 100 * row.speed),
      host.source};
}

// Returns a text on the data-parallel group and, if different, the experts' data-parallel group.
std::string data_text(const Plan& plan, const Scenario& s) {
  std::string text = group_text(plan, GroupKind::kData, s);
  if (!folds_experts(plan)) return text;
  return text + "; experts: " + group_text(plan, GroupKind::kExpertData, s);
}

std::string work_inputs(const Plan& plan, std::int64_t stage) {
  std::int64_t blocks = 0;
  for (std::int64_t v = 0; v < plan.virtual_stages; ++v) {
    blocks += plan.stage_layers[static_cast<std::size_t>(v * plan.degrees.pp + stage)];
  }
  return fmt::format("m = {} micro-batch{} of {}, {} on stage {}, {} recompute",
                     count_text(micro_batches(plan)), micro_batches(plan) == 1 ? "" : "es",
                     counted_text(plan.micro_batch, "sequence"), counted_text(blocks, "block"),
                     stage, text_of(plan, Setting::kRecompute));
}

std::string expert_inputs(const Scenario& s, const Plan& plan) {
  const ExpertShape& experts = s.model.experts;
  if (!has_experts(s.model)) return "no experts";
  const std::string capacity =
      experts.dropless ? "dropless" : fmt::format("capacity factor {}", experts.capacity_factor);
  return fmt::format("{} of {} experts per token, {}, ep = {}, etp = {}; {}", experts.per_token,
                     experts.count, capacity, plan.degrees.ep, expert_tensor_ranks(plan),
                     group_text(plan, GroupKind::kExpert, s));
}

// Returns a description of the recipe's passes; empty for kNone.
std::string_view quantization_text(Precision recipe) {
  switch (recipe) {
    case Precision::kNone: return "";
    case Precision::kFp8:
      return "operands of linear layers quantized to fp8 with scales of earlier steps";
    case Precision::kFp8Current:
      return "operands of linear layers quantized to fp8 after an amax pass";
    case Precision::kFp8Block:
      return "operands of linear layers quantized to fp8 per block, in both orientations";
    case Precision::kMxFp8:
      return "operands of linear layers quantized to mxfp8 in both orientations";
    case Precision::kNvFp4:
      return "operands of linear layers quantized to nvfp4: amax pass, rows, columns after a "
             "Hadamard transform, stochastic rounding of gradients; weights in 16 x 16 blocks once "
             "a step";
  }
  return "";
}

std::string quantization_note(const Scenario& s, const Plan& plan, StepTerm term) {
  const std::string_view quantization = quantization_text(recipe_of(s.stack, plan));
  if (term != StepTerm::kElementwise || quantization.empty()) return "";
  return "; " + std::string(quantization);
}

std::string load_text(const Scenario& s, const Plan& plan) {
  return fmt::format(
      "the busiest of {} ranks gets {:.2f} x the mean number of tokens, expert load {}",
      plan.degrees.ep, busiest_load(s.stack, s.model, plan), load_text(s.stack));
}

}  // namespace

TermText term_text(const Scenario& scenario, const Plan& plan, const Prediction& predicted,
                   const TransferCost& transfer, StepTerm term) {
  const Scenario s = resolved(scenario);
  const std::int64_t busiest_stage = predicted.busiest_stage;
  const HostCost& host = s.stack.host;
  const ParallelDegrees& d = plan.degrees;
  switch (term) {
    case StepTerm::kMatmul:
    case StepTerm::kAttention:
    case StepTerm::kElementwise:
      return {"m x sum over the stage's ops, forward + backward",
              work_inputs(plan, busiest_stage) + quantization_note(s, plan, term) +
                  (term == StepTerm::kAttention ? "" : finetune_text(s)),
              device_source(s)};
    case StepTerm::kRecurrence:
      return {
          "m x sum over convolutions, scans and gates, forward + backward",
          fmt::format(
              "kernel times from bytes and FLOPs, not measured; their assumed error of {:.0f} % "
              "each widens the interval; {}",
              100 * kScanSpread, work_inputs(plan, busiest_stage)),
          device_source(s)};
    case StepTerm::kTensorCommunication:
      return {"m x sum over the tensor group's collectives",
              work_inputs(plan, busiest_stage) + "; " + group_text(plan, GroupKind::kTensor, s),
              cluster_source(s)};
    case StepTerm::kZeroCommunication:
      return {"m x (2 weight all-gathers + gradient reduction) per layer, ZeRO 2 and 3",
              fmt::format("ZeRO {}; {}", plan.zero, data_text(plan, s)), cluster_source(s)};
    case StepTerm::kContextCommunication:
      return {"m x (2 all-gathers of keys and values + reduction of their gradients) per layer",
              fmt::format("cp = {}, {}; {}", d.cp, cp_comm_type(s.stack),
                          group_text(plan, GroupKind::kContext, s)),
              cluster_source(s)};
    case StepTerm::kExpertCommunication:
      return {
          "m x (dispatch and combine, forward and backward) per layer, minus the overlapped part",
          expert_inputs(s, plan), cluster_source(s)};
    case StepTerm::kGroupedProducts:
      return {"m x sum over the expert GEMMs, forward + backward",
              expert_inputs(s, plan) + finetune_text(s), device_source(s)};
    case StepTerm::kPermute:
      return {"m x (router, permute and unpermute, forward and backward) per layer",
              expert_inputs(s, plan), device_source(s)};
    case StepTerm::kImbalance:
      return {"(max/mean tokens per EP rank - 1) x time of expert GEMMs and all-to-all",
              load_text(s, plan), stack_source(s)};
    case StepTerm::kHostWait:
      return {"m x time the GPU waits for kernel launches",
              fmt::format(
                  "{} per op in layers, {} per collective, {} + {} per layer, {} per micro-batch",
                  to_string(host.per_op + host.per_block_op), to_string(host.per_collective),
                  to_string(host.per_block_forward), to_string(host.per_block_backward),
                  to_string(host.per_micro_batch)),
              stack_source(s)};
    case StepTerm::kTransfer: {
      const TransferCost t = d.pp > 1 ? transfer : TransferCost{};
      const std::string call =
          host.per_transfer > Seconds()
              ? fmt::format(", {} of it for the call", to_string(host.per_transfer))
              : "";
      return {"m x (exposed sends + all-gathers of received slices)",
              fmt::format("{} of activations, {} to send{}, {} to all-gather",
                          to_string(Bytes(t.bytes)), to_string(t.wire), call, to_string(t.gather)),
              cluster_source(s)};
    }
    case StepTerm::kBubble:
      return {"pipeline makespan minus the slowest stage's compute (event simulation)",
              fmt::format("p = {}, m = {}, v = {}, {} schedule; with equal stages (p - 1)/v of m + "
                          "(p - 1)/v slots are idle{}",
                          d.pp, micro_batches(plan), plan.virtual_stages, name_of(plan.schedule),
                          splits_backward(plan.schedule)
                              ? ", or with a split backward (p - 1)(forward + dgrad - wgrad)"
                              : ""),
              "event-exact simulation of the schedule"};
    case StepTerm::kGradientReduction:
      return {
          "all-reduce or reduce-scatter of the stage's gradients, minus the part overlapped with "
          "compute",
          fmt::format("gradients in {}; {}; {}overlapped with backward",
                      name_of(plan.gradient_dtype), data_text(plan, s),
                      overlaps_reduction(s.stack) ? "" : "not "),
          cluster_source(s)};
    case StepTerm::kTiedEmbedding:
      return {"all-reduce of the word embeddings' gradient between first and last stage",
              group_text(plan, GroupKind::kEmbedding, s), cluster_source(s)};
    case StepTerm::kClipping:
      return {"sum of squares of the gradients + all-reduce of one number",
              fmt::format("{} ranks", gpu_count(plan)), device_source(s)};
    case StepTerm::kOptimizer: return optimizer_text(s, plan);
    case StepTerm::kWeightGather:
      return {"all-gather of the updated weights, minus the part overlapped with compute",
              data_text(plan, s), cluster_source(s)};
    case StepTerm::kHostStep: return {"once per step", to_string(host.per_step), stack_source(s)};
    case StepTerm::kStragglers:
      return {"sigma x E[largest of N normals] x pipeline time",
              fmt::format("sigma = {:.2f} %, N = {}, E = {:.2f}", 100 * s.stack.rank_jitter,
                          gpu_count(plan), expected_maximum(gpu_count(plan))),
              stack_source(s)};
    case StepTerm::kUncalibratedOverhead:
      return {"share x sum of all other terms",
              fmt::format("share = {:.1f} %: mean excess of measured steps over the other terms, "
                          "for software without calibration",
                          100 * s.stack.uncalibrated_overhead),
              stack_source(s)};
  }
  return {};
}

TermTexts term_texts(const Scenario& scenario, const PlannedRun& run) {
  TransferCost transfer;
  if (run.plan.degrees.pp > 1) transfer = LayerPricer(scenario).transfer(run.plan);
  TermTexts texts;
  for (const StepTerm term : kStepTerms) {
    texts[static_cast<std::size_t>(term)] =
        term_text(scenario, run.plan, run.predicted, transfer, term);
  }
  return texts;
}

}  // namespace tpsim::app
