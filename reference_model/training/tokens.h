// Training tokens: from a safetensors file, or random.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/plan/plan.h"

namespace tpsim {

class TokenSource {
 public:
  // Opens a safetensors file with an integer tensor `tokens` [steps, batch, seq + 1]. Training
  // steps beyond the last step of the file read it again from its first step.
  static Result<TokenSource> open(const std::filesystem::path& path);
  // Returns a source of uniformly distributed tokens. They depend on (seed, step, sample) only, and
  // are therefore equal in every parallel layout.
  static TokenSource synthetic(std::int64_t seq, std::int64_t vocab, std::uint64_t seed);

  std::int64_t seq() const { return seq_; }
  // Samples in a step; 0 for a synthetic source, which has any number.
  std::int64_t batch() const { return batch_; }
  // Largest token id; -1 for a synthetic source.
  std::int64_t largest() const;
  // Returns "made up" for a synthetic source, else shape and checksum of the tokens. Saved states
  // contain this text, so that a resumed run detects other tokens.
  std::string description() const;
  // Returns the seq + 1 tokens of sample `index` of a step. Both count from 0.
  std::vector<std::int32_t> sample(std::int64_t step, std::int64_t index) const;

 private:
  std::int64_t seq_ = 0;
  std::int64_t batch_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t vocab_ = 0;
  std::uint64_t seed_ = 0;
  std::vector<std::int64_t> tokens_;
};

// Identifies a micro-batch. Data-parallel ranks read consecutive parts of the global batch.
struct MicroBatchPlace {
  std::int64_t step = 0;  // from 0
  std::int64_t micro_batch = 0;
  std::int64_t dp = 0;  // data-parallel rank
};
// Returns seq + 1 tokens for each sample of a micro-batch, sample by sample.
std::vector<std::int32_t> micro_batch_samples(const TokenSource& tokens, const Plan& plan,
                                              const MicroBatchPlace& at);

}  // namespace tpsim
