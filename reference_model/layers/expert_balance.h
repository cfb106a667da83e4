// Load balancing of experts, computed on the host: an auxiliary loss of the router (Fedus et al.
// 2022, section 2.2), or expert biases for the selection that change after each step (Wang et al.
// 2024, arXiv 2408.15664). Both use the number of tokens routed to each expert.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reference_model/parallel/parameters.h"

namespace tpsim {

// Adds `scale` times the gradient of the auxiliary loss to dlogits [local T, E].
//
// The loss of one layer and micro-batch covers the T tokens of all tensor- and context-parallel
// ranks: coefficient * E * sum over experts of f * P. With K experts per token, f is the expert's
// share of the K T routed tokens, treated as a constant. P is the mean over tokens of the expert's
// normalized router score. `chosen` is [local T, K] int32.
void add_auxiliary_gradient(const RankContext& context, const Tensor& logits, const Tensor& chosen,
                            double scale, const Tensor& dlogits);

// Returns how many tokens of this rank are routed to each expert. Waits for the device.
std::vector<float> tokens_by_expert(Device& device, const Tensor& chosen, std::int64_t experts);

// Number of tokens routed to each expert in a step, by the layer's prefix.
class ExpertLoads {
 public:
  void count(Device& device, const std::string& layer, const Tensor& chosen, std::int64_t experts);
  // Sums the counts over the ranks of a stage. Collective.
  void reduce(const RankContext& context);
  const std::map<std::string, std::vector<float>>& of_layers() const { return loads_; }
  // Returns the busiest expert's tokens over the mean, for the worst layer; 0 if nothing was
  // counted.
  double imbalance() const;
  // Adds `rate` to the correction bias of experts with fewer tokens than the mean, and subtracts it
  // for experts with more.
  void correct(Device& device, const ParameterStore& store, double rate) const;
  void clear() { loads_.clear(); }

 private:
  std::map<std::string, std::vector<float>> loads_;
};

}  // namespace tpsim
