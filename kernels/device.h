// Interface of a device, which allocates memory and runs ops. The reference model uses no other
// interface to hardware.
//
// run() checks an op's shapes, notifies the recorder and executes the op. Devices differ in
// execute(): no-ops on the meta device, loops on the CPU, kernels on a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/machine/profile.h"
#include "core/program/program.h"
#include "kernels/ops.h"
#include "kernels/tensor.h"

namespace tpsim {

// A point in a device's sequence of ops, for timing. `value` is a host time in nanoseconds on
// synchronous devices and the index of an event on asynchronous devices.
struct DeviceMark {
  std::int64_t value = 0;
};

// Observer of a device: the tracer or the timer.
class Recorder {
 public:
  virtual ~Recorder() = default;
  // Called around every op and collective. On an asynchronous device `finished` means issued.
  virtual void op_started(const OpRecord&) {}
  virtual void op_finished(const OpRecord&) {}
  virtual void collective_started(const CollectiveRecord&) {}
  virtual void collective_finished(const CollectiveRecord&) {}
  // Called around the host's work for overlapped collectives, and around the wait for their end.
  // `record` is the oldest collective in flight.
  virtual void collective_resumed(const CollectiveRecord&) {}
  virtual void collective_paused(const CollectiveRecord&) {}
  // `id` identifies the allocation until freed(id).
  virtual void allocated(std::uint32_t id, const AllocationRecord&) { static_cast<void>(id); }
  virtual void freed(std::uint32_t id) { static_cast<void>(id); }
};

// Work that the host must drive while a device's ops run, such as an overlapped collective.
class OverlappedWork {
 public:
  // Makes progress without waiting. Issues no op.
  virtual void progress() = 0;

 protected:
  ~OverlappedWork() = default;
};

class Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Allocates uninitialized memory. `label` must have static storage. Throws OutOfDeviceMemory.
  Tensor allocate(Shape shape, DType dtype, MemoryCategory category, const char* label,
                  AllocationRole role = AllocationRole::kOther);

  void run(const Op& op);
  // Passes the record of an op without a kernel to the recorder. Only for devices that do not
  // compute.
  void note(const OpRecord& record);

  // Copy between host memory and a tensor. After upload() the caller may change `from`. download()
  // waits for the device. The meta device downloads zeros.
  virtual void upload(std::span<const std::byte> from, const Tensor& to) = 0;
  virtual void download(const Tensor& from, std::span<std::byte> to) = 0;
  // Waits for all issued work.
  virtual void synchronize() = 0;

  // Whether tensors have values; false for the meta device.
  virtual bool computes() const { return true; }

  // Whether the device has kernels for every op with all settings; false for a GPU.
  virtual bool computes_all() const { return true; }

  // Returns the reason why the device cannot quantize GEMM operands by the recipe
  // (OperandRounding); empty if it can.
  virtual std::string refusal_reason(Precision recipe) const {
    return recipe == Precision::kNone ? "" : "this device does not quantize GEMM operands";
  }

  // Marks the current point in the device's work. Cheap enough to call around every op.
  virtual DeviceMark mark();
  // Returns the time between two marks in seconds. Waits until the device has reached the later
  // mark.
  virtual double seconds_between(DeviceMark earlier, DeviceMark later);
  // Allows the device to reuse all marks made so far.
  virtual void forget_marks() {}
  // Delays later work on an asynchronous device by about `seconds`, without blocking the host.
  // Returns false and does nothing on synchronous devices.
  virtual bool delay(double /*seconds*/) { return false; }

  // Enables recording (CUDA graphs) by repeat(). kBadInput if the device cannot record.
  virtual Status start_recording();
  virtual bool records() const { return false; }
  // Runs `work`, or replays its recording if the device records. For equal `variant` and equal
  // addresses of `inputs`, `work` must issue the same ops on the same memory, without other effects
  // on the host.
  virtual void repeat(const std::function<void()>& work, std::span<const Tensor> /*inputs*/,
                      int /*variant*/) {
    work();
  }

  // Returns the algorithms that were selected by timing; empty on devices without such a choice.
  virtual AlgorithmChoices algorithms() const { return {}; }
  // Sets choices of an earlier run, so that these algorithms are not timed again. Choices for other
  // libraries or devices are ignored.
  virtual void use_algorithms(const AlgorithmChoices& /*earlier*/) {}
  // Returns the device memory in use in bytes: tensors, allocator cache and libraries. 0 if only
  // tensors are counted.
  virtual std::int64_t used_bytes() const { return 0; }

  // Sets the observer, which must outlive its use; null removes it.
  void set_recorder(Recorder* recorder) { recorder_ = recorder; }
  Recorder* recorder() const { return recorder_; }

  // Calls work.progress() before every op until the work is removed.
  void add_overlapped(OverlappedWork& work) { beside_.push_back(&work); }
  void remove_overlapped(OverlappedWork& work) { std::erase(beside_, &work); }

  std::int64_t allocated_bytes() const { return allocated_; }
  std::int64_t peak_allocated_bytes() const { return peak_; }

 protected:
  virtual void execute(const Op& op) = 0;
  // Returns at least `bytes` bytes, aligned to 256; null only on devices without storage.
  virtual void* acquire(std::int64_t bytes) = 0;
  virtual void give_back(void* data, std::int64_t bytes) = 0;

 private:
  friend class Storage;
  void release(void* data, std::int64_t bytes, std::uint32_t id);

  Recorder* recorder_ = nullptr;
  std::vector<OverlappedWork*> beside_;
  std::uint32_t next_id_ = 0;
  std::int64_t allocated_ = 0;
  std::int64_t peak_ = 0;
};

// Thrown if the device has no memory left for a tensor. The caller that starts a step catches it.
class OutOfDeviceMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns the element of a one-element fp32 tensor.
float download_scalar(Device& device, const Tensor& scalar);

}  // namespace tpsim
