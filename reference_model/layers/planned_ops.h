// Planned ops of a block or of a part around the blocks: see core/model/planned_op.h.
//
// A linear op is a GEMM on a weight of its own. Its input is the latest result as wide as the
// matrix has columns, else the block's input, else a tensor that is not saved. Results are saved
// for backward. Scores and passes are noted, not executed: check_trainable() refuses models with
// planned ops.
#pragma once

#include <string>
#include <vector>

#include "core/model/planned_op.h"
#include "kernels/planned_records.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {

struct PlannedSaved {
  Tensor x;                     // the input, outside the tensor-parallel region
  std::vector<Tensor> results;  // of each op; undefined where it has no width
};

class PlannedOps {
 public:
  static void specify(const std::vector<PlannedOp>& ops, const std::string& prefix,
                      SpecList& specs);
  // `ops` outlives this.
  PlannedOps(const RankContext& context, ParameterUnit& unit, const std::vector<PlannedOp>& ops,
             const std::string& prefix);

  // As a mixer: returns this rank's partial sum over the tensor group, [seq, batch, hidden].
  Tensor mix(const Tensor& x, PlannedSaved& saved) const;
  // Returns the gradient of x, summed over the tensor group.
  Tensor mix_backward(PlannedSaved saved) const;

  // Runs the ops next to a mixer, with the mixer's input x.
  void run(const Tensor& x, PlannedSaved& saved) const;
  // Adds to dx, the gradient of x.
  void run_backward(const Tensor& dx, PlannedSaved saved) const;

  // Runs the ops on tokens that are replicated on every rank. `patches` > 0: patches per image,
  // with bidirectional attention inside an image.
  void run_whole(const Tensor& x, std::int64_t patches, PlannedSaved& saved) const;
  void run_whole_backward(std::int64_t patches, PlannedSaved saved) const;

 private:
  // Inputs of ops: x inside the tensor-parallel region, this rank's share of its tokens, and
  // positions of an item (0: a causal sequence).
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
