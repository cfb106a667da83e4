// A guard of CUDA devices without action. It lets PyTorch's autograd run on tensors that claim to be
// on a CUDA device, in builds or on machines without one. Streams and events are numbers.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

thread_local Device device_now(DeviceType::CUDA, 0);
thread_local c10::StreamId stream_now = 0;
c10::StreamId last_stream = 0;
DeviceIndex devices = 1;

struct NoActionGuard final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override { return DeviceType::CUDA; }
  Device exchangeDevice(Device device) const override {
    const Device before = device_now;
    uncheckedSetDevice(device);
    return before;
  }
  Device getDevice() const override { return device_now; }
  void setDevice(Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(Device device) const noexcept override {
    device_now = Device(DeviceType::CUDA, device.has_index() ? device.index() : DeviceIndex{0});
  }
  Stream getStream(Device device) const override {
    return Stream(Stream::UNSAFE, device, stream_now);
  }
  Stream getDefaultStream(Device device) const override {
    return Stream(Stream::DEFAULT, device);
  }
  Stream getNewStream(Device device, int) const override {
    return Stream(Stream::UNSAFE, device, ++last_stream);
  }
  Stream getStreamFromGlobalPool(Device device, bool) const override {
    return getNewStream(device, 0);
  }
  Stream exchangeStream(Stream stream) const override {
    const Stream before(Stream::UNSAFE, stream.device(), stream_now);
    stream_now = stream.id();
    return before;
  }
  DeviceIndex deviceCount() const noexcept override { return devices; }
  void record(void**, const Stream&, DeviceIndex, c10::EventFlag) const override {}
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, DeviceIndex) const noexcept override {}
  void synchronizeEvent(void*) const override {}
  bool queryStream(const Stream&) const override { return true; }
  void synchronizeStream(const Stream&) const override {}
};

// Says that CUDA is there, in builds of PyTorch for the CPU.
struct NoActionHooks final : at::CUDAHooksInterface {
  explicit NoActionHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return devices; }
  DeviceIndex getCurrentDevice() const override { return device_now.index(); }
  void setCurrentDevice(DeviceIndex) const override {}
  int getNumGPUs() const override { return devices; }
};

const NoActionGuard guard;
const c10::impl::DeviceGuardImplRegistrar registrar(DeviceType::CUDA, &guard);

}  // namespace

extern "C" {
long tpsim_current_stream() { return stream_now; }
void tpsim_set_stream(long id) { stream_now = id; }
void tpsim_register_hooks() {
  static const at::RegistererCUDAHooksRegistry registered(
      "CUDAHooks", at::CUDAHooksRegistry(),
      at::RegistererCUDAHooksRegistry::DefaultCreator<NoActionHooks>);
}
void tpsim_set_devices(int count) { devices = static_cast<DeviceIndex>(count); }
}
