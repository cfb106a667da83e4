// A device: memory and ops. The reference model is written against this class alone.
//
// run() checks an op's shapes, tells the recorder, and hands the op to the device. Devices differ
// only in execute(): nothing on the meta device, loops on the CPU, kernels on a GPU.
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

// A point in a device's work: nanoseconds of the host's clock where ops are done when run()
// returns, an event's index on an asynchronous device.
struct DeviceMark {
  std::int64_t value = 0;
};

// Who listens to what a device does: the tracer, the timer, or nobody.
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

// Work that goes on beside a device's ops and that the host has a part in.
class OverlappedWork {
 public:
  // Does what can be done without waiting, and issues no op.
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

  // Uninitialised memory. `label` has static storage. Running out of memory throws
  // OutOfDeviceMemory.
  Tensor allocate(Shape shape, DType dtype, MemoryCategory category, const char* label);

  void run(const Op& op);
  // An op of which there is a record but no kernel: on devices that compute nothing.
  void note(const OpRecord& record);

  // Between host memory and a tensor. `from` may be changed at once; a download waits for the
  // device. The meta device downloads zeros.
  virtual void upload(std::span<const std::byte> from, const Tensor& to) = 0;
  virtual void download(const Tensor& from, std::span<std::byte> to) = 0;
  // Until everything issued has been done.
  virtual void synchronize() = 0;

  // Whether tensors hold anything: false of the meta device.
  virtual bool computes() const { return true; }

  // Whether it has kernels for every op, whatever its settings; false of a GPU.
  virtual bool computes_all() const { return true; }

  // Why it does not round operands of products by the recipe (OperandRounding); empty where it
  // does.
  virtual std::string refusal_reason(Precision recipe) const {
    return recipe == Precision::kNone ? "" : "it rounds no operands";
  }

  // Notes where the device's work stands. Cheap enough to stand around every op.
  virtual DeviceMark mark();
  // Time from one mark to a later one; waits until the device has got there.
  virtual double seconds_between(DeviceMark earlier, DeviceMark later);
  // All marks so far may be reused.
  virtual void forget_marks() {}
  // Delays what is issued next to an asynchronous device by about so long; the host goes on. False
  // on devices whose ops are done when run() returns: nothing happens there.
  virtual bool delay(double /*seconds*/) { return false; }

  // From now on repeat() may record work. kBadInput on a device that cannot.
  virtual Status start_recording();
  virtual bool records() const { return false; }
  // Runs `work`, which issues the same ops on the same memory whenever `variant` is the same and
  // `inputs` lie where they lay before, and leaves no other trace on the host. A device that
  // records runs its record.
  virtual void repeat(const std::function<void()>& work, std::span<const Tensor> /*inputs*/,
                      int /*variant*/) {
    work();
  }

  // Algorithms that were chosen by trying; empty on a device that tries none.
  virtual AlgorithmChoices algorithms() const { return {}; }
  // Starts from earlier choices. What another library or device chose is left alone, and tried
  // anew.
  virtual void use_algorithms(const AlgorithmChoices& /*earlier*/) {}
  // Of the device's memory, what is in use altogether: tensors, what the allocator keeps,
  // libraries. 0 where only tensors are known of.
  virtual std::int64_t used_bytes() const { return 0; }

  // The recorder outlives its use here; null records nothing.
  void set_recorder(Recorder* recorder) { recorder_ = recorder; }
  Recorder* recorder() const { return recorder_; }

  // From now on until it is removed `work` goes on before every op.
  void add_overlapped(OverlappedWork& work) { beside_.push_back(&work); }
  void remove_overlapped(OverlappedWork& work) { std::erase(beside_, &work); }

  std::int64_t allocated_bytes() const { return allocated_; }
  std::int64_t peak_allocated_bytes() const { return peak_; }

 protected:
  virtual void execute(const Op& op) = 0;
  // Memory for at least `bytes`, aligned to 256; null only where there is no storage.
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

// The device has no memory left for a tensor. Caught where a step is started.
class OutOfDeviceMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The one element of an fp32 tensor, on the host.
float download_scalar(Device& device, const Tensor& scalar);

}  // namespace tpsim
