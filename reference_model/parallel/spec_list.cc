// The tensors of a unit, with the adapters of linear layers, and their split into frozen and
// trained tensors.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "reference_model/parallel/parameters.h"

namespace tpsim {

ParameterSpec& SpecList::matrix(const std::string& name, std::int64_t rows, std::int64_t cols,
                                Sharding sharding) {
  const Shape shape{sharding == Sharding::kRows ? rows / ranks_ : rows,
                    sharding == Sharding::kColumns ? cols / ranks_ : cols};
  specs_.push_back({.name = prefix_ + name,
                    .shape = shape,
                    .sharding = sharding,
                    .deviation = model().initializer_range,
                    .global_rows = rows});
  return specs_.back();
}

ParameterSpec& SpecList::vector(const std::string& name, std::int64_t rows, InitialValue initial,
                                Sharding sharding) {
  specs_.push_back({.name = prefix_ + name,
                    .shape = {sharding == Sharding::kRows ? rows / ranks_ : rows},
                    .sharding = sharding,
                    .initial = initial,
                    .global_rows = rows});
  return specs_.back();
}

void SpecList::gain(const std::string& name, std::int64_t rows, Sharding sharding) {
  const InitialValue initial = model().norm_plus_one ? InitialValue::kZeros : InitialValue::kOnes;
  vector(name, rows, initial, sharding).parts = part_bit(WeightPart::kNorms);
}

std::vector<ParameterSpec> SpecList::take() {
  for (ParameterSpec& spec : specs_) spec.is_trained = (spec.parts & model().trained) != 0;
  return std::move(specs_);
}

std::vector<ParameterSpec> SpecList::take_outer() {
  for (ParameterSpec& spec : specs_) {
    const bool is_norm = spec.parts == part_bit(WeightPart::kNorms);
    spec.parts = part_bit(is_norm ? WeightPart::kOuterNorms : WeightPart::kEmbedding);
    spec.is_trained = (spec.parts & context_.options.finetune.chosen()) != 0;
  }
  return std::move(specs_);
}

void SpecList::linear(const std::string& name, const std::pair<std::int64_t, std::int64_t>& extents,
                      Sharding sharding, bool has_bias, std::int64_t targets) {
  const auto [rows, cols] = extents;
  matrix(name + ".weight", rows, cols, sharding).parts = targets;
  adapter(name, extents, sharding, targets);
  if (!has_bias) return;
  vector(name + ".bias", rows, InitialValue::kZeros,
         sharding == Sharding::kRows ? sharding : Sharding::kReplicated)
      .parts = targets;
}

// The matrix on the sharded side of the layer is sharded like the layer. The gradient of the other
// one is a partial sum on each rank.
void SpecList::adapter(const std::string& name,
                       const std::pair<std::int64_t, std::int64_t>& extents, Sharding sharding,
                       std::int64_t targets) {
  constexpr std::int64_t kAdapters = part_bit(WeightPart::kAdapters);
  const bool has_adapters = (model().trained & kAdapters) != 0;
  if (!has_adapters || !context_.options.finetune.targets_any(targets)) return;
  const auto [rows, cols] = extents;
  const std::int64_t rank = context_.options.finetune.rank;
  const auto of_side = [&](Sharding side) {
    return sharding == Sharding::kReplicated ? sharding
           : sharding == side                ? side
                                             : Sharding::kPartial;
  };
  ParameterSpec& down = matrix(adapter_down_name(name), rank, cols, of_side(Sharding::kColumns));
  // peft draws from the uniform distribution up to 1 / sqrt(in) (kaiming_uniform_, a = sqrt(5)).
  down.deviation = 1 / std::sqrt(3.0 * static_cast<double>(cols));
  down.parts = kAdapters;
  ParameterSpec& up = matrix(adapter_up_name(name), rows, rank, of_side(Sharding::kRows));
  up.initial = InitialValue::kZeros;
  up.parts = kAdapters;
}

std::string adapter_down_name(const std::string& linear) { return linear + ".lora_A.weight"; }
std::string adapter_up_name(const std::string& linear) { return linear + ".lora_B.weight"; }

ParameterUnit& ParameterStore::add_unit(std::vector<ParameterSpec> specs, UnitRole role) {
  const auto is_trained = [](const ParameterSpec& spec) { return spec.is_trained; };
  if (std::all_of(specs.begin(), specs.end(), is_trained)) {
    return add_tensors(std::move(specs), role);
  }
  const auto trained = std::stable_partition(
      specs.begin(), specs.end(), [](const ParameterSpec& spec) { return !spec.is_trained; });
  std::vector<ParameterSpec> others(std::make_move_iterator(trained),
                                    std::make_move_iterator(specs.end()));
  specs.erase(trained, specs.end());
  if (specs.empty()) return add_tensors(std::move(others), role);
  ParameterUnit& unit = add_tensors(std::move(specs), role);
  if (others.empty()) return unit;
  unit.trained_part_ = &add_tensors(std::move(others), role);
  std::map<std::string, Parameter*> called;
  for (Parameter& p : unit.trained_part_->parameters()) called[p.spec.name] = &p;
  for (Parameter& p : unit.parameters()) {
    const std::string linear = p.spec.name.substr(0, p.spec.name.rfind(".weight"));
    const auto down = called.find(adapter_down_name(linear));
    if (down == called.end()) continue;
    p.adapter_down = down->second;
    p.adapter_up = called.at(adapter_up_name(linear));
  }
  return unit;
}

}  // namespace tpsim
