// Streams and events of a GPU on the host. Work is queued and runs as late as possible: when it is
// waited for. Missing synchronization therefore reads old values here too.
//
// Any thread may call; only one runs at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace tpsim::emulated {

// Runs a piece of work. Returns true when it is complete. If false, the work is called again, and
// other streams progress meanwhile.
using Work = std::function<bool()>;

// State of an event: whether it has occurred, and when.
struct Completion {
  bool passed = false;
  bool recorded = false;  // captured in a graph, so that no wait is possible
  double at_s = 0;
};

// Lock of all functions of the runtime and its libraries.
std::unique_lock<std::mutex> at_work();

// The following functions require at_work().

cudaStream_t new_stream();
void delete_stream(cudaStream_t stream);  // after finishing it
void enqueue(cudaStream_t stream, Work work);

// Runs work until `done()`. Other streams run only as far as necessary.
void work_until(cudaStream_t first, const std::function<bool()>& done);
void finish(cudaStream_t stream);
void finish_all();
// Runs one piece of work, if any, for callers that poll.
void work_a_little();

// During capture, a stream's work is stored and not queued.
void begin_recording(cudaStream_t stream);
bool is_recorded(cudaStream_t stream);
std::vector<Work> end_recording(cudaStream_t stream);

double now_s();

// Whether TPSIM_EMULATED_GPU, a comma-separated list, contains this word:
//   idle                see works()
//   old-driver          the driver is of CUDA 12.4
//   other-architecture  a GPU for which the build has no kernels
//   one-algorithm       cuBLASLt offers one algorithm, so that results are bit-reproducible
//   other-algorithm     cuBLASLt offers its second algorithm only, which adds in another order
//   ampere, ada, blackwell  compute capability 8.0, 8.9 or 10.0; default 9.0
//   cublas-12.4, cublas-12.8  an older cuBLASLt, without later features
//   one-multiprocessor  one SM, so that small ops run the loops of large ones
//   small-blocks        shared memory per block of a GeForce
bool is_played(std::string_view way);
int compute_capability();  // 90 for 9.0

// Whether kernels and GEMMs compute. With TPSIM_EMULATED_GPU=idle they do not, and memory has an
// H200's size but is never touched. Allocations of models of any size work, without results.
bool works();

}  // namespace tpsim::emulated
