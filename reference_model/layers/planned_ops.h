// Ops that are priced from their sizes but not executed (core/model/planned_op.h). They belong to a
// block, or to a part outside the blocks.
//
// A linear op is a GEMM with its own weight. Its input is the latest result with as many columns as
// the weight, else the block's input, else a tensor that is not saved. Results are saved for
// backward. Attention scores and elementwise passes are only noted for the cost model:
// check_trainable() refuses models with planned ops.
#pragma once

#include <string>
#include <vector>

#include "core/model/planned_op.h"
#include "kernels/planned_records.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {

struct PlannedSaved {
  Tensor x;                     // the input, outside the tensor-parallel region
  std::vector<Tensor> results;  // of each op; undefined if the op has no result
};

class PlannedOps {
 public:
  static void specify(const std::vector<PlannedOp>& ops, const std::string& prefix,
                      SpecList& specs);
  // `ops` must outlive this object.
  PlannedOps(const RankContext& context, ParameterUnit& unit, const std::vector<PlannedOp>& ops,
             const std::string& prefix);

  // As a mixer: returns this rank's partial sum over the tensor group, [seq, batch, hidden].
  Tensor mix(const Tensor& x, PlannedSaved& saved) const;
  // Returns the gradient of x, summed over the tensor group.
  Tensor mix_backward(PlannedSaved saved) const;

  // Runs the ops in addition to a mixer, on the mixer's input x.
  void run(const Tensor& x, PlannedSaved& saved) const;
  // Adds the gradient through these ops to dx, the gradient of x.
  void run_backward(const Tensor& dx, PlannedSaved saved) const;

  // Runs the ops on tokens that are replicated on every rank, as in a vision encoder. `patches` >
  // 0: patches per image; attention is bidirectional within an image. 0: causal sequence.
  void run_whole(const Tensor& x, std::int64_t patches, PlannedSaved& saved) const;
  void run_whole_backward(std::int64_t patches, PlannedSaved saved) const;

 private:
  // Inputs of ops. `inside`: x inside the tensor-parallel region. `share`: this rank's sequence
  // shard of x. `patches`: patches per image; 0 for a causal sequence.
  struct Inputs {
    Tensor inside, share;
    std::int64_t patches = 0;
    const Tensor& of(const PlannedOp& op) const {
      return op.sharding == PlannedSharding::kTokens ? share : inside;
    }
  };
  bool needs_all_tokens() const;
  std::int64_t ranks_of(const PlannedOp& op) const;
  PlannedWork work_of(const PlannedOp& op, const Tensor& rows, std::int64_t patches) const;
  Tensor allocate_like(const Tensor& rows, const PlannedOp& op, std::int64_t width) const;
  Tensor input_of(std::size_t index, const Inputs& inputs, const PlannedSaved& saved) const;
  void op_forward(std::size_t index, const Inputs& inputs, PlannedSaved& saved) const;
  void op_backward(std::size_t index, const Inputs& inputs, PlannedSaved& saved) const;
  void ops_forward(const Inputs& inputs, PlannedSaved& saved) const;
  void ops_backward(const Inputs& inputs, PlannedSaved& saved) const;

  struct Weights {
    Parameter* matrix = nullptr;
    Parameter* others = nullptr;
  };
  const RankContext& context_;
  const std::vector<PlannedOp>& ops_;
  std::vector<Weights> weights_;  // of each op
};

}  // namespace tpsim
