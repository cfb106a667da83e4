// Implementations of AdamW on the CPU: their speed, their copies, and how certain both are.
#pragma once

#include <string_view>

#include "core/machine/cluster_spec.h"
#include "core/software/part_values.h"

namespace tpsim {

struct CpuOptimizerRow {
  std::string_view title;  // in sentences
  // Speed of the update of all ranks of a host, relative to one pass over weights, gradients and
  // moments at memory_efficiency of the host's memory bandwidth. It includes the cores: hosts of
  // the measured runs with more bandwidth have more cores too, and no run states its threads.
  double speed = 1;
  double spread = 0;  // standard deviation of log(time) over the measured runs
  // Whether gradients are copied in the dtype of the weights; false: in fp32, converted on the GPU.
  bool narrow_gradients = false;
  bool overlaps_backward = false;  // updates weights while the last backward runs
};

// Speeds and spreads are fitted on data/microbench/cpu_optimizers.csv, which has the sources.
const CpuOptimizerRow& row_of(CpuOptimizer kind);

// Standard deviation of log(time) of an offloaded update, wider if the cluster states no host.
double offload_spread(CpuOptimizer kind, const HostSpec& host);

}  // namespace tpsim
