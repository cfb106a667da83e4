// Parameters of the experts of a rank: their names in checkpoints and their offsets in the rank's
// unit.
#include <string_view>
#include <unordered_map>

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
  specs.matrix(router + ".weight", count, model.hidden);
  if (const std::int64_t latent = model.experts.latent; latent > 0) {
    specs.matrix(latent_name(true), latent, model.hidden);
    specs.matrix(latent_name(false), model.hidden, latent);
  }
  if (model.experts.router.bias) specs.vector(router + ".bias", count, InitialValue::kZeros);
}

ParameterUnit& Experts::add_to(const RankContext& context, ParameterStore& store,
                               const std::string& block) {
  const ModelSpec& model = context.model;
  const std::int64_t experts = local_sizes(context).experts, width = expert_width(model);
  const WeightNames names = names_of(model);
  SpecList specs(context, block, expert_tensor_ranks(context.plan));
  const auto name_of = [&](std::int64_t i, const std::string& name) {
    return expert_name(names, first_expert(context) + i, name);
  };
  // A bias is a matrix with one row, so that it can be sharded by columns like the output of its
  // GEMM.
  const auto bias = [&](const std::string& name, std::int64_t columns, Sharding sharding) {
    ParameterSpec& spec = specs.matrix(name + ".bias", 1, columns, sharding);
    spec.initial = InitialValue::kZeros;
    spec.is_multiplied = false;
  };
  for (std::int64_t i = 0; i < experts; ++i) {
    for (const std::string& name : names.expert_up) {
      specs.matrix(name_of(i, name) + ".weight", model.ffn_hidden, width, Sharding::kRows);
    }
    specs.matrix(name_of(i, names.expert_down) + ".weight", width, model.ffn_hidden,
                 Sharding::kColumns);
  }
  for (std::int64_t i = 0; model.experts.bias && i < experts; ++i) {
    for (const std::string& name : names.expert_up) {
      bias(name_of(i, name), model.ffn_hidden, Sharding::kColumns);
    }
    bias(name_of(i, names.expert_down), width, Sharding::kPartial);
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
  const auto of_expert = [&](std::int64_t i, const std::string& name) -> const Parameter& {
    return get_parameter(unit_,
                         block + expert_name(names, first_expert(context) + i, name) + ".weight");
  };
  for (const std::string& name : names.expert_up) {
    const Parameter& p = of_expert(0, name);
    const bool joins = !up_.empty() && up_.back().offset + up_.back().rows * width_ == p.offset;
    if (joins) {
      up_.back().rows += sizes_.ffn;
    } else {
      up_.push_back({p.offset, sizes_.ffn, width_, &p});
    }
  }
  const Parameter& down = of_expert(0, names.expert_down);
  down_ = {down.offset, width_, sizes_.ffn, &down};
  if (sizes_.experts > 1) {
    const std::string& first = names.expert_up.front();
    stride_ = of_expert(1, first).offset - of_expert(0, first).offset;
  }
  if (model.experts.router.correction_bias) {
    correction_ =
        store.add_buffer(block + names.router + ".e_score_correction_bias", model.experts.count);
  }
  if (!model.experts.bias) return;
  std::unordered_map<std::string_view, Parameter*> called;  // index, since there are many experts
  for (Parameter& p : unit_.parameters()) called.emplace(p.spec.name, &p);
  const auto biases = [&](const std::string& name, std::int64_t column) {
    Biases all{{}, column};
    for (std::int64_t i = 0; i < sizes_.experts; ++i) {
      all.of_experts.push_back(
          called.at(block + expert_name(names, first_expert(context) + i, name) + ".bias"));
    }
    return all;
  };
  for (std::size_t i = 0; i < names.expert_up.size(); ++i) {
    up_biases_.push_back(biases(names.expert_up[i], static_cast<std::int64_t>(i) * sizes_.ffn));
  }
  down_biases_.push_back(biases(names.expert_down, 0));
}

}  // namespace tpsim
