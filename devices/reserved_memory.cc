#include "devices/reserved_memory.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/program/op_dims.h"
#include "kernels/block_cache.h"
#include "kernels/flash_memory.h"
#include "kernels/memory_cache.h"
#include "lowering/trace/rank_trace.h"
#include "reference_model/layers/rotary_table.h"
#include "reference_model/parallel/process_groups.h"

namespace tpsim::app {
namespace {

// Hands out addresses without allocating memory.
class CountedSegments final : public SegmentSource {
 public:
  void* acquire_segment(std::int64_t bytes) override {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): nothing is ever read or written there
    void* const data = reinterpret_cast<void*>(next_);
    next_ += static_cast<std::uintptr_t>(bytes) + kGap;
    return data;
  }
  void release_segment(void*, std::int64_t) override {}

 private:
  static constexpr std::uintptr_t kGap = kBlockAlignment;  // segments are not adjacent
  std::uintptr_t next_ = kGap;
};

// Bytes that the CUDA device allocates at the first op of a kind and never frees.
using Kept = std::map<OpKind, std::int64_t>;

Kept kept_by_ops(const ModelSpec& model) {
  Kept kept;
  // fp32 table of cosines and sines. Other rotary variants compute them in every call.
  if (rotary_table(model).is_plain && !model.attention.rotary.neighbours) {
    kept[OpKind::kRotary] = 4 * model.seq * turned_width(model.attention);
  }
  return kept;
}

constexpr std::int64_t kSteps = 2;  // the second step reuses the memory of the first

// Replays a program's events on an allocator, which has acquire(bytes), give_back(block, bytes),
// compute(key) and communicate(record).
template <class Allocator>
void replay(const Program& program, Allocator& allocator) {
  std::vector<void*> blocks(program.allocations.size());
  for (const ProgramEvent& event : program.events) {
    const std::size_t i = event.index;
    switch (event.kind) {
      case ProgramEvent::Kind::kAllocate:
        blocks[i] = allocator.acquire(program.allocations[i].bytes);
        break;
      case ProgramEvent::Kind::kFree:
        allocator.give_back(blocks[i], program.allocations[i].bytes);
        break;
      case ProgramEvent::Kind::kOp: allocator.compute(program.ops[i].key); break;
      case ProgramEvent::Kind::kCollective: allocator.communicate(program.collectives[i]); break;
    }
  }
}

class GpuReplay {
 public:
  GpuReplay(Kept kept, std::int64_t workspace, bool has_neighbours)
      : kept_(std::move(kept)), workspace_(workspace), has_neighbours_(has_neighbours) {}
  std::int64_t reserved() const { return cache_.peak_reserved_bytes(); }

  void* acquire(std::int64_t bytes) { return cache_.acquire(bytes); }
  void give_back(void* block, std::int64_t /*bytes*/) { cache_.give_back(block); }

  void compute(const OpKey& key) {
    if (const auto first = kept_.extract(key.kind)) cache_.acquire(first.mapped());
    if (key.kind == OpKind::kMatmul) work_in(workspace_);
    if (key.kind == OpKind::kFlashBackward) work_in(flash_backward_scratch(key));
  }

  // Each part allocates send copies for its first kMessageCopies messages: activations have one
  // communicator and size, and gradients.
  void communicate(const CollectiveRecord& message) {
    if (!has_neighbours_ || message.kind != CollectiveKind::kSend) return;
    if (++copies_[message.label.part] <= kMessageCopies) cache_.acquire(message.bytes);
  }

 private:
  // Grows the scratch buffer, which all ops share, to the largest request so far (CudaScratch).
  void work_in(std::int64_t bytes) {
    if (bytes <= scratch_bytes_) return;
    if (scratch_ != nullptr) cache_.give_back(scratch_);
    scratch_ = cache_.acquire(bytes);
    scratch_bytes_ = bytes;
  }

  Kept kept_;
  std::int64_t workspace_;
  bool has_neighbours_;
  void* scratch_ = nullptr;
  std::int64_t scratch_bytes_ = 0;
  std::map<ModelPart, int> copies_;
  CountedSegments segments_;
  BlockCache cache_{segments_};
};

class CpuReplay {
 public:
  std::int64_t reserved() const { return cache_.peak_reserved_bytes() + peak_scratch_; }

  void* acquire(std::int64_t bytes) { return cache_.acquire(bytes); }
  void give_back(void* block, std::int64_t bytes) { cache_.give_back(block, bytes); }

  // Grows the scratch buffer for fp32 copies. The larger buffer is allocated before the smaller one
  // is freed.
  void compute(const OpKey& key) {
    if (key.kind != OpKind::kMatmul || key.dtype == DType::kFloat32) return;
    const std::int64_t m = dim_of(key, GemmDim::kM), n = dim_of(key, GemmDim::kN),
                       k = dim_of(key, GemmDim::kK);
    const std::int64_t widened = size_of(DType::kFloat32) * (m * k + k * n + m * n);
    if (widened <= scratch_) return;
    peak_scratch_ = scratch_ + widened;
    scratch_ = widened;
  }

  void communicate(const CollectiveRecord& /*message*/) {}

 private:
  CountedSegments segments_;
  MemoryCache cache_{segments_};
  std::int64_t scratch_ = 0, peak_scratch_ = 0;
};

}  // namespace

Bytes reserved_memory(const ModelSpec& model, const Plan& plan, const StackSpec& stack,
                      std::int64_t rank, bool has_neighbours) {
  const RankTrace trace = trace_rank(model, plan, stack.training, rank, kSteps);
  const auto workspace = static_cast<std::int64_t>(stack.memory.library_workspace.value());
  GpuReplay gpu(kept_by_ops(model), workspace, has_neighbours);
  replay(trace.program, gpu);
  return Bytes(static_cast<double>(gpu.reserved()));
}

Bytes driver_memory_of(const ModelSpec& model, const Plan& plan, const StackSpec& stack,
                       std::int64_t rank, bool has_neighbours) {
  const Bytes own =
      stack.memory.context + reserved_memory(model, plan, stack, rank, has_neighbours);
  if (!has_neighbours) return own;
  std::int64_t communicators = 0;
  for (const FormedGroup& group : formed_groups(plan, stack.training, rank)) {
    communicators += group.communicators();
  }
  return own + static_cast<double>(communicators) * stack.memory.collective_buffers;
}

Bytes host_memory_of(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
                     std::int64_t rank) {
  const RankTrace trace = trace_rank(model, plan, options, rank, kSteps);
  CpuReplay cpu;
  replay(trace.program, cpu);
  return Bytes(static_cast<double>(cpu.reserved()));
}

Plan with_few_micro_batches(Plan plan) {
  // GPipe keeps all micro-batches in flight. Other schedules reach their steady state after pp
  // micro-batches, so twice as many suffice.
  if (plan.schedule == ScheduleKind::kGpipe) return plan;
  const std::int64_t few = std::min(micro_batches(plan), 2 * plan.degrees.pp);
  plan.global_batch = few * plan.micro_batch * plan.degrees.dp;
  return plan;
}

}  // namespace tpsim::app
