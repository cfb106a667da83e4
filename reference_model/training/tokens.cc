#include "reference_model/training/tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/json/safetensors.h"
#include "kernels/normal_stream.h"

namespace tpsim {

Result<TokenSource> TokenSource::open(const std::filesystem::path& path) {
  TPSIM_TRY(const SafetensorsFile file, SafetensorsFile::open(path));
  const auto found = file.entries().find("tokens");
  if (found == file.entries().end() || found->second.shape.size() != 3) {
    return bad_input("the file has no tensor 'tokens' of shape [steps, batch, seq + 1]",
                     path.string());
  }
  TokenSource source;
  source.steps_ = found->second.shape[0];
  source.batch_ = found->second.shape[1];
  source.seq_ = found->second.shape[2] - 1;
  if (source.steps_ < 1 || source.batch_ < 1 || source.seq_ < 1) {
    return bad_input("tensor 'tokens' is empty, or its sequences have fewer than 2 tokens",
                     path.string());
  }
  TPSIM_TRY(source.tokens_, file.read_integers("tokens"));
  if (*std::min_element(source.tokens_.begin(), source.tokens_.end()) < 0) {
    return bad_input("tensor 'tokens' contains a negative token id", path.string());
  }
  return source;
}

TokenSource TokenSource::synthetic(std::int64_t seq, std::int64_t vocab, std::uint64_t seed) {
  TokenSource source;
  source.seq_ = seq;
  source.vocab_ = vocab;
  source.seed_ = seed;
  return source;
}

std::int64_t TokenSource::largest() const {
  return tokens_.empty() ? -1 : *std::max_element(tokens_.begin(), tokens_.end());
}

std::string TokenSource::description() const {
  if (tokens_.empty()) return "made up";
  std::uint64_t sum = 0;
  for (const std::int64_t token : tokens_) sum = mix(sum ^ static_cast<std::uint64_t>(token));
  return fmt::format("{} x {} x {} of {:016x}", steps_, batch_, seq_ + 1, sum);
}

std::vector<std::int32_t> TokenSource::sample(std::int64_t step, std::int64_t index) const {
  std::vector<std::int32_t> sample(static_cast<std::size_t>(seq_ + 1));
  const std::int64_t first =
      ((step % std::max<std::int64_t>(1, steps_)) * batch_ + index) * (seq_ + 1);
  for (std::size_t i = 0; i < sample.size(); ++i) {
    if (!tokens_.empty()) {
      sample[i] = static_cast<std::int32_t>(tokens_[static_cast<std::size_t>(first) + i]);
      continue;
    }
    const std::uint64_t draw =
        mix(mix(mix(seed_) + static_cast<std::uint64_t>(step)) +
            static_cast<std::uint64_t>(index) * static_cast<std::uint64_t>(seq_ + 1) + i);
    sample[i] = static_cast<std::int32_t>(draw % static_cast<std::uint64_t>(vocab_));
  }
  return sample;
}

std::vector<std::int32_t> micro_batch_samples(const TokenSource& tokens, const Plan& plan,
                                              const MicroBatchPlace& at) {
  const std::int64_t first =
      at.dp * (plan.global_batch / plan.degrees.dp) + at.micro_batch * plan.micro_batch;
  std::vector<std::int32_t> all;
  for (std::int64_t i = 0; i < plan.micro_batch; ++i) {
    const std::vector<std::int32_t> sample = tokens.sample(at.step, first + i);
    all.insert(all.end(), sample.begin(), sample.end());
  }
  return all;
}

}  // namespace tpsim
