#include "kernels/cuda/runtime/cuda_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "kernels/cuda/attention/warpgroups.h"
#include "kernels/cuda/linear/cublas_lt.h"
#include "kernels/cuda/linear/matmul_8_bits.h"
#include "kernels/cuda/runtime/cuda_check.h"
#include "kernels/cuda/runtime/cuda_ops.h"
#include "kernels/cuda/runtime/delay.h"
#include "kernels/cuda/runtime/gpu_facts.h"

namespace tpsim {
namespace {

constexpr int kOldestMajor = 8;  // the kernels use Ampere instructions
constexpr const char* kAttentionVariable = "TPSIM_HOPPER_ATTENTION";
// Entries of AlgorithmChoices that name the attention kernels in use. The other entries are the
// selected GEMM algorithms.
constexpr std::string_view kByWarps = "attention by warps",
                           kByWarpgroups = "attention by warpgroups";

// Returns whether to use the sm_90a attention kernels. By default they are used if GPU and build
// support them. TPSIM_HOPPER_ATTENTION=0 disables them; 1 is an error if they are not supported.
Result<bool> uses_warpgroups(const cudaDeviceProp& gpu) {
  const char* const asked = std::getenv(kAttentionVariable);
  const std::string_view wish = asked == nullptr ? "" : asked;
  const bool is_hopper = gpu.major == 9 && gpu.minor == 0;
  if (wish.empty()) return is_hopper && has_warpgroup_kernels();
  if (wish == "0") return false;
  if (wish != "1") {
    return bad_input(
        fmt::format("{}={} is not valid: the value must be 0 or 1", kAttentionVariable, wish),
        kAttentionVariable, "set 1 for attention by warpgroups, 0 for attention by warps");
  }
  if (!has_warpgroup_kernels()) {
    return Error{ErrorKind::kMissing, "this build has no kernels for sm_90a", kAttentionVariable,
                 "build with -DCMAKE_CUDA_ARCHITECTURES=90, or unset the variable"};
  }
  if (is_hopper) return true;
  return Error{
      ErrorKind::kMissing,
      fmt::format(
          "{} has compute capability {}.{}, but attention by warpgroups needs 9.0 (H100, H200)",
          gpu.name, gpu.major, gpu.minor),
      kAttentionVariable, "unset the variable"};
}

Result<GpuLimits> limits_of(int index) {
  cudaDeviceProp gpu{};
  check_cuda(cudaGetDeviceProperties(&gpu, index), "cudaGetDeviceProperties");
  if (gpu.major < kOldestMajor) {
    return no_gpu(fmt::format("{} has compute capability {}.{}; tpsim needs 8.0 or newer", gpu.name,
                              gpu.major, gpu.minor));
  }
  TPSIM_TRY(const bool warpgroups, uses_warpgroups(gpu));
  return GpuLimits{gpu.multiProcessorCount, static_cast<std::int64_t>(gpu.sharedMemPerBlockOptin),
                   10 * gpu.major + gpu.minor, warpgroups};
}

// Location of this process's GPU, stored because CUDA cannot report it after a failure.
std::string& place() {
  static std::string text;
  return text;
}

std::string place_of(int index) {
  std::array<char, 64> host{}, bus{};
  static_cast<void>(gethostname(host.data(), host.size() - 1));
  static_cast<void>(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), index));
  return fmt::format(", GPU {} of {}", bus.data(), host.data());
}

// Oldest driver for this CUDA major version (CUDA's release notes, table 3).
int least_driver() { return CUDART_VERSION >= 13000 ? 580 : 525; }

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// Returns the reason why CUDA does not start: no driver, or a driver that is too old for this
// build. An old driver still reports its version.
std::string why_no_driver() {
  int offered = 0;
  if (cudaDriverGetVersion(&offered) != cudaSuccess || offered == 0) {
    return "the NVIDIA driver is not installed";
  }
  constexpr int kMajor = CUDART_VERSION / 1000;
  return fmt::format(
      "the NVIDIA driver supports CUDA {}, but this build needs {}.0: install driver {} or newer "
      "or the package cuda-compat-{}-0, or build tpsim with the CUDA version of the driver",
      version_text(offered), kMajor, least_driver(), kMajor);
}

// Returns the library and GPU for which selected algorithms are valid. Their speed and encoding
// depend on both.
std::string chooser(const MatmulPlans& matmuls) {
  return fmt::format("cuBLASLt {} on {}", matmuls.library_version(), gpu_facts().name);
}

}  // namespace

