// Invariants of a lowered layer, which lower() and lower_step_end() check after every pass.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lowering/passes/lowered_layer.h"

namespace tpsim {

// Sums over the events of all phases that a pass may change. A pass conserves the others.
struct PassChanges {
  bool flops = false;
  bool bytes = false;   // that ops and copies read and write
  bool sent = false;    // bytes of collectives
  bool memory = false;  // sizes of tensors, and tensors that the pass adds
};

// Checks a layer after each pass.
class LayerVerifier {
 public:
  // Throws BugError if the traced layer is not valid.
  void start(const LoweredLayer& traced);
  // Throws BugError, "failed after PASS: ...", if the layer is not valid after the pass, or if the
  // pass changed a sum that it does not declare. A layer is valid if
  // - every event has a record,
  // - a tensor of the trace is allocated and freed as often as in the trace, at most once each,
  // - a tensor that a pass adds is allocated once and freed once,
  // - the phase that starts a collective waits for it, or for that of the layer before.
  void check(const LoweredLayer& layer, std::string_view pass, const PassChanges& changes);

 private:
  struct Sums {
    double flops = 0, bytes = 0, sent = 0, memory = 0;
    std::int64_t traced_allocations = 0, traced_frees = 0;
  };
  // Returns what is wrong with the layer; empty if nothing is.
  std::string fault(const LoweredLayer& layer, const PassChanges& changes);
  std::string add_event(const LoweredLayer& layer, const LoweredEvent& event, Sums& sums);
  std::string add_start(const LoweredCollective& record, std::uint32_t index);
  std::string add_wait(const LoweredCollective& record, std::uint32_t index);
  std::string add_memory(const LoweredLayer& layer, const LoweredEvent& event, Sums& sums);

  struct Started {
    std::uint32_t index = 0;  // of the collective
    bool is_started = false, is_awaited = false;
  };

  Sums before_;
  std::vector<Started> started_;     // in a phase
  std::vector<std::uint8_t> moves_;  // of each allocation, bits
};

}  // namespace tpsim
