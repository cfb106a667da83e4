#include "reference_model/expert_weights.h"

#include "reference_model/experts.h"

namespace tpsim {

std::string expert_name(const WeightNames& names, std::int64_t expert, const std::string& matrix) {
  return names.experts + std::to_string(expert) + "." + matrix;
}

std::int64_t first_expert(const RankContext& context) {
  return context.groups.expert.rank() * local_sizes(context).experts;
}

std::string latent_name(bool down) {
  return down ? "mlp.fc1_latent_proj.weight" : "mlp.fc2_latent_proj.weight";
}

void Experts::specify_router(const RankContext& context, const std::string& block,
                             std::vector<ParameterSpec>& specs) {
  const ModelSpec& model = context.model;
  const std::int64_t count = model.experts.count;
  const std::string router = block + names_of(model).router;
  specs.push_back({.name = router + ".weight",
                   .shape = {count, model.hidden},
                   .deviation = model.initializer_range,
                   .global_rows = count});
  if (const std::int64_t latent = model.experts.latent; latent > 0) {
    for (const bool down : {true, false}) {
      const std::int64_t rows = down ? latent : model.hidden;
      specs.push_back({.name = block + latent_name(down),
                       .shape = {rows, down ? model.hidden : latent},
                       .deviation = model.initializer_range,
                       .global_rows = rows});
    }
  }
  if (model.experts.router.bias) {
    specs.push_back({.name = router + ".bias",
                     .shape = {count},
                     .initial = InitialValue::kZeros,
                     .global_rows = count});
  }
}

ParameterUnit& Experts::add_to(const RankContext& context, ParameterStore& store,
                               const std::string& block) {
  const ModelSpec& model = context.model;
  const LocalSizes sizes = local_sizes(context);
  const WeightNames names = names_of(model);
  std::vector<ParameterSpec> specs;
  const auto bias = [&](std::int64_t expert, const std::string& name, bool cut) {
    if (!model.experts.bias) return;
    const std::int64_t rows = cut ? model.ffn_hidden : expert_width(model);
    specs.push_back({.name = block + expert_name(names, expert, name) + ".bias",
                     .shape = {1, cut ? sizes.ffn : rows},
                     .sharding = cut ? Sharding::kColumns : Sharding::kPartial,
                     .initial = InitialValue::kZeros,
                     .global_rows = 1,
                     .is_multiplied = false});
  };
  for (std::int64_t i = 0; i < sizes.experts; ++i) {
    const std::int64_t expert = first_expert(context) + i;
    for (const std::string& name : names.expert_up) {
      specs.push_back({.name = block + expert_name(names, expert, name) + ".weight",
                       .shape = {sizes.ffn, expert_width(model)},
                       .sharding = Sharding::kRows,
                       .deviation = model.initializer_range,
                       .global_rows = model.ffn_hidden});
    }
    specs.push_back({.name = block + expert_name(names, expert, names.expert_down) + ".weight",
                     .shape = {expert_width(model), sizes.ffn},
                     .sharding = Sharding::kColumns,
                     .deviation = model.initializer_range,
                     .global_rows = expert_width(model)});
  }
  for (std::int64_t i = 0; i < sizes.experts; ++i) {
    const std::int64_t expert = first_expert(context) + i;
    for (const std::string& name : names.expert_up) bias(expert, name, true);
    bias(expert, names.expert_down, false);
  }
  return store.add_unit(std::move(specs), UnitRole::kExperts);
}

}  // namespace tpsim
