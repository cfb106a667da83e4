#include "reference_model/layers/expert_balance.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <numeric>
#include <span>

namespace tpsim {
namespace {

constexpr Label kCounts{ModelPart::kRouter, "experts.counts"};
constexpr Label kAuxiliary{ModelPart::kRouter, "experts.auxiliary_loss"};

template <class T>
std::vector<T> on_host(Device& device, const Tensor& x) {
  std::vector<T> values(static_cast<std::size_t>(x.elements()));
  device.download(x, std::as_writable_bytes(std::span(values)));
  return values;
}

void sum_over(Device& device, std::initializer_list<Communicator*> groups,
              std::vector<float>& counts) {
  const auto count = static_cast<std::int64_t>(counts.size());
  const Tensor all =
      device.allocate({count}, DType::kFloat32, MemoryCategory::kWorkspace, kCounts.text);
  device.upload(std::as_bytes(std::span<const float>(counts)), all);
  for (Communicator* group : groups) group->all_reduce(all, ReduceOp::kSum, kCounts);
  counts = on_host<float>(device, all);
}

// `share`: router scores of one token (exp or sigmoid of the logit), normalized to sum 1. `slope`:
// derivative of the logarithm of the score before normalization with respect to its logit.
struct Shares {
  std::vector<double> share, slope;
};
Shares shares_of(const RouterShape& router, const float* row, std::size_t experts) {
  Shares all{std::vector<double>(experts), std::vector<double>(experts)};
  const bool sigmoid = router.score == RouterScore::kSigmoid;
  const double most = *std::max_element(row, row + experts);
  for (std::size_t e = 0; e < experts; ++e) {
    const double x = row[e];
    all.share[e] = sigmoid ? 1 / (1 + std::exp(-x)) : std::exp(x - most);
    all.slope[e] = sigmoid ? 1 - all.share[e] : 1;
  }
  const double sum = std::accumulate(all.share.begin(), all.share.end(), 0.0);
  for (double& share : all.share) share /= sum;
  return all;
}

}  // namespace

std::vector<float> tokens_by_expert(Device& device, const Tensor& chosen, std::int64_t experts) {
  std::vector<float> counts(static_cast<std::size_t>(experts), 0.0F);
  for (const std::int32_t expert : on_host<std::int32_t>(device, chosen)) {
    counts[static_cast<std::size_t>(expert)] += 1;
  }
  return counts;
}

void add_auxiliary_gradient(const RankContext& context, const Tensor& logits, const Tensor& chosen,
                            double scale, const Tensor& dlogits) {
  Device& device = context.device;
  const std::int64_t experts = logits.cols();
  std::vector<float> counts = tokens_by_expert(device, chosen, experts);
  sum_over(device, {&context.groups.tensor, &context.groups.context}, counts);
  const double choices = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double tokens = choices / static_cast<double>(chosen.cols());
  const auto count = static_cast<std::size_t>(experts);
  const double slope = scale * static_cast<double>(experts) / tokens;
  const std::vector<float> rows = on_host<float>(device, logits);
  std::vector<float> gradient(rows.size());
  for (std::size_t begin = 0; begin < rows.size(); begin += count) {
    const Shares of = shares_of(context.model.experts.router, rows.data() + begin, count);
    double mean = 0;
    for (std::size_t e = 0; e < count; ++e) mean += of.share[e] * counts[e] / choices;
    for (std::size_t e = 0; e < count; ++e) {
      gradient[begin + e] =
          static_cast<float>(slope * of.share[e] * of.slope[e] * (counts[e] / choices - mean));
    }
  }
  const Tensor added =
      device.allocate(logits.shape(), DType::kFloat32, MemoryCategory::kWorkspace, kAuxiliary.text);
  device.upload(std::as_bytes(std::span<const float>(gradient)), added);
  device.run(Add{added, dlogits, kAuxiliary});
}

void ExpertLoads::count(Device& device, const std::string& layer, const Tensor& chosen,
                        std::int64_t experts) {
  std::vector<float>& load = loads_[layer];
  load.resize(static_cast<std::size_t>(experts), 0.0F);
  const std::vector<float> more = tokens_by_expert(device, chosen, experts);
  std::transform(load.begin(), load.end(), more.begin(), load.begin(), std::plus<>());
}

void ExpertLoads::reduce(const RankContext& context) {
  for (auto& [layer, load] : loads_) {
    sum_over(context.device, {&context.groups.tensor, &context.groups.data}, load);
  }
}

double ExpertLoads::imbalance() const {
  double worst = 0;
  for (const auto& [layer, load] : loads_) {
    const double sum = std::accumulate(load.begin(), load.end(), 0.0);
    const double most = *std::max_element(load.begin(), load.end());
    worst = std::max(worst, most * static_cast<double>(load.size()) / sum);
  }
  return worst;
}

void ExpertLoads::correct(Device& device, const ParameterStore& store, double rate) const {
  for (const Buffer& buffer : store.buffers()) {
    for (const auto& [layer, load] : loads_) {
      if (!buffer.name.starts_with(layer)) continue;  // each router has at most one buffer
      std::vector<float> bias = on_host<float>(device, buffer.values);
      const float mean =
          std::accumulate(load.begin(), load.end(), 0.0F) / static_cast<float>(load.size());
      for (std::size_t e = 0; e < bias.size(); ++e) {
        const float missing = mean - load[e];
        bias[e] += static_cast<float>(rate) * (missing > 0 ? 1.0F : missing < 0 ? -1.0F : 0.0F);
      }
      device.upload(std::as_bytes(std::span<const float>(bias)), buffer.values);
    }
  }
}

}  // namespace tpsim
