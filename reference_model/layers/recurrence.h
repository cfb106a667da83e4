// Recurrent mixer in place of attention: Mamba-2 or a gated delta net.
//
//   p = x W_in                      gate, values, keys and queries (Mamba-2: B, C), rates by head
//   c = silu(convolution(values, keys))
//   s = scan(c, rates)              kernels/recurrence_records.h
//   y = (norm(s) * silu(gate)) W_out
//
// Heads, and the groups of heads that share keys, are sharded over the tensor group. Saved for
// backward: x, p, s and the input of W_out. A delta net's kernels also save c and each chunk's
// triangular system; Mamba-2's kernels recompute convolution and states. Kernels for
// convolution, scan and gate are missing: this layer is traced and priced, but not executed
// (check_trainable).
#pragma once

#include <string>
#include <vector>

#include "kernels/recurrence_records.h"
#include "reference_model/layers/adapters.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {

struct RecurrenceSaved {
  Tensor x;          // outside the tensor-parallel region
  Tensor projected;  // [seq, batch, inputs of this rank]
  Tensor convolved;  // [seq, batch, channels], delta net only
  Tensor systems;    // [seq, batch, heads x chunk], delta net only
  Tensor scanned;    // [seq, batch, values]
  Tensor gated;      // [seq, batch, values]
  AdapterSaved adapters;
};

class Recurrence {
 public:
  static void specify(SpecList& specs);
  Recurrence(const RankContext& context, ParameterUnit& unit, const std::string& block);

  // Returns this rank's partial sum over the tensor group, [seq, batch, hidden].
  Tensor forward(const Tensor& x, RecurrenceSaved& saved) const;
  // Returns the gradient of x, summed over the tensor group, from the gradient of forward's result.
  Tensor backward(const Tensor& dy, RecurrenceSaved saved) const;

 private:
  bool is_mamba() const { return context_.model.mixer == MixerKind::kMamba2; }
  ScanShape scan_shape(std::int64_t tokens) const;
  Tensor allocate_like(const Tensor& rows, std::int64_t width, const char* label) const;
  // Copies rows into the order that the recurrence kernels need: all positions of a sample
  // adjacent. Returns `rows` if there is one sample.
  Tensor turned(Tensor rows) const;
  Tensor convolve(const Tensor& projected) const;
  void scan(OpKind kind, const Tensor& rows) const;
  Tensor mixer_backward(const Tensor& dgated, RecurrenceSaved& saved) const;

  const RankContext& context_;
  std::int64_t values_, channels_;
  std::vector<Parameter*> inputs_;  // one matrix, or two
  Parameter& output_;
  std::vector<Parameter*> small_;  // parameters of convolution, heads and norm
};

}  // namespace tpsim
