// Which experts a rank has, and what their weights are called.
#include "reference_model/layers/experts.h"

namespace tpsim {

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
  // One row, so that the ranks that share an expert cut it as they cut their products' columns.
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

}  // namespace tpsim
