// The CPU's implementation of each op; CpuDevice::execute() visits an op with these.
//
// Operands may be the same memory where kernels/ops.h allows it. They may not overlap partially.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "kernels/cpu/scratch.h"
#include "kernels/ops.h"

namespace tpsim {

// State that outlives an op: working memory and tables.
struct CpuState {
  Scratch scratch;
  // Cosine and sine by (theta, head_dim): [position][pair][cos, sin], extended to new positions on
  // demand.
  std::map<std::pair<float, std::int64_t>, std::vector<float>> rotary_tables;
};

#define TPSIM_CPU_OP(AnyOp) void compute(const AnyOp& op, CpuState& state);
TPSIM_FOR_EACH_OP(TPSIM_CPU_OP)
#undef TPSIM_CPU_OP

// Calls visit(position, sample, head) for every head of every token, position by position.
template <class Visit>
void for_each_head(const AttentionDims& d, Visit visit) {
  for (std::int64_t s = 0; s < d.seq; ++s) {
    for (std::int64_t b = 0; b < d.batch; ++b) {
      for (std::int64_t h = 0; h < d.heads; ++h) visit(s, b, h);
    }
  }
}

}  // namespace tpsim
