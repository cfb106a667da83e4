// The wgrad GEMMs of a split backward, which run after the input gradients have been sent to the
// previous stage: WeightGradStore in the code of Qi et al. 2023, "Zero Bubble Pipeline
// Parallelism". A GEMM holds its operands until it has run.
#pragma once

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "reference_model/parallel/rank_context.h"

namespace tpsim {

class WeightGradients {
 public:
  using Work = std::function<void()>;

  // Adds work of the micro-batch whose backward runs.
  void add(Work work) { of_backward_.push_back(std::move(work)); }
  // Ends this backward.
  void end_backward() { waiting_.push_back(std::exchange(of_backward_, {})); }
  // Runs the work of the oldest micro-batch, in the order of its backward.
  void run_oldest() {
    for (Work& work : waiting_.front()) {
      work();
      work = nullptr;  // frees the operands
    }
    waiting_.pop_front();
  }

 private:
  std::vector<Work> of_backward_;
  std::deque<std::vector<Work>> waiting_;  // by micro-batch
};

// Runs work that computes weight gradients: at once, or later if the backward is split.
template <class Work>
void run_weight_gradient(const RankContext& context, Work work) {
  if (context.weight_gradients == nullptr) return work();
  context.weight_gradients->add(std::move(work));
}

}  // namespace tpsim
