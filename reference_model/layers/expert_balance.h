// Keeping the load of experts even while training, on the host: by an auxiliary loss of the router
// (Fedus et al. 2022, section 2.2), or without one by biases of the choice that move a step at a
// time (Wang et al. 2024, arXiv 2408.15664). Both need to know how many tokens chose each expert.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reference_model/parallel/parameters.h"

namespace tpsim {

// The auxiliary loss of one layer and micro-batch over all its T tokens, tensor- and
// context-parallel ranks together: coefficient * E * sum over experts of f * P, where f is the
// share of the K T choices that an expert got, a constant, and P the mean over tokens of its share
// of a token's scores.
//
// Adds its gradient, `scale` times, to dlogits [T here, E]. `chosen` [T here, K] int32.
void add_auxiliary_gradient(const RankContext& context, const Tensor& logits, const Tensor& chosen,
                            double scale, const Tensor& dlogits);

// Tokens of a step that chose each expert, by the layer's prefix.
class ExpertLoads {
 public:
  void count(Device& device, const std::string& layer, const Tensor& chosen, std::int64_t experts);
  // Adds up what the ranks of a stage counted. All of them call this.
  void reduce(const RankContext& context);
  const std::map<std::string, std::vector<float>>& of_layers() const { return loads_; }
  // The busiest expert's tokens over the mean, of the worst layer; 0 without any.
  double imbalance() const;
  // Moves the correction of every layer's choice by `rate`, up where an expert had less than the
  // mean and down where it had more.
  void correct(Device& device, const ParameterStore& store, double rate) const;
  void clear() { loads_.clear(); }

 private:
  std::map<std::string, std::vector<float>> loads_;
};

}  // namespace tpsim
