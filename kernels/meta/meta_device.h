// A device without storage: ops are recorded but not executed. The reference model runs on it to
// trace a rank's Program.
#pragma once

#include "kernels/device.h"

namespace tpsim {

class MetaDevice final : public Device {
 public:
  void upload(std::span<const std::byte>, const Tensor&) override {}
  void download(const Tensor& from, std::span<std::byte> to) override;
  void synchronize() override {}
  bool computes() const override { return false; }

 protected:
  void execute(const Op&) override {}
  void* acquire(std::int64_t) override { return nullptr; }
  void give_back(void*, std::int64_t) override {}
};

// Appends every record to a Program. Must be set before the device's first allocation.
class TraceRecorder final : public Recorder {
 public:
  void op_started(const OpRecord& record) override;
  void collective_started(const CollectiveRecord& record) override;
  void allocated(std::uint32_t id, const AllocationRecord& record) override;
  void freed(std::uint32_t id) override;

  const Program& program() const { return program_; }
  // Returns the program. Later events are not recorded.
  Program take();
  // A point in the program. rewind() drops what was recorded after it.
  struct Position {
    std::size_t ops = 0, collectives = 0, allocations = 0, events = 0;
  };
  Position position() const;
  void rewind(const Position& to);
  // Index of the next event. Two marks delimit a part of the program.
  std::size_t mark() const { return program_.events.size(); }

 private:
  void append(ProgramEvent::Kind kind, std::size_t index);

  Program program_;
  bool is_taken_ = false;
  std::vector<std::uint32_t> allocation_of_id_;
};

}  // namespace tpsim
