#include "profiler/samples.h"

#include <cmath>

#include "core/base/check.h"
#include "core/base/median.h"
#include "core/base/packed.h"

namespace tpsim {
namespace {

void put_all(Packer& packer, const std::vector<double>& numbers) {
  packer.put(numbers.size());
  for (const double number : numbers) packer.put(number);
}

std::vector<double> get_all(Unpacker& unpacker) {
  std::vector<double> numbers(unpacker.get<std::size_t>());
  for (double& number : numbers) number = unpacker.get<double>();
  return numbers;
}

std::vector<OpSample> samples_of(const std::map<OpKey, std::vector<double>>& times) {
  std::vector<OpSample> samples;
  for (const auto& [key, seconds] : times) {
    const MedianSpread times_of_key = median_and_spread(seconds);
    samples.push_back(
        {key, Seconds(times_of_key.median), times_of_key.spread, static_cast<int>(seconds.size())});
  }
  return samples;
}

}  // namespace

MedianSpread median_and_spread(std::vector<double> numbers) {
  TPSIM_CHECK(!numbers.empty(), "a median of something");
  MedianSpread result{median(numbers)};
  for (double& number : numbers) number = std::fabs(number - result.median);
  result.spread = result.median > 0 ? median(numbers) / result.median : 0;
  return result;
}

void Samples::add_steps(const std::vector<double>& seconds) {
  if (seconds.size() > 1) step_spreads_.push_back(median_and_spread(seconds).spread);
}

// A normal distribution's standard deviation is 1.4826 times its median absolute deviation.
double Samples::rank_jitter() const {
  constexpr double kNormal = 1.4826;
  return step_spreads_.empty() ? 0 : kNormal * median_and_spread(step_spreads_).median;
}

void Samples::add(const Samples& other) {
  for (const auto& [key, seconds] : other.ops_) {
    ops_[key].insert(ops_[key].end(), seconds.begin(), seconds.end());
  }
  for (const auto& [key, seconds] : other.sustained_) {
    sustained_[key].insert(sustained_[key].end(), seconds.begin(), seconds.end());
  }
  step_spreads_.insert(step_spreads_.end(), other.step_spreads_.begin(), other.step_spreads_.end());
  for (const auto& [call, seconds] : other.collectives_) {
    collectives_[call].insert(collectives_[call].end(), seconds.begin(), seconds.end());
  }
}

std::string Samples::packed() const {
  Packer packer;
  put_all(packer, step_spreads_);
  for (const auto* times : {&ops_, &sustained_}) {
    packer.put(times->size());
    for (const auto& [key, seconds] : *times) {
      packer.put(key);
      put_all(packer, seconds);
    }
  }
  packer.put(collectives_.size());
  for (const auto& [call, seconds] : collectives_) {
    const auto& [kind, ranks, bytes] = call;
    packer.put(kind);
    packer.put(ranks);
    packer.put(bytes);
    put_all(packer, seconds);
  }
  return packer.take();
}

Samples Samples::unpacked(std::string_view bytes) {
  Unpacker unpacker(bytes);
  Samples samples;
  samples.step_spreads_ = get_all(unpacker);
  for (auto* times : {&samples.ops_, &samples.sustained_}) {
    for (auto left = unpacker.get<std::size_t>(); left > 0; --left) {
      const auto key = unpacker.get<OpKey>();
      (*times)[key] = get_all(unpacker);
    }
  }
  for (auto left = unpacker.get<std::size_t>(); left > 0; --left) {
    const auto kind = unpacker.get<CollectiveKind>();
    const auto ranks = unpacker.get<std::int64_t>();
    const auto size = unpacker.get<std::int64_t>();
    samples.collectives_[{kind, ranks, size}] = get_all(unpacker);
  }
  return samples;
}

std::vector<OpSample> Samples::ops() const { return samples_of(ops_); }
std::vector<OpSample> Samples::sustained() const { return samples_of(sustained_); }

double Samples::median(const OpKey& key) const {
  const auto found = ops_.find(key);
  return found != ops_.end() ? median_and_spread(found->second).median : 0;
}

std::vector<CollectiveSample> Samples::collectives() const {
  std::vector<CollectiveSample> samples;
  for (const auto& [call, seconds] : collectives_) {
    const auto& [kind, ranks, bytes] = call;
    samples.push_back({kind, ranks, Bytes(static_cast<double>(bytes)),
                       Seconds(median_and_spread(seconds).median)});
  }
  return samples;
}

}  // namespace tpsim
