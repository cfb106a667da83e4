// Recorded times are sums per op and per collective.
#include "kernels/timing_recorder.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "kernels/meta/meta_device.h"
#include "ranks/meta/meta_communicator.h"
#include "tests/kernels/clock_device.h"
#include "tests/test_label.h"

namespace tpsim {
namespace {

using test::ClockDevice;

Tensor vector_of(Device& device, std::int64_t elements) {
  return device.allocate({elements}, DType::kFloat32, MemoryCategory::kWorkspace, "test");
}

// A collective that runs an op on its device.
class WorkingCommunicator final : public MetaCommunicator {
 public:
  using MetaCommunicator::MetaCommunicator;

 protected:
  void do_all_reduce(const Tensor& x, ReduceOp) override {
    device().run(Scale{x, 1.0F, test::kTest});
  }
};

}  // namespace

TEST_CASE("runs of one op add up, and different ops are kept apart") {
  ClockDevice device;
  const Tensor small = vector_of(device, 8), large = vector_of(device, 16);
  device.duration = [](const Op& op) {
    return std::get<Fill>(op).x.elements() == 8 ? std::int64_t{100} : std::int64_t{700};
  };
  TimingRecorder recorder(device);
  for (int i = 0; i < 3; ++i) device.run(Fill{small, 0.0F, {ModelPart::kMeasurement, "small"}});
  device.run(Fill{large, 0.0F, {ModelPart::kMeasurement, "large"}});
  const StepTimes times = recorder.take();
  REQUIRE(times.ops.size() == 2);
  CHECK(times.ops[0].count == 3);
  CHECK(times.ops[0].time.value() == Approx(300e-9));
  CHECK(times.ops[1].time.value() == Approx(700e-9));
  CHECK(std::string(times.ops[1].record.label.text) == "large");
  CHECK(recorder.take().ops.empty());
}

TEST_CASE("ops of a collective count as the collective's time") {
  ClockDevice device;
  const Tensor x = vector_of(device, 8);
  WorkingCommunicator group(device, GroupKind::kTensor, 0, 2);
  TimingRecorder recorder(device);
  group.all_reduce(x, ReduceOp::kSum, test::kTest);
  const StepTimes times = recorder.take();
  CHECK(times.ops.empty());
  REQUIRE(times.collectives.size() == 1);
  CHECK(times.collectives[0].record.bytes == 32);
  CHECK(times.collectives[0].time.value() == Approx(1000e-9));
}

TEST_CASE("a thread that waits for a core is detected") {
  ClockDevice device;
  const Tensor x = vector_of(device, 8);
  device.duration = [](const Op&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return std::int64_t{100};
  };
  TimingRecorder recorder(device);
  recorder.clear();
  device.run(Fill{x, 0.0F, test::kTest});
  recorder.take();
  CHECK(recorder.share_on_core() < 0.5);
}

TEST_CASE("a recorder restores the previous recorder of the device") {
  ClockDevice device;
  TraceRecorder before;
  device.set_recorder(&before);
  {
    const TimingRecorder recorder(device);
    CHECK(device.recorder() == &recorder);
  }
  CHECK(device.recorder() == &before);
}

}  // namespace tpsim