PinnedRing::~PinnedRing() {
  for (const cudaEvent_t event : done_) static_cast<void>(cudaEventDestroy(event));
  if (memory_ != nullptr) static_cast<void>(cudaFreeHost(memory_));
}

void PinnedRing::upload(std::span<const std::byte> from, void* to, cudaStream_t stream) {
  if (memory_ == nullptr) {
    void* memory = nullptr;
    check_cuda(cudaMallocHost(&memory, kPlaces * kPlaceBytes), "cudaMallocHost");
    memory_ = static_cast<std::byte*>(memory);
  }
  if (next_ == done_.size()) {
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    done_.push_back(event);
  } else {
    check_cuda(cudaEventSynchronize(done_[next_]), "waiting for an upload");
  }
  std::byte* const place = memory_ + next_ * kPlaceBytes;
  std::memcpy(place, from.data(), from.size());
  check_cuda(cudaMemcpyAsync(to, place, from.size(), cudaMemcpyHostToDevice, stream), "upload");
  check_cuda(cudaEventRecord(done_[next_], stream), "cudaEventRecord");
  next_ = (next_ + 1) % kPlaces;
}

void fail_cuda(cudaError_t error, const char* what) {
  throw CudaFailure(fmt::format("{}: {} ({}{})", what, cudaGetErrorString(error),
                                cudaGetErrorName(error), place()));
}

Error no_gpu(const std::string& why) {
  return {ErrorKind::kMissing, "no GPU: " + why, "--device cuda", "use --device cpu"};
}

GpuCount visible_gpus() {
  // Streams that share a hardware queue may wait for each other. CUDA reads the variable at its
  // first call.
  static_cast<void>(setenv(kQueuesVariable, std::to_string(kMostQueues).c_str(), 0));
  GpuCount count;
  const cudaError_t error = cudaGetDeviceCount(&count.gpus);
  if (error == cudaSuccess && count.gpus > 0) return count;
  static_cast<void>(cudaGetLastError());
  if (error == cudaErrorInsufficientDriver) return {0, why_no_driver()};
  return {0, error == cudaSuccess ? "the NVIDIA driver finds no GPU" : cudaGetErrorString(error)};
}

Result<std::unique_ptr<CudaDevice>> CudaDevice::create(int index) {
  const GpuCount count = visible_gpus();
  if (count.gpus == 0) return no_gpu(count.why_none);
  if (index >= count.gpus) {
    return no_gpu(
        fmt::format("GPU {} was requested, counted from 0, but the number of visible GPUs is {}",
                    index, count.gpus));
  }
  if (!cublas_lt().ok()) return cublas_lt().error();
  TPSIM_TRY(const GpuLimits limits, limits_of(index));
  check_cuda(cudaSetDevice(index), "cudaSetDevice");
  place() = place_of(index);
  if (const cudaError_t error = can_start_kernels(); error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    const GpuFacts gpu = gpu_facts();
    return no_gpu(fmt::format(
        "{} has compute capability {}.{}, for which this build has no kernels ({}); "
        "tpsim --version lists its architectures; build with CMAKE_CUDA_ARCHITECTURES to add one",
        gpu.name, gpu.capability_major, gpu.capability_minor, cudaGetErrorName(error)));
  }
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  auto state = std::make_unique<CudaState>(stream, limits, MatmulPlans(*cublas_lt()));
  return std::unique_ptr<CudaDevice>(new CudaDevice(std::move(state)));
}

std::string CudaDevice::refusal_reason(Precision recipe) const {
  return tpsim::refusal_reason(
      recipe, {gpu_facts().name, limits().capability, state_->matmuls.library_version()});
}

// Errors are ignored, because the destructor also runs while the exception of a broken device
// propagates.
CudaDevice::~CudaDevice() {
  static_cast<void>(cudaStreamSynchronize(stream()));
  for (const cudaEvent_t event : events_) static_cast<void>(cudaEventDestroy(event));
  const cudaStream_t work = stream();
  state_.reset();
  static_cast<void>(cudaStreamDestroy(work));
}

void CudaDevice::upload(std::span<const std::byte> from, const Tensor& to) {
  TPSIM_CHECK(static_cast<std::int64_t>(from.size()) == to.bytes(), "upload fills the tensor");
  if (from.size() <= PinnedRing::kPlaceBytes) return uploads_.upload(from, to.raw(), stream());
  check_cuda(cudaMemcpyAsync(to.raw(), from.data(), from.size(), cudaMemcpyHostToDevice, stream()),
             "upload");
  synchronize();
}

