// Who listens to what a device does: the tracer, the timer, or nobody.
#pragma once

#include <cstdint>

#include "core/program.h"

namespace tpsim {

class Recorder {
 public:
  virtual ~Recorder() = default;
  // Around every op and collective. On an asynchronous device `finished` means issued.
  virtual void op_started(const OpRecord&) {}
  virtual void op_finished(const OpRecord&) {}
  virtual void collective_started(const CollectiveRecord&) {}
  virtual void collective_finished(const CollectiveRecord&) {}
  // Around what the host does later for collectives that run beside ops, and around the wait for
  // their end; `record` is that of the oldest.
  virtual void collective_resumed(const CollectiveRecord&) {}
  virtual void collective_paused(const CollectiveRecord&) {}
  // `id` names the allocation until it is freed.
  virtual void allocated(std::uint32_t id, const AllocationRecord&) { static_cast<void>(id); }
  virtual void freed(std::uint32_t id) { static_cast<void>(id); }
};

}  // namespace tpsim
