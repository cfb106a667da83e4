// Cost of a layer for one micro-batch: prices the ops and collectives of its trace in order, as the
// scenario's software executes them.
#include <algorithm>
#include <utility>

#include "sim/layers/expert_prices.h"
#include "sim/layers/layer_pricer.h"
#include "sim/layers/low_precision.h"
#include "sim/layers/plain_kernels.h"
#include "sim/layers/recomputed_ops.h"

namespace tpsim {
namespace {

// Returns the CUDA graph scope that contains the layer's ops of a model part. Megatron-Core
// captures the GEMMs of shared experts with the router.
std::int64_t graph_scopes(ModelPart part, bool has_experts) {
  switch (part) {
    case ModelPart::kNorm:
    case ModelPart::kAttentionNorm:
    case ModelPart::kAttentionLinear:
    case ModelPart::kLatentUp:
    case ModelPart::kRotary:
    case ModelPart::kAttentionCore:
    case ModelPart::kResidual:
    case ModelPart::kBiasGradient: return bit(GraphScope::kAttention);
    case ModelPart::kRecurrentLinear:
    case ModelPart::kRecurrence: return bit(GraphScope::kMamba);
    case ModelPart::kMlpLinear:
    case ModelPart::kLatentExperts:
    case ModelPart::kActivation:
      return bit(has_experts ? GraphScope::kMoeRouter : GraphScope::kMlp);
    case ModelPart::kRouter: return bit(GraphScope::kMoeRouter);
    case ModelPart::kExperts:
    case ModelPart::kExpertActivation:
    case ModelPart::kPermute:
    case ModelPart::kDispatch: return bit(GraphScope::kMoe);
    default: return bit(GraphScope::kIteration);  // embedding, head and loss
  }
}

// Returns whether Transformer Engine launches the op, or its quantization, once per local expert.
bool is_grouped(const OpRecord& op) {
  const bool is_bias =
      op.key.kind == OpKind::kColumnBias || op.key.kind == OpKind::kColumnBiasGradient;
  return op.label.part == ModelPart::kExperts && !is_bias;
}

// A context-parallel attention: the gather of keys and values, the device time of the attention
// core, and in backward the reduction of the gradients of keys and values.
struct Ring {
  CollectiveRecord gather;
  std::optional<CollectiveRecord> gradients = {};
  Seconds attended = {};
};

}  // namespace

double LayerPricer::stack_factor(const OpRecord& op) const {
  const StackSpec& stack = scenario().stack;
  if (is_flash(op.key.kind)) {
    return 1 / (stack.flash_speed * ops().attention_speed(stack.parts.attention));
  }
  const bool as_traced =
      op.key.kind == OpKind::kMatmul || op.label.part == ModelPart::kGradientAccumulation;
  if (as_traced) return 1;
  // eager_traffic is the calibrated factor for passes that no software option describes. All passes
  // of the head are described.
  const bool at_head = op.label.part == ModelPart::kHead || op.label.part == ModelPart::kLoss;
  const double unnamed = at_head ? 1 : stack.eager_traffic;
  // The added unfused ops are mostly elementwise, even where the fused kernel is a reduction.
  const double added = plain_kernel(op, stack, scenario().model.activation_ops).traffic - 1;
  return unnamed * (1 + added * ops().streaming_cost(op.key.kind));
}

OpPrice LayerPricer::op_price(const OpRecord& op) {
  const PricedOp priced{op.key, op.flops, op.bytes, is_grouped_product(op)};
  const auto found = op_prices_.find(priced);
  if (found != op_prices_.end()) return found->second;
  if (priced.is_grouped && scenario().stack.parts.expert_kernel == ExpertKernel::kLooped) {
    OpRecord each = op;
    const auto experts = static_cast<double>(std::exchange(each.key.dims[0], 1));
    each.flops /= experts;
    each.bytes /= experts;
    OpPrice price = ops().price(each);
    price.time = experts * price.time;
    return op_prices_.emplace(priced, price).first->second;
  }
  return op_prices_.emplace(priced, ops().price(op)).first->second;
}

HostDeviceTime LayerPricer::price_op(const OpRecord& op, PhaseCost& phase) {
  if (is_left_to_dispatcher(op, scenario().stack)) return {};
  const OpPrice price = op_price(op);
  const PlainKernel kernel = plain_kernel(op, scenario().stack, scenario().model.activation_ops);
  const bool by_expert =
      is_grouped(op) && scenario().stack.parts.expert_kernel != ExpertKernel::kOneKernel;
  const std::int64_t launches = kernel.launches * (by_expert ? phase.experts : 1);
  const auto n = static_cast<double>(launches);
  Seconds time = stack_factor(op) * price.time;
  // Kernels over few elements are bound by latency, so many launches take at least their latencies.
  if (kernel.traffic == 1 && kernel.launches > 1) {
    time = std::max(time, (n - 1) * scenario().profile.model.kernel_latency);
  }
  const double load = waits_for_busiest(op.label) ? phase.load : 1;
  phase.work[work_term(op)] += time;
  phase.work[StepTerm::kImbalance] += (load - 1) * time;
  phase.by_source[price.source] += load * time;
  return repeat(launch(scenario(), issue_time(op.label.part, phase), (load / n) * time), launches);
}

HostDeviceTime LayerPricer::price_rounded(const std::vector<OpRecord>& ops, PhaseCost& phase) {
  HostDeviceTime time;
  for (const OpRecord& op : ops) time = then(time, price_op(op, phase));
  return time;
}

// Returns the host time of a launch: zero if a CUDA graph replays the kernel. Autograd's engine
// adds gradients without Python, and one kernel has the weights of all experts in one tensor.
Seconds LayerPricer::issue_time(ModelPart part, const PhaseCost& phase) const {
  const std::int64_t scopes = graph_scopes(part, has_experts(scenario().model));
  const bool is_replayed = holds(scenario().stack.parts.cuda_graphs, scopes);
  if (is_replayed) return Seconds();
  const HostCost& host = scenario().stack.host;
  if (part != ModelPart::kGradientAccumulation) return host.per_op + host.per_block_op;
  const bool is_stacked = scenario().stack.parts.expert_kernel == ExpertKernel::kOneKernel;
  return host.per_op / (is_stacked ? static_cast<double>(phase.experts) : 1);
}

double LayerPricer::load_of(const Plan& plan) {
  const auto [place, is_new] = loads_.try_emplace(plan.degrees.ep, 1);
  if (is_new) place->second = busiest_load(scenario().stack, scenario().model, plan);
  return place->second;
}

PhaseCost LayerPricer::price_phase(LayerKind kind, const LayerTrace& trace, Phase part,
                                   const Plan& plan, Seconds host) {
  PhaseCost phase;
  phase.load = load_of(plan);
  phase.experts = std::max<std::int64_t>(1, scenario().model.experts.count / plan.degrees.ep);
  // Number of local experts that the host quantizes, or gathers and multiplies, one by one.
  const bool rounds = recipe_of(scenario().stack, plan) != Precision::kNone ||
                      scenario().stack.parts.expert_kernel == ExpertKernel::kLooped;
  const double held = rounds ? static_cast<double>(phase.experts) : 0;
  Seconds product;     // device time of the last linear layer's GEMM
  Seconds beside;      // ZeRO collectives of layers that overlap with compute
  Seconds travelling;  // all-to-alls that overlap with the compute of another micro-batch
  RoundedOperands rounded(scenario(), plan);
  std::vector<Ring> rings;
  const bool in_ring = attends_in_ring(scenario().stack);
  const auto [begin, end] = trace.span(part);
  // The host work of modules is spread evenly over the phase: work for the last module does not
  // delay the kernels of the first.
  const Seconds between = host / static_cast<double>(std::max<std::size_t>(1, end - begin));
  for (std::size_t i = begin; i < end; ++i) {
    phase.time = then(phase.time, HostDeviceTime{between, Seconds(), between});
    const ProgramEvent& event = trace.program.events[i];
    if (event.kind == ProgramEvent::Kind::kOp) {
      const OpRecord& op = trace.program.ops[event.index];
      if (in_ring && op.label.part == ModelPart::kContextParallel) continue;
      HostDeviceTime time = price_rounded(rounded.ops_for(op), phase);
      if (!rings.empty() && op.label.part == ModelPart::kAttentionCore) {
        rings.back().attended += time.device;
      }
      time = then(time, host_of_routing(op, held));
      if (is_linear_layer(op) || op.label.part == ModelPart::kHead) product = time.device;
      phase.time = then(phase.time, time);
    } else if (event.kind == ProgramEvent::Kind::kCollective) {
      const CollectiveRecord& traced = trace.program.collectives[event.index];
      if (in_ring && traced.group == GroupKind::kContext) {
        if (traced.kind == CollectiveKind::kAllGather) {
          rings.push_back({traced});
        } else {
          rings.back().gradients = traced;
        }
        continue;
      }
      // Embedding and head gather in the plan's dtype, without quantization.
      const CollectiveRecord record = kind == LayerKind::kBlock ? rounded.sent(traced) : traced;
      const Seconds whole = gathered_by_modules(record, plan);
      add_hidden_slices(record, plan, phase);
      if (is_overlapped(record)) {
        beside += whole;
        continue;
      }
      if (record.label.part == ModelPart::kDispatch) {
        if (scenario().stack.parts.ep_overlap) {
          travelling += phase.load * whole;
        } else {
          phase.time = then(phase.time, price_dispatch(record, whole, phase));
        }
        continue;
      }
      const bool beside_product = record.label.part == ModelPart::kColumnParallelBackward;
      const Seconds hides = beside_product ? overlapped_gemm_time(trace, i, product) : Seconds();
      const Seconds time = exposed_tensor_collective(record, plan, whole, hides);
      phase.work[work_term(record)] += time;
      phase.time = then(phase.time, launch(scenario(), scenario().stack.host.per_collective, time));
    }
  }
  for (const Ring& ring : rings) {
    const Seconds pass = ring.attended / static_cast<double>(plan.degrees.cp);
    const bool in_backward = ring.gradients.has_value();
    add_ring(ring_exchanges(scenario(), plan, ring.gather, in_backward), plan, pass, phase);
    if (in_backward) {
      add_ring(ring_exchanges(scenario(), plan, *ring.gradients, in_backward), plan, pass, phase);
    }
  }
  // The weight gather of the next layer and the gradient reduction of the previous layer overlap
  // with this layer.
  add_overlapped(phase, StepTerm::kZeroCommunication, beside, 1);
  // Merged 1F1B (ep_overlap): forward of one micro-batch and backward of another alternate, and
  // each overlaps with the all-to-alls of the other. Without delay_wgrad, nothing overlaps with
  // wgrad, a third of a layer's GEMMs.
  constexpr double kBesideWeightGradients = 2.0 / 3;
  const bool is_delayed = scenario().stack.parts.delay_wgrad;
  add_overlapped(phase, StepTerm::kExpertCommunication, travelling,
                 is_delayed ? 1 : kBesideWeightGradients);
  return phase;
}

void LayerPricer::add_recomputed(PhaseCost& backward, const std::vector<OpRecord>& ops,
                                 const Plan& plan) {
  RoundedOperands rounded(scenario(), plan);
  for (const OpRecord& op : ops) {
    backward.time = then(price_rounded(rounded.ops_for(op), backward), backward.time);
  }
}

void LayerPricer::add_recomputed_modules(PhaseCost& backward, const LayerTrace& trace,
                                         const std::vector<ProgramEvent>& events,
                                         const Plan& plan) {
  if (events.empty()) return;
  RoundedOperands rounded(scenario(), plan);
  PhaseCost again;
  again.load = backward.load;
  again.experts = backward.experts;
  for (const ProgramEvent& event : events) {
    if (event.kind == ProgramEvent::Kind::kOp) {
      const OpRecord& op = trace.program.ops[event.index];
      again.time = then(again.time, price_rounded(rounded.ops_for(op), again));
    } else {
      const CollectiveRecord record = rounded.sent(trace.program.collectives[event.index]);
      again.time = then(again.time, price_dispatch(record, collective(record, plan), again));
    }
  }
  backward.time = then(again.time, backward.time);
  backward.work += again.work;
  backward.by_source += again.by_source;
}

// Returns the host time of routing in a MoE block. CUDA graphs of router and preprocessing halve
// the host time; graphs of the whole step remove it. `rounded`: number of local experts with host
// work of their own, which only graphs of the experts remove.
HostDeviceTime LayerPricer::host_of_routing(const OpRecord& op, double rounded) const {
  const HostCost& host = scenario().stack.host;
  const std::int64_t graphs = scenario().stack.parts.cuda_graphs;
  if (holds(graphs, bit(GraphScope::kIteration))) return {};
  const std::int64_t both = bit(GraphScope::kMoeRouter) | bit(GraphScope::kMoePreprocess);
  const double share = (graphs & both) == both ? 0.5 : 1;
  const double each = holds(graphs, bit(GraphScope::kMoe)) ? 0 : rounded;
  const auto busy = [&](Seconds routing, Seconds expert) {
    const Seconds time = share * routing + each * expert;
    return HostDeviceTime{time, Seconds(), time};
  };
  if (op.key.kind == OpKind::kRouteBackward) {
    return busy(host.per_routing_backward, host.per_expert_backward);
  }
  if (op.key.kind != OpKind::kRouteForward) return {};
  HostDeviceTime time;
  if (scenario().model.experts.dropless) time = synchronization(host.per_collective);
  return then(time, busy(host.per_routing_forward, host.per_expert_forward));
}

LayerPricer::HostOfBlock LayerPricer::host_of_block(const Plan& plan, std::int64_t block) const {
  const HostCost& host = scenario().stack.host;
  const ModelSpec model = with_block_kind(scenario().model, block);
  const std::int64_t graphs = scenario().stack.parts.cuda_graphs;
  // per_block_* of HostCost is the host time of a block with two branches. A CUDA graph of a branch
  // removes half of it.
  const bool attends = model.mixer == MixerKind::kAttention;
  const bool replays_mixer =
      model.mixer != MixerKind::kNone &&
      holds(graphs, bit(attends ? GraphScope::kAttention : GraphScope::kMamba));
  const bool replays_mlp =
      has_feed_forward(model) &&
      holds(graphs, bit(has_experts(model) ? GraphScope::kMoe : GraphScope::kMlp));
  const int branches = branch_count(model);
  const int replayed = (replays_mixer ? 1 : 0) + (replays_mlp ? 1 : 0);
  const double share = std::max(0, branches - replayed) / 2.0;
  const double again = plan.recompute == Recompute::kFull ? 1 : 0;
  Seconds gathers;
  if (plan.zero == 3 && has_replicas(plan)) gathers = modules_of(plan, block) * host.per_gather;
  // In MoE blocks, per_routing_* was fitted as the whole host time of the block, so only the larger
  // of both counts.
  const bool routes = has_experts(model);
  const auto beside = [&](Seconds whole, Seconds routing) {
    return share * (routes ? std::max(Seconds(), whole - routing) : whole);
  };
  const Seconds forward = beside(host.per_block_forward, host.per_routing_forward);
  const Seconds backward = beside(host.per_block_backward, host.per_routing_backward);
  return {forward + gathers, backward + again * forward + (1 + again) * gathers};
}

// Returns the number of modules with weights in a block.
double LayerPricer::modules_of(const Plan& plan, std::int64_t block) const {
  const ModelSpec model = with_block_kind(scenario().model, block);
  const std::int64_t mlp = mlp_matrices(model);
  std::int64_t modules = branch_count(model);  // norms
  if (model.mixer == MixerKind::kAttention) modules += model.fused_qkv ? 2 : 4;
  if (has_feed_forward(model)) modules += mlp;
  if (has_experts(model) && scenario().stack.parts.expert_kernel == ExpertKernel::kLooped) {
    modules += mlp * (model.experts.count / plan.degrees.ep);
  }
  return static_cast<double>(modules);
}

// Returns the time of a collective. DeepSpeed gathers the weights of looped experts matrix by
// matrix.
Seconds LayerPricer::gathered_by_modules(const CollectiveRecord& record, const Plan& plan) const {
  const bool in_loop = scenario().stack.parts.expert_kernel == ExpertKernel::kLooped &&
                       scenario().stack.host.per_gather > Seconds() && gathers_weights(record) &&
                       has_experts(scenario().model);
  if (!in_loop) return collective(record, plan);
  const std::int64_t experts = scenario().model.experts.count / plan.degrees.ep;
  const std::int64_t modules = mlp_matrices(scenario().model) * experts;
  return in_calls(record, static_cast<double>(modules), plan);
}

// Autocast casts the weights of linear layers to 16 bits in every micro-batch, and their gradients
// back to fp32.
void LayerPricer::add_weight_casts(LayerCost& cost, const LayerTrace& trace) const {
  const bool is_autocast = scenario().stack.parts.master_weights == MasterWeights::kAutocast;
  if (!is_autocast) return;
  double weights = 0, casts = 0;
  const auto [begin, end] = trace.span(Phase::kForward);
  for (std::size_t i = begin; i < end; ++i) {
    const ProgramEvent& event = trace.program.events[i];
    if (event.kind != ProgramEvent::Kind::kOp) continue;
    const OpRecord& op = trace.program.ops[event.index];
    const bool has_weight = is_linear_layer(op) || op.label.part == ModelPart::kHead;
    if (op.key.kind != OpKind::kMatmul || !has_weight || op.key.dtype == DType::kFloat32) continue;
    const OpDims& dims = op.key.dims;
    weights += static_cast<double>(dims[0] * dims[2] * dims[3]);
    casts += 1;
  }
  constexpr double kCastBytes = 6;  // bytes per weight: one fp32 and one 16-bit value
  const Seconds time = streaming_time(Bytes(kCastBytes * weights));
  for (PhaseCost* phase : {&cost.forward, &cost.backward}) {
    add_copies(*phase, StepTerm::kElementwise, time, casts);
  }
}

LayerCost LayerPricer::price_layer(LayerKind kind, const LayerTrace& trace,
                                   const LayerMemory& memory, const Plan& plan,
                                   std::int64_t block) {
  const HostOfBlock host = kind == LayerKind::kBlock ? host_of_block(plan, block) : HostOfBlock();
  LayerCost cost{price_phase(kind, trace, Phase::kForward, plan, host.forward),
                 price_phase(kind, trace, Phase::kBackward, plan, host.backward),
                 price_phase(kind, trace, Phase::kAccumulate, plan, Seconds())};
  cost.forward.memory = memory.forward;
  cost.backward.memory = memory.backward;
  cost.accumulate.memory = memory.accumulate;
  add_weight_casts(cost, trace);
  if (kind == LayerKind::kHead) add_gathered_logits(cost, trace, plan);
  if (kind != LayerKind::kBlock) return cost;
  const RecomputedWork again = recomputed_work(trace, plan, scenario().stack.parts);
  add_recomputed(cost.backward, again.ops, plan);
  add_recomputed_modules(cost.backward, trace, again.modules, plan);
  add_stash_copies(cost, trace, plan);
  return cost;
}

}  // namespace tpsim
