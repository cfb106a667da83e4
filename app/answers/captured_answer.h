// The prediction of a captured step of a PyTorch program on a cluster.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/captured/captured_step.h"
#include "sim/captured/captured_prediction.h"

namespace tpsim::app {

// Names are catalogue names or paths. Empty: the profile of the cluster, and a stack of plain
// PyTorch, whose host times and memory overheads count.
struct CapturedRequest {
  std::string path;
  std::string cluster, profile, stack;
  double node_gbps = 0;            // network bandwidth per node in Gb/s; 0: the cluster's
  std::int64_t ranks = 0;          // core/captured/scaled_step.h; 0: as captured
  std::int64_t micro_batches = 1;  // between two updates
};

struct CapturedAnswer {
  CapturedStep step;
  CapturedMachine machine;
  CapturedPrediction predicted;
};
Result<CapturedAnswer> captured_answer(const CapturedRequest& request);
// The same for a step that was read from the request's path.
Result<CapturedAnswer> captured_answer(const CapturedRequest& request, CapturedStep step);

}  // namespace tpsim::app
