#include "reference_model/parallel/delayed_scales.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "kernels/ops.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {
namespace {

constexpr std::int64_t kOperands = 3;         // of a weight's GEMMs: input, weight, output gradient
constexpr std::int64_t kEach = kScaleStride;  // scale, amax, two unused entries
constexpr float kGreatestOfE4M3 = 448, kGreatestOfE5M2 = 57344;

}  // namespace

float delayed_scale(const std::vector<float>& history, float greatest_of_format, float before) {
  float greatest = 0;
  for (const float x : history) greatest = std::isfinite(x) ? std::max(greatest, x) : greatest;
  return greatest == 0 ? before : std::max(greatest / greatest_of_format, kLeastUnit);
}

void DelayedScales::attach(Device& device, ParameterStore& store) {
  std::vector<Parameter*> weights;
  for (ParameterUnit& unit : store.units()) {
    for (Parameter& p : unit.parameters()) {
      if (p.is_multiplied()) weights.push_back(&p);
    }
  }
  const auto count = static_cast<std::int64_t>(weights.size()) * kOperands;
  scales_ = device.allocate({count, kEach}, DType::kFloat32, MemoryCategory::kWorkspace, "scales");
  std::vector<float> values(static_cast<std::size_t>(count * kEach));
  for (std::size_t i = 0; i < values.size(); i += kEach) values[i] = 1;
  device.upload(std::as_bytes(std::span(values)), scales_);
  history_.assign(static_cast<std::size_t>(count), {});
  std::int64_t first = 0;
  for (Parameter* weight : weights) {
    weight->scales = scales_.slice(first, {kOperands, kEach});
    first += kOperands * kEach;
  }
}

void DelayedScales::end_step(const RankContext& context) {
  constexpr Label kScales{ModelPart::kCoordination, "scales"};
  // The scales are equal on all ranks, so that the maximum changes the amax entries only.
  context.groups.tensor.all_reduce(scales_, ReduceOp::kMax, kScales);
  context.groups.data.all_reduce(scales_, ReduceOp::kMax, kScales);
  std::vector<float> values(history_.size() * kEach);
  context.device.download(scales_, std::as_writable_bytes(std::span(values)));
  for (std::size_t i = 0; i < history_.size(); ++i) {
    float &unit = values[kEach * i], &greatest = values[kEach * i + 1];
    std::vector<float>& history = history_[i];
    if (greatest == 0 && history.empty()) continue;
    if (history.size() < kScaleHistory) {
      history.push_back(greatest);
    } else {
      history[steps_ % kScaleHistory] = greatest;
    }
    const bool is_gradient = i % kOperands == kOperands - 1;
    unit = delayed_scale(history, is_gradient ? kGreatestOfE5M2 : kGreatestOfE4M3, unit);
    greatest = 0;
  }
  context.device.upload(std::as_bytes(std::span(values)), scales_);
  ++steps_;
}

}  // namespace tpsim
