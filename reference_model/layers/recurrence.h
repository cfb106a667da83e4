// A block's mixer where that is a recurrence: Mamba-2 or a gated delta net.
//
//   p = x W_in                      gate, values, two kinds of keys, rates of each head
//   c = silu(convolution(values, keys))
//   s = scan(c, rates)              kernels/recurrence_records.h
//   y = (norm(s) * silu(gate)) W_out
//
// The heads, and the groups that share keys, are cut over the tensor group. Kept for backward are
// x, p, s and what W_out multiplies; a delta net's kernels also keep c and each chunk's triangular
// system, Mamba-2's make the convolution and the states again. No device computes convolution, scan
// and gate: the mixer is traced and priced alone (check_trainable).
#pragma once

#include <string>
#include <vector>

#include "kernels/recurrence_records.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {

struct RecurrenceSaved {
  Tensor x;          // outside the tensor-parallel region
  Tensor projected;  // [seq, batch, inputs of this rank]
  Tensor convolved;  // [seq, batch, channels], of a delta net
  Tensor systems;    // [seq, batch, heads x chunk], of a delta net
  Tensor scanned;    // [seq, batch, values]
  Tensor gated;      // as wide
};

class Recurrence {
 public:
  static void specify(SpecList& specs);
  Recurrence(const RankContext& context, ParameterUnit& unit, const std::string& block);

  // A partial sum over the tensor group: [seq, batch, hidden].
  Tensor forward(const Tensor& x, RecurrenceSaved& saved) const;
  // From the gradient of forward's result to that of x, outside the tensor-parallel region.
  // Consumes `saved`.
  Tensor backward(const Tensor& dy, RecurrenceSaved saved) const;

 private:
  bool is_mamba() const { return context_.model.mixer == MixerKind::kMamba2; }
  ScanShape scan_shape(std::int64_t tokens) const;
  Tensor allocate_like(const Tensor& rows, std::int64_t width, const char* label) const;
  // The kernels want a sample's positions one behind the other, and the products those of all
  // samples: a copy where there are several samples.
  Tensor turned(Tensor rows) const;
  Tensor convolve(const Tensor& projected) const;
  void scan(OpKind kind, const Tensor& rows) const;
  Tensor mixer_backward(const Tensor& dgated, RecurrenceSaved& saved) const;

  const RankContext& context_;
  std::int64_t values_, channels_;
  std::vector<Parameter*> inputs_;  // one matrix, or two
  Parameter& output_;
  std::vector<Parameter*> small_;  // of the convolution, of each head, of the norm
};

}  // namespace tpsim
