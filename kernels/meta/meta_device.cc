#include "kernels/meta/meta_device.h"

#include <algorithm>

namespace tpsim {

void MetaDevice::download(const Tensor&, std::span<std::byte> to) {
  std::fill(to.begin(), to.end(), std::byte{0});
}

Program TraceRecorder::take() {
  is_taken_ = true;
  return std::move(program_);
}

TraceRecorder::Position TraceRecorder::position() const {
  return {program_.ops.size(), program_.collectives.size(), program_.allocations.size(),
          program_.events.size()};
}

void TraceRecorder::rewind(const Position& to) {
  const auto keep = [](auto& records, std::size_t count) {
    records.erase(records.begin() + static_cast<std::ptrdiff_t>(count), records.end());
  };
  keep(program_.ops, to.ops);
  keep(program_.collectives, to.collectives);
  keep(program_.allocations, to.allocations);
  keep(program_.events, to.events);
}

void TraceRecorder::append(ProgramEvent::Kind kind, std::size_t index) {
  program_.events.push_back({kind, static_cast<std::uint32_t>(index)});
}

void TraceRecorder::op_started(const OpRecord& record) {
  append(ProgramEvent::Kind::kOp, program_.ops.size());
  program_.ops.push_back(record);
  std::uint32_t& input = program_.ops.back().input;
  if (input != kNoAllocation) {
    TPSIM_CHECK(input < allocation_of_id_.size(), "a tensor was allocated before the recorder");
    input = allocation_of_id_[input];
  }
}

void TraceRecorder::collective_started(const CollectiveRecord& record) {
  append(ProgramEvent::Kind::kCollective, program_.collectives.size());
  program_.collectives.push_back(record);
}

void TraceRecorder::allocated(std::uint32_t id, const AllocationRecord& record) {
  append(ProgramEvent::Kind::kAllocate, program_.allocations.size());
  if (id >= allocation_of_id_.size()) allocation_of_id_.resize(id + 1);
  allocation_of_id_[id] = static_cast<std::uint32_t>(program_.allocations.size());
  program_.allocations.push_back(record);
}

void TraceRecorder::freed(std::uint32_t id) {
  if (is_taken_) return;
  TPSIM_CHECK(id < allocation_of_id_.size(), "freed before it was allocated");
  append(ProgramEvent::Kind::kFree, allocation_of_id_[id]);
}

}  // namespace tpsim
