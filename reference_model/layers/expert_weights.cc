// Parameters of the experts of a rank: their names in checkpoints and their offsets in the rank's
// unit.
#include "reference_model/layers/experts.h"
#include "reference_model/layers/norm.h"

namespace tpsim {
namespace {

// Returns the maximum number of slots of an expert. Without dropping, all tokens may be routed to
// the same expert. A device that does not compute assumes balanced experts.
std::int64_t slots_of_expert(const RankContext& context, std::int64_t tokens) {
  const ExpertShape& experts = context.model.experts;
  const bool room_for_all = experts.dropless && context.device.computes();
  return room_for_all ? tokens : expert_capacity(experts, tokens);
}

// Returns the adapter target of an expert's up projection. The first of two is the gate.
std::int64_t target_of(const WeightNames& names, const std::string& up) {
  const bool is_gate = names.expert_up.size() > 1 && up == names.expert_up.front();
  return part_bit(is_gate ? WeightPart::kGate : WeightPart::kUp);
}

}  // namespace

std::string Experts::expert_name(const WeightNames& names, std::int64_t expert,
                                 const std::string& matrix) {
  return names.experts + std::to_string(expert) + "." + matrix;
}

std::int64_t Experts::first_expert(const RankContext& context) {
  return context.groups.expert.rank() * local_sizes(context).experts;
}

std::string Experts::latent_name(bool down) {
  return down ? "mlp.fc1_latent_proj.weight" : "mlp.fc2_latent_proj.weight";
}

void Experts::specify_router(SpecList& specs) {
  const ModelSpec& model = specs.model();
  const std::int64_t count = model.experts.count;
  const std::string router = names_of(model).router;
  specs.linear(router, {count, model.hidden}, Sharding::kReplicated, model.experts.router.bias,
               part_bit(WeightPart::kRouter));
  if (const std::int64_t latent = model.experts.latent; latent > 0) {
    specs.matrix(latent_name(true), latent, model.hidden);
    specs.matrix(latent_name(false), model.hidden, latent);
  }
}

ParameterUnit& Experts::add_to(const RankContext& context, ParameterStore& store,
                               const std::string& block) {
  const ModelSpec& model = context.model;
  const std::int64_t experts = local_sizes(context).experts, width = expert_width(model);
  const WeightNames names = names_of(model);
  // Traces do not read the names of experts, of which there are many. Adapters are found by name.
  const bool is_named = context.device.computes() || context.options.finetune.adapts;
  SpecList specs(context, is_named ? block : "", expert_tensor_ranks(context.plan));
  specs.reserve(experts * (mlp_matrices(model) * (model.experts.bias ? 2 : 1)));
  const auto name_of = [&](std::int64_t i, const std::string& matrix) {
    return is_named ? expert_name(names, first_expert(context) + i, matrix) : std::string();
  };
  // A bias is a matrix with one row, so that it can be sharded by columns like the output of its
  // GEMM.
  const auto bias = [&](const std::string& name, std::int64_t columns, Sharding sharding,
                        std::int64_t parts) {
    ParameterSpec& spec = specs.matrix(name + ".bias", 1, columns, sharding);
    spec.initial = InitialValue::kZeros;
    spec.is_multiplied = false;
    spec.parts = parts;
  };
  for (std::int64_t i = 0; i < experts; ++i) {
    for (const std::string& name : names.expert_up) {
      specs.linear(name_of(i, name), {model.ffn_hidden, width}, Sharding::kRows, false,
                   target_of(names, name));
    }
    specs.linear(name_of(i, names.expert_down), {width, model.ffn_hidden}, Sharding::kColumns,
                 false, part_bit(WeightPart::kDown));
  }
  for (std::int64_t i = 0; model.experts.bias && i < experts; ++i) {
    for (const std::string& name : names.expert_up) {
      bias(name_of(i, name), model.ffn_hidden, Sharding::kColumns, target_of(names, name));
    }
    bias(name_of(i, names.expert_down), width, Sharding::kPartial, part_bit(WeightPart::kDown));
  }
  return store.add_unit(specs.take(), UnitRole::kExperts);
}

Experts::Experts(const RankContext& context, ParameterStore& store, ParameterUnit& block_unit,
                 ParameterUnit& expert_unit, const std::string& block)
    : context_(context),
      layer_(block),
      sizes_(local_sizes(context)),
      capacity_(slots_of_expert(context, sizes_.seq_share * sizes_.batch)),
      width_(expert_width(context.model)),
      router_(get_parameter(block_unit, block + names_of(context.model).router + ".weight")),
      latent_down_(find_parameter(block_unit, block + latent_name(true))),
      latent_up_(find_parameter(block_unit, block + latent_name(false))),
      unit_(expert_unit),
      router_bias_(find_parameter(block_unit, block + names_of(context.model).router + ".bias")) {
  const ModelSpec& model = context.model;
  const WeightNames names = names_of(model);
  // The unit has the matrices of all experts in the order of add_to(), then the biases.
  const std::size_t per_expert = names.expert_up.size() + 1;
  const auto of_expert = [&](std::size_t i, std::size_t matrix) -> const Parameter& {
    return unit_.parameters()[i * per_expert + matrix];
  };
  for (std::size_t i = 0; i < names.expert_up.size(); ++i) {
    const Parameter& p = of_expert(0, i);
    const bool joins = !up_.empty() && up_.back().offset + up_.back().rows * width_ == p.offset;
    if (joins) {
      up_.back().rows += sizes_.ffn;
    } else {
      up_.push_back({p.offset, sizes_.ffn, width_, &p});
    }
  }
  const Parameter& down = of_expert(0, names.expert_up.size());
  down_ = {down.offset, width_, sizes_.ffn, &down};
  if (sizes_.experts > 1) stride_ = of_expert(1, 0).offset - of_expert(0, 0).offset;
  if (model.experts.router.correction_bias) {
    correction_ =
        store.add_buffer(block + names.router + ".e_score_correction_bias", model.experts.count);
  }
  for (std::size_t i = 0; i < names.expert_up.size(); ++i) {
    add_adapter(block, names.expert_up[i], static_cast<std::int64_t>(i) * sizes_.ffn, up_adapters_);
  }
  add_adapter(block, names.expert_down, 0, down_adapters_);
  if (!model.experts.bias) return;
  // The units of several tensor ranks have the biases of all down projections last.
  down_biases_.emplace_back();
  for (std::size_t i = 0; i < names.expert_up.size(); ++i) {
    up_biases_.push_back({{}, static_cast<std::int64_t>(i) * sizes_.ffn});
  }
  std::size_t up = 0;
  const auto experts = static_cast<std::size_t>(sizes_.experts);
  for (std::size_t i = experts * per_expert; i < unit_.parameters().size(); ++i) {
    Parameter& bias = unit_.parameters()[i];
    const bool is_down = bias.spec.sharding == Sharding::kPartial;
    Biases& of = is_down ? down_biases_.front() : up_biases_[up++ % up_biases_.size()];
    of.of_experts.push_back(&bias);
  }
}

}  // namespace tpsim
