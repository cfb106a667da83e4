// The causal core of attention, Megatron's CoreAttention: softmax(q k') v over this rank's heads
// and queries.
//
// Unfused (GEMM, SoftmaxForward as Megatron's FusedScaleMaskSoftmax, GEMM; BLOOM was trained this
// way) or flash attention. q, k and v are read through strides from the projection's output without
// a copy. With context parallelism a rank has two runs of queries. Each run attends to the keys of
// the sequence up to its last position (reference_model/parallel/context_parallel.h).
#pragma once

#include <vector>

#include "reference_model/parallel/context_parallel.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {

struct CoreSaved {
  // One run of queries.
  struct Run {
    Tensor probs;  // unfused: [batch * heads, queries, keys]; undefined if backward recomputes them
    Tensor capped;         // with a score cap: the capped scores
    Tensor mask, dropped;  // with dropout: its mask; the probabilities after dropout
    Tensor log_sum;        // flash: [batch, heads, queries] fp32
  };
  Tensor qkv;              // [seq, batch, qkv_width], after q/k norm and rotary embedding
  Tensor raw_q, raw_k;     // before the q/k norm, [seq, batch, heads, head_dim]
  std::uint64_t seed = 0;  // of the dropout
  std::vector<Run> runs;
  Tensor context;  // [seq, batch, heads * width of a value]
};

class AttentionCore {
 public:
  // Parameters of the core. Null if the model has no such parameter.
  struct Weights {
    Parameter *q_norm = nullptr, *k_norm = nullptr, *sinks = nullptr;
  };
  // Uploads the ALiBi slopes of this rank's heads, or the rotary frequencies.
  AttentionCore(const RankContext& context, const Weights& weights);

  const QkvLayout& layout() const { return layout_; }
  // prepare() applies q/k norm, rotary embedding and temperature to saved.qkv in place.
  // prepare_backward() applies their backward to dqkv in place.
  void prepare(CoreSaved& saved) const;
  void prepare_backward(const Tensor& dqkv, CoreSaved& saved) const;
  // Applies rotary embedding, or its inverse, to `heads` heads at this rank's positions.
  void rotate(const Heads& x, std::int64_t heads, bool inverse) const;
  // Sets saved.context and the tensors that backward needs. saved.seed seeds dropout.
  void forward(CoreSaved& saved) const;
  // Returns the gradient of saved.qkv from the gradient of saved.context. Frees the probabilities.
  Tensor backward(const Tensor& dcontext, CoreSaved& saved) const;

 private:
  // A range of consecutive queries. Its keys are all positions up to its last query.
  struct Run {
    AttentionDims dims;
    std::int64_t row = 0;       // first query in qkv
    std::int64_t position = 0;  // first query in the sequence
  };
  // Views of a run's inputs, and in backward of the gradients that it writes. x.q, dx.q, out and
  // dout start at the run's first query.
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
  // Returns the gradients of the keys and values of all positions that come from this rank's
  // queries.
  Tensor key_value_gradients(const Tensor& dcontext, const Tensor& dqkv, CoreSaved& saved) const;
  // Computes the attention probabilities: sets saved.probs, and with dropout saved.dropped. Returns
  // the matrix that is multiplied by the values.
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
  std::vector<Run> runs_;  // the run with the most keys is last
  float scale_;
  Weights weights_;
  Tensor slopes_;       // [heads] fp32; undefined without ALiBi
  Tensor frequencies_;  // [pairs] fp32; undefined for plain rotary embedding
  float magnitude_ = 1;
};

// Returns the ALiBi slopes of all heads of the model (Press et al. 2022): powers of 2^(-8/n) for
// the largest power of two n <= heads, then every second power of 2^(-4/n). A tensor-parallel rank
// uses a slice of the result, not the slopes of heads / tp heads.
std::vector<float> alibi_slopes(std::int64_t heads);

}  // namespace tpsim