void CudaDevice::download(const Tensor& from, std::span<std::byte> to) {
  TPSIM_CHECK(static_cast<std::int64_t>(to.size()) == from.bytes(), "download takes the tensor");
  check_cuda(cudaMemcpyAsync(to.data(), from.raw(), to.size(), cudaMemcpyDeviceToHost, stream()),
             "download");
  synchronize();
}

void CudaDevice::synchronize() {
  check_cuda(cudaStreamSynchronize(stream()), "waiting for the GPU");
}

DeviceMark CudaDevice::mark() {
  if (marks_ == events_.size()) {
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreate(&event), "cudaEventCreate");
    events_.push_back(event);
  }
  check_cuda(cudaEventRecord(events_[marks_], stream()), "cudaEventRecord");
  return {static_cast<std::int64_t>(marks_++)};
}

double CudaDevice::seconds_between(DeviceMark earlier, DeviceMark later) {
  const auto event = [&](DeviceMark mark) {
    TPSIM_CHECK(mark.value >= 0 && mark.value < static_cast<std::int64_t>(marks_),
                "a mark since the last forget_marks()");
    return events_[static_cast<std::size_t>(mark.value)];
  };
  check_cuda(cudaEventSynchronize(event(later)), "cudaEventSynchronize");
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, event(earlier), event(later)),
             "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

Status CudaDevice::start_recording() {
  records_ = true;
  return Ok{};
}

void CudaDevice::repeat(const std::function<void()>& work, std::span<const Tensor> inputs,
                        int variant) {
  if (!records_) return work();
  auto& [plan, record] = repeated_[variant];
  RecordKey key{{}, memory_changes(), allocated_bytes()};
  for (const Tensor& input : inputs) key.inputs.push_back(input.raw());
  switch (plan.next(key)) {
    case RepeatPlan::Action::kIssue: return work();
    case RepeatPlan::Action::kRecord:
      record.record(stream(), work);
      if (memory_changes() != key.memory_changes) return work();  // recorded at the next call
      break;
    case RepeatPlan::Action::kReplay: break;
  }
  record.start(stream());
}

std::int64_t CudaDevice::memory_changes() const {
  return state_->memory.releases() + state_->scratch.moves() + state_->kept_scratch.moves();
}

bool CudaDevice::delay(double seconds) {
  delay_stream(seconds, stream());
  return true;
}

AlgorithmChoices CudaDevice::algorithms() const {
  AlgorithmChoices all{chooser(state_->matmuls), {}};
  all.choices.emplace_back(limits().uses_warpgroups ? kByWarpgroups : kByWarps);
  for (const MatmulChoice& choice : state_->matmuls.choices()) {
    all.choices.push_back(to_text(choice));
  }
  return all;
}

// Ignores choices for another library or GPU, and texts that it cannot parse.
void CudaDevice::use_algorithms(const AlgorithmChoices& earlier) {
  if (earlier.chosen_by != chooser(state_->matmuls)) return;
  std::vector<MatmulChoice> choices;
  for (const std::string& text : earlier.choices) {
    // Can only disable the warpgroup kernels, which are the default if supported.
    if (text == kByWarps && std::getenv(kAttentionVariable) == nullptr) {
      state_->limits.uses_warpgroups = false;
    }
    if (const auto choice = parse_matmul_choice(text); choice.ok()) choices.push_back(*choice);
  }
  state_->matmuls.use(choices);
}

void CudaDevice::execute(const Op& op) {
  std::visit([&](const auto& any) { compute(any, *state_); }, op);
  check_cuda(cudaGetLastError(), "launching an op");
}

void* CudaDevice::acquire(std::int64_t bytes) {
  void* data = state_->memory.acquire(bytes);
  if (data == nullptr) {
    const DriverMemory driver = driver_memory();
    throw OutOfDeviceMemory(fmt::format(
        "the GPU has no memory left for a tensor of {} bytes: tensors use {} of the {} bytes that "
        "this process reserved, and {} of the GPU's {} bytes are in use",
        bytes, allocated_bytes(), state_->memory.reserved_bytes(), driver.used, driver.total));
  }
  return data;
}

void CudaDevice::give_back(void* data, std::int64_t) { state_->memory.give_back(data); }

void CudaScratch::release() {
  if (data_ != nullptr) memory_.give_back(data_);
  data_ = nullptr;
  size_ = 0;
}

void* CudaScratch::bytes(std::int64_t count) {
  if (count <= size_) return data_;
  release();
  data_ = memory_.acquire(count);
  if (data_ == nullptr) {
    throw OutOfDeviceMemory(
        fmt::format("the GPU has no memory left for a workspace of {} bytes", count));
  }
  size_ = count;
  ++moves_;
  return data_;
}

}  // namespace tpsim
