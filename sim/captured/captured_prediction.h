// Predicts a captured step on a cluster.
//
// The host issues ops in the program's order. A stream runs its ops one after another, and not
// before the host has issued them and the marks that it waits for have passed. The step is the
// longest path. Ops of other streams do not slow an op down. Memory is the sum of storages that are
// alive, and what device, libraries and allocator add.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/captured/captured_step.h"
#include "core/machine/cluster_spec.h"
#include "core/machine/profile.h"
#include "core/plan/report.h"
#include "core/software/stack_spec.h"
#include "sim/captured/kernel_work.h"

namespace tpsim {

struct CapturedMachine {
  ClusterSpec cluster;
  Profile profile;
  StackSpec stack;  // host times, and what device and allocator add to memory
};

// Device time of one kind of op, or of all collectives of one kind.
struct CapturedTime {
  std::string what;
  std::int64_t count = 0;
  Seconds time;
};

// An op or a collective on its stream, with the memory in use when it begins.
struct CapturedSpan {
  std::uint32_t event = 0;  // into CapturedStep::events
  Seconds begin, end;
  std::array<double, kMemoryCategoryCount> bytes{};
};

struct CapturedPrediction {
  Seconds step, step_low, step_high;  // 90 % interval
  // Parts of the step: the compute stream runs ops, waits for collectives, or waits for the host.
  Seconds busy, exposed, host_wait;
  std::vector<CapturedTime> ops;          // of the compute streams, the longest first
  std::vector<CapturedTime> collectives;  // also where they overlap
  std::array<Seconds, 3> by_phase{};      // ops by CapturedPhase
  std::vector<CapturedTime> modules;      // ops by module, layers of one list added; longest first
  std::vector<CapturedTime> rough;        // ops whose kernels are not those that the profile timed
  StageMemory memory;
  Bytes peak, capacity;
  double p_oom = 0;
  double flops = 0;  // of GEMMs and attention
  Sources sources;
  std::vector<CapturedSpan> spans;  // in the order in which the host issues them
  StageMemory overheads;            // memory beside tensors
};

// Error if the cluster has fewer GPUs than the program has ranks.
Result<CapturedPrediction> predict_captured(const CapturedStep& step,
                                            const CapturedMachine& machine);

}  // namespace tpsim
