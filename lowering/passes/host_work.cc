// Host time of launches, of the modules' code, and of routing.
#include <algorithm>

#include "lowering/passes/lower.h"
#include "lowering/passes/quantization.h"

namespace tpsim {
namespace {

using Kind = LoweredEvent::Kind;

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
    case ModelPart::kAdapter:
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

// Returns the host time of a launch: zero if a CUDA graph replays the kernel. Autograd's engine
// adds gradients without Python, and one kernel has the weights of all experts in one tensor.
Seconds issue_time(ModelPart part, LayerKind kind, const LayerInputs& inputs) {
  const StackSpec& stack = inputs.scenario.stack;
  const bool routes = has_experts(inputs.block);
  if (holds(stack.parts.cuda_graphs, graph_scopes(part, routes))) return Seconds();
  if (part != ModelPart::kGradientAccumulation) return stack.host.per_op + stack.host.per_block_op;
  const bool is_stacked =
      kind == LayerKind::kBlock && routes && stack.parts.expert_kernel == ExpertKernel::kOneKernel;
  return stack.host.per_op / (is_stacked ? static_cast<double>(local_experts(inputs)) : 1);
}

// Returns the number of modules with weights in a block.
double modules_of(const LayerInputs& inputs) {
  const ModelSpec& model = inputs.block;
  const std::int64_t mlp = mlp_matrices(model);
  std::int64_t modules = branch_count(model);  // norms
  if (model.mixer == MixerKind::kAttention) modules += model.fused_qkv ? 2 : 4;
  if (has_feed_forward(model)) modules += mlp;
  if (has_experts(model) && inputs.scenario.stack.parts.expert_kernel == ExpertKernel::kLooped) {
    modules += mlp * local_experts(inputs);
  }
  return static_cast<double>(modules);
}

// Host time per block besides launches, for forward and backward.
struct HostOfBlock {
  Seconds forward, backward;
};

HostOfBlock host_of_block(const LayerInputs& inputs) {
  const HostCost& host = inputs.scenario.stack.host;
  const ModelSpec& model = inputs.block;
  const std::int64_t graphs = inputs.scenario.stack.parts.cuda_graphs;
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
  const double again = inputs.plan.recompute == Recompute::kFull ? 1 : 0;
  Seconds gathers;
  if (inputs.plan.zero == 3 && has_replicas(inputs.plan)) {
    gathers = modules_of(inputs) * host.per_gather;
  }
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

// Spreads host time evenly over the events of a phase: work for the last module does not delay the
// kernels of the first.
void spread(LoweredPhase& phase, Seconds host) {
  const auto events = std::count_if(phase.events.begin(), phase.events.end(),
                                    [](const LoweredEvent& event) { return event.is_first; });
  phase.host_per_event = host / static_cast<double>(std::max<std::ptrdiff_t>(1, events));
}

// Host work of routing in a MoE block. CUDA graphs of router and preprocessing halve the host time;
// graphs of the whole step remove it.
class RoutingWork {
 public:
  explicit RoutingWork(const LayerInputs& inputs) : inputs_(inputs) {
    const StackSpec& stack = inputs.scenario.stack;
    const std::int64_t graphs = stack.parts.cuda_graphs;
    const std::int64_t both = bit(GraphScope::kMoeRouter) | bit(GraphScope::kMoePreprocess);
    share_ = (graphs & both) == both ? 0.5 : 1;
    // The host quantizes local experts, or gathers and multiplies them, one by one.
    const bool by_expert = recipe_of(stack, inputs.plan) != Precision::kNone ||
                           stack.parts.expert_kernel == ExpertKernel::kLooped;
    if (by_expert && !holds(graphs, bit(GraphScope::kMoe))) {
      experts_ = static_cast<double>(local_experts(inputs));
    }
    is_replayed_ = holds(graphs, bit(GraphScope::kIteration));
  }

  // Adds the host work that follows an op.
  void add_after(const OpRecord& op, LoweredLayer& layer, std::vector<LoweredEvent>& events) const {
    if (is_replayed_) return;
    const HostCost& host = inputs_.scenario.stack.host;
    HostWork work{.label = "router"};
    if (op.key.kind == OpKind::kRouteBackward) {
      work.busy = share_ * host.per_routing_backward + experts_ * host.per_expert_backward;
    } else if (op.key.kind == OpKind::kRouteForward) {
      work.busy = share_ * host.per_routing_forward + experts_ * host.per_expert_forward;
      // The host reads the number of tokens for each expert.
      work.synchronizes = inputs_.scenario.model.experts.dropless;
      work.latency = host.per_collective;
    } else {
      return;
    }
    events.push_back(added(layer, work));
  }

 private:
  const LayerInputs& inputs_;
  double share_ = 1;
  double experts_ = 0;  // local experts with host work of their own
  bool is_replayed_ = false;
};

void add_routing(LoweredLayer& layer, const LayerInputs& inputs) {
  if (!has_experts(inputs.block)) return;
  const RoutingWork routing(inputs);
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    rewrite(layer, phase, [&](const LoweredEvent& event, std::vector<LoweredEvent>& events) {
      events.push_back(event);
      if (event.kind == Kind::kOp) routing.add_after(layer.ops[event.index], layer, events);
    });
  }
}

}  // namespace

void issue_launches(LoweredLayer& layer, const LayerInputs& inputs) {
  const HostCost& host = inputs.scenario.stack.host;
  for (LoweredOp& op : layer.ops) op.issue = issue_time(op.label.part, layer.kind, inputs);
  for (LoweredCollective& record : layer.collectives) {
    const bool is_ring = record.group == GroupKind::kContext;
    record.issue = (is_ring ? record.calls : std::min(1.0, record.calls)) * host.per_collective;
  }
  for (LoweredCopy& copy : layer.copies) {
    const bool is_op = copy.label.part == ModelPart::kAdapter;
    copy.issue =
        copy.kernels * (is_op ? issue_time(copy.label.part, layer.kind, inputs) : host.per_op);
  }
  add_routing(layer, inputs);
  if (layer.kind != LayerKind::kBlock) return;
  const HostOfBlock block = host_of_block(inputs);
  spread(layer.phase(Phase::kForward), block.forward);
  spread(layer.phase(Phase::kBackward), block.backward);
}

}  // namespace tpsim
