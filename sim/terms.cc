#include "sim/terms.h"

#include <fmt/format.h>

#include "sim/normal.h"

namespace tpsim {
namespace {

constexpr std::array<std::string_view, kStepTermCount> kNames = {"matmul",
                                                                 "attention",
                                                                 "elementwise",
                                                                 "tensor_communication",
                                                                 "zero_communication",
                                                                 "context_communication",
                                                                 "expert_communication",
                                                                 "host_wait",
                                                                 "pipeline_transfer",
                                                                 "pipeline_bubble",
                                                                 "gradient_reduction",
                                                                 "tied_embedding",
                                                                 "gradient_clipping",
                                                                 "optimizer",
                                                                 "weight_gather",
                                                                 "host_step",
                                                                 "stragglers"};

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
  const GroupPlacement p = place_group(plan, group, s.cluster.gpus_per_node);
  return fmt::format("{} ranks on {} node{}, {} such groups share a node's {} NICs", p.ranks,
                     p.nodes, p.nodes == 1 ? "" : "s", p.groups_per_node, s.cluster.nics_per_node);
}

Term optimizer_term(const Scenario& s, const Plan& plan) {
  Term term;
  term.formula = "AdamW over the rank's share + clearing the gradients, slowest stage";
  term.inputs = fmt::format("ZeRO {} over dp = {}{}", plan.zero, plan.degrees.dp,
                            plan.degrees.cp > 1 ? fmt::format(" x cp = {}", plan.degrees.cp) : "");
  term.source = device_source(s);
  if (plan.offload == Offload::kNone) return term;
  const HostSpec& host = s.cluster.host;
  term.formula = "gradients to the host + AdamW there + weights back + clearing, slowest stage";
  term.inputs += fmt::format("; link {} at {:.0f} %, host memory {} at {:.0f} % for {} GPUs",
                             to_string(host.link), 100 * host.link_efficiency,
                             to_string(host.memory_bandwidth), 100 * host.memory_efficiency,
                             s.cluster.gpus_per_node);
  term.source = host.source;
  return term;
}

// The ranks that hold the same weights, and of experts those that hold the same ones.
std::string data_text(const Plan& plan, const Scenario& s) {
  const std::string text = group_text(plan, GroupKind::kData, s);
  if (plan.degrees.ep == 1) return text;
  return text + "; experts: " + group_text(plan, GroupKind::kExpertData, s);
}

// Formula and inputs of the work inside the pipeline.
Term work_term(const Scenario& s, const Plan& plan, StepTerm term, std::int64_t stage) {
  const std::int64_t m = micro_batches(plan);
  std::int64_t blocks = 0;
  for (std::int64_t v = 0; v < plan.virtual_stages; ++v) {
    blocks += plan.stage_layers[static_cast<std::size_t>(v * plan.degrees.pp + stage)];
  }
  Term result;
  result.formula = "m x sum over the stage's ops, forward + backward";
  result.inputs = fmt::format(
      "m = {} micro-batches of {} sequences, {} blocks on stage {}, "
      "{} recompute",
      m, plan.micro_batch, blocks, stage, recompute_text(plan));
  result.source = device_source(s);
  if (term == StepTerm::kTensorCommunication) {
    result.formula = "m x sum over the tensor group's collectives";
    result.inputs += "; " + group_text(plan, GroupKind::kTensor, s);
    result.source = cluster_source(s);
  } else if (term == StepTerm::kZeroCommunication) {
    result.formula = "m x (gather weights twice + reduce gradients) per block, ZeRO 2 and 3";
    result.inputs = fmt::format("ZeRO {}; {}", plan.zero, data_text(plan, s));
    result.source = cluster_source(s);
  } else if (term == StepTerm::kContextCommunication) {
    result.formula = "m x (gather keys and values twice + reduce their gradients) per block";
    result.inputs =
        fmt::format("cp = {}; {}", plan.degrees.cp, group_text(plan, GroupKind::kContext, s));
    result.source = cluster_source(s);
  } else if (term == StepTerm::kExpertCommunication) {
    const ExpertShape& experts = s.model.experts;
    result.formula = "m x (two all-to-alls forward, two backward) per block";
    result.inputs = has_experts(s.model)
                        ? fmt::format("{} of {} experts a token, capacity factor {}, ep = {}; {}",
                                      experts.per_token, experts.count, experts.capacity_factor,
                                      plan.degrees.ep, group_text(plan, GroupKind::kExpert, s))
                        : "no experts";
    result.source = cluster_source(s);
  }
  return result;
}

Term text_of(LayerPricer& pricer, const Plan& plan, const StepCost& cost, StepTerm term) {
  const Scenario& s = pricer.scenario();
  const ParallelDegrees& d = plan.degrees;
  const std::int64_t m = micro_batches(plan);
  switch (term) {
    case StepTerm::kHostWait:
      return {{},
              {},
              "m x (max-plus length of the host and device queues - device time)",
              fmt::format("{} per op, {} per collective, {} + {} per block, {} per micro-batch",
                          to_string(s.stack.host.per_op), to_string(s.stack.host.per_collective),
                          to_string(s.stack.host.per_block_forward),
                          to_string(s.stack.host.per_block_backward),
                          to_string(s.stack.host.per_micro_batch)),
              stack_source(s)};
    case StepTerm::kTransfer: {
      const TransferCost t = d.pp > 1 ? pricer.transfer(plan) : TransferCost{};
      return {{},
              {},
              "m x (sends, as far as the sender waits, + gathers of received parts)",
              fmt::format("{} of activation, {} on the wire, {} to gather",
                          to_string(Bytes(t.bytes)), to_string(t.wire), to_string(t.gather)),
              cluster_source(s)};
    }
    case StepTerm::kBubble:
      return {{},
              {},
              "time until all ranks meet - the busiest stage's own work (event simulation)",
              fmt::format("p = {}, m = {}, v = {}, {} schedule; equal stages would idle "
                          "(p - 1)/v slots of m + (p - 1)/v",
                          d.pp, m, plan.virtual_stages, name_of(plan.schedule)),
              "event-exact simulation of the schedule"};
    case StepTerm::kGradientReduction:
      return {{},
              {},
              "all-reduce or reduce-scatter of the stage's gradients, less what hides it",
              fmt::format("gradients in {}; {}; {}overlapped with backward",
                          name_of(plan.gradient_dtype), data_text(plan, s),
                          s.stack.training.overlap_gradient_reduction ? "" : "not "),
              cluster_source(s)};
    case StepTerm::kTiedEmbedding:
      return {{},
              {},
              "all-reduce of the word embeddings' gradient between first and last stage",
              group_text(plan, GroupKind::kEmbedding, s),
              cluster_source(s)};
    case StepTerm::kClipping:
      return {{},
              {},
              "sum of squares of the gradients + all-reduce of one number",
              fmt::format("{} ranks", gpu_count(plan)),
              device_source(s)};
    case StepTerm::kOptimizer: return optimizer_term(s, plan);
    case StepTerm::kWeightGather:
      return {{},
              {},
              "all-gather of the updated weights, less what hides it",
              data_text(plan, s),
              cluster_source(s)};
    case StepTerm::kHostStep:
      return {{}, {}, "once per step", to_string(s.stack.host.per_step), stack_source(s)};
    case StepTerm::kStragglers:
      return {{},
              {},
              "sigma x E[largest of N normals] x pipeline time",
              fmt::format("sigma = {:.2f} %, N = {}, E = {:.2f}", 100 * s.stack.rank_jitter,
                          gpu_count(plan), expected_maximum(gpu_count(plan))),
              stack_source(s)};
    default: return work_term(s, plan, term, cost.busiest_stage);
  }
}

}  // namespace

std::string_view name_of(StepTerm term) { return kNames[static_cast<std::size_t>(term)]; }

std::vector<Term> explained_terms(LayerPricer& pricer, const Plan& plan, const StepCost& cost) {
  std::vector<Term> terms;
  for (int i = 0; i < kStepTermCount; ++i) {
    const auto kind = static_cast<StepTerm>(i);
    Term term = text_of(pricer, plan, cost, kind);
    term.name = name_of(kind);
    term.time = cost.terms[static_cast<std::size_t>(i)];
    terms.push_back(std::move(term));
  }
  return terms;
}

}  // namespace tpsim
