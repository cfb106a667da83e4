// The causal core of attention: softmax(q k') v over this rank's heads and queries.
//
// Unfused (scores, softmax, values: what BLOOM ran) or flash. q, k and v are read through strides
// out of the projection's output; nothing is copied. With context parallelism the queries are two
// runs of positions, and the keys those of the whole sequence up to each run's end
// (reference_model/parallel/context_parallel.h).
#pragma once

#include <vector>

#include "reference_model/parallel/context_parallel.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {

struct CoreSaved {
  // Of one run of queries.
  struct Run {
    Tensor probs;          // unfused: [batch * heads, queries, keys]; undefined while recomputed
    Tensor capped;         // with a cap: the scores that the probabilities come from
    Tensor mask, dropped;  // with dropout: which probs were kept; what is left of them
    Tensor log_sum;        // flash: [batch, heads, queries] fp32
  };
  Tensor qkv;              // [seq, batch, qkv_width], normalised and rotated
  Tensor raw_q, raw_k;     // before their norms, [seq, batch, heads, head_dim]
  std::uint64_t seed = 0;  // of the dropout
  std::vector<Run> runs;
  Tensor context;  // [seq, batch, heads * width of a value]
};

class AttentionCore {
 public:
  // Uploads the ALiBi slopes of this rank's heads and the rotary frequencies. Of the norms' gains
  // and the sinks each may be null.
  struct Weights {
    Parameter *q_norm = nullptr, *k_norm = nullptr, *sinks = nullptr;
  };
  AttentionCore(const RankContext& context, const Weights& weights);

  const QkvLayout& layout() const { return layout_; }
  // Norms, rotary turn and temperature: what becomes of queries and keys between projection and
  // core, in place of saved.qkv; and its way back on dqkv.
  void prepare(CoreSaved& saved) const;
  void prepare_backward(const Tensor& dqkv, CoreSaved& saved) const;
  // Turns the rotary part of `heads` heads, of the queries' positions in this rank's rows.
  void rotate(const Heads& x, std::int64_t heads, bool inverse) const;
  // Sets saved.context and what backward needs. Dropout draws from saved.seed.
  void forward(CoreSaved& saved) const;
  // From the gradient of saved.context to that of saved.qkv. Lets go of the probabilities.
  Tensor backward(const Tensor& dcontext, CoreSaved& saved) const;

 private:
  // A run of queries: the last of the keys that they see.
  struct Run {
    AttentionDims dims;
    std::int64_t row = 0;       // where the queries begin in qkv
    std::int64_t position = 0;  // and in the sequence
  };
  // What a run reads, and in backward the gradients that it writes: q from its first query on.
  struct Operands {
    QkvView x, dx;
    Heads out, dout;
  };

  void normalise(CoreSaved& saved) const;
  void normalise_backward(const Tensor& dqkv, CoreSaved& saved) const;
  void scale_by_position(const Tensor& qkv) const;
  Visibility visibility() const;
  bool shares_sequences() const { return context_.plan.degrees.cp > 1; }
  Heads queries_of(const Run& run, Heads heads) const;
  Heads context_view(const Tensor& context) const;
  Operands operands(const Run& run, const Tensor& qkv, const QkvView& keys,
                    const Tensor& out) const;
  void run_forward(const Run& run, const Operands& x, std::uint64_t seed,
                   CoreSaved::Run& saved) const;
  void run_backward(const Run& run, const Operands& x, std::uint64_t seed,
                    CoreSaved::Run& saved) const;
  // Gradients of all keys and values from the queries of this rank.
  Tensor key_value_gradients(const Tensor& dcontext, const Tensor& dqkv, CoreSaved& saved) const;
  // saved.probs, and with dropout saved.dropped; the result is what multiplies the values.
  Tensor draw_probs(const Run& run, const Operands& x, std::uint64_t seed,
                    CoreSaved::Run& saved) const;
  Tensor unfused_probs(const Run& run, const Operands& x, CoreSaved::Run& saved) const;
  void softmax_backward(const Run& run, const Tensor& dprobs, CoreSaved::Run& saved) const;
  void unfused_values(const Run& run, const Operands& x, const Tensor& probs) const;
  void unfused_backward(const Run& run, const Operands& x, std::uint64_t seed,
                        CoreSaved::Run& saved) const;
  void flash_forward(const Run& run, const Operands& x, CoreSaved::Run& saved) const;
  void flash_backward(const Run& run, const Operands& x, const CoreSaved::Run& saved) const;

  const RankContext& context_;
  QkvLayout layout_;
  std::vector<Run> runs_;  // the one with the most keys last
  float scale_;
  Weights weights_;
  Tensor slopes_;       // [heads] fp32; undefined without ALiBi
  Tensor frequencies_;  // [pairs] fp32; undefined for plain rotary embedding
  float magnitude_ = 1;
};

// ALiBi slopes of all heads (Press et al. 2022): powers of 2^(-8/n) for the largest power of two n
// <= heads, then every second power of 2^(-4/n).
std::vector<float> alibi_slopes(std::int64_t heads);

}  // namespace tpsim
