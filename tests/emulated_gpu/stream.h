// Streams and events of a GPU on the host. Work is queued and done as late as the program lets it:
// when somebody waits for it. So what forgets to wait reads old values here, too.
//
// Any thread may call; one at a time is at work.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace tpsim::emulated {

// Does its work, or a part of it; true when nothing is left to do. One that returns false is asked
// again, and other streams go on meanwhile.
using Work = std::function<bool()>;

// Whether an event's place in a stream has been passed, and when.
struct Completion {
  bool passed = false;
  bool recorded = false;  // with its stream: nobody can wait for it
  double at_s = 0;
};

// Held by every function of the runtime and its libraries.
std::unique_lock<std::mutex> at_work();

// The rest demands at_work().

cudaStream_t new_stream();
void delete_stream(cudaStream_t stream);  // after finishing it
void enqueue(cudaStream_t stream, Work work);

// Works until `done()`; streams that it does not depend on stay behind where they can.
void work_until(cudaStream_t first, const std::function<bool()>& done);
void finish(cudaStream_t stream);
void finish_all();
// One piece of work, where there is any: for those who ask again and again.
void work_a_little();

// While a stream is recorded its work is kept, not queued.
void begin_recording(cudaStream_t stream);
bool is_recorded(cudaStream_t stream);
std::vector<Work> end_recording(cudaStream_t stream);

double now_s();

// Whether TPSIM_EMULATED_GPU, words with commas between them, asks for this:
//   idle                see works()
//   old-driver          the driver is of CUDA 12.4
//   other-architecture  no kernel of the build runs on this GPU
//   one-algorithm       cuBLASLt has no choice to offer: the same work has the same bits
//   other-algorithm     the same of its second algorithm, which adds in another order
//   ampere, ada, blackwell  compute capability 8.0, 8.9 or 10.0; 9.0 where nobody says so
//   cublas-12.4, cublas-12.8  an older cuBLASLt, without what it has learned since
//   one-multiprocessor  small ops go round the loops that only large ones do
//   small-blocks        a block has no more shared memory than a GeForce's
bool is_played(std::string_view way);
int compute_capability();  // 90 for 9.0

// Whether kernels and products do their work. With TPSIM_EMULATED_GPU=idle they do not, and memory
// is an H200's of which nothing is touched: the allocations of models of any size, and no results.
bool works();

}  // namespace tpsim::emulated
