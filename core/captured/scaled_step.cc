#include "core/captured/scaled_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tpsim {
namespace {

using Kind = CapturedEvent::Kind;

bool runs(const CapturedEvent& event) {
  return event.kind == Kind::kKernel || event.kind == Kind::kCollective;
}

bool moves_memory(const CapturedEvent& event) {
  return event.kind == Kind::kAllocate || event.kind == Kind::kFree;
}

// Whether every rank's group of this shape reaches from the first to the last part of the ranks.
bool is_outermost(const std::vector<std::int64_t>& group, std::int64_t world) {
  if (group.size() < 2) return false;
  const std::int64_t stride = group[1] - group[0];
  for (std::size_t i = 1; i < group.size(); ++i) {
    if (group[i] - group[i - 1] != stride) return false;
  }
  return stride * static_cast<std::int64_t>(group.size()) == world;
}

// Whether forward gathers over one of the groups.
bool is_sharded(const CapturedStep& step, const std::vector<bool>& grows) {
  return std::any_of(step.events.begin(), step.events.end(), [&](const CapturedEvent& event) {
    if (event.kind != Kind::kCollective || event.phase != CapturedPhase::kForward) return false;
    const CapturedCollective& one = step.collectives[event.index];
    return one.kind == CollectiveKind::kAllGather && grows[one.group];
  });
}

double bytes_of(const CapturedKernel& kernel) {
  if (kernel.bytes > 0) return static_cast<double>(kernel.bytes);
  double bytes = 0;
  for (const CapturedTensor& one : kernel.in) bytes += one.bytes();
  for (const CapturedTensor& one : kernel.out) bytes += one.bytes();
  return bytes;
}

// Shards are `share` of what they were.
void resize_shards(CapturedStep& step, double share) {
  const auto scaled = [&](double bytes) { return static_cast<std::int64_t>(bytes * share); };
  for (CapturedStorage& storage : step.storages) {
    if (storage.category) storage.bytes = scaled(static_cast<double>(storage.bytes));
  }
  std::map<std::uint32_t, std::uint32_t> updates;  // ops of the optimizer
  for (CapturedEvent& event : step.events) {
    if (event.kind != Kind::kKernel || event.phase != CapturedPhase::kOptimizer) continue;
    const auto added = updates.try_emplace(event.index, step.kernels.size());
    if (added.second) {
      CapturedKernel kernel = step.kernels[event.index];
      kernel.bytes = std::max<std::int64_t>(1, scaled(bytes_of(kernel)));
      step.kernels.push_back(std::move(kernel));
    }
    event.index = added.first->second;
  }
}

// The events of one micro-batch: up to the last op of backward, and what the host does after it.
std::size_t end_of_micro_batch(const CapturedStep& step) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < step.events.size(); ++i) {
    if (runs(step.events[i]) && step.events[i].phase == CapturedPhase::kBackward) end = i + 1;
  }
  while (end > 0 && end < step.events.size() && !runs(step.events[end])) ++end;
  return end;
}

// Whether a GEMM of forward follows an op of backward.
bool accumulates(const CapturedStep& step) {
  bool in_backward = false;
  for (const CapturedEvent& event : step.events) {
    if (event.kind != Kind::kKernel) continue;
    in_backward = in_backward || event.phase == CapturedPhase::kBackward;
    const std::string& op = step.kernels[event.index].op;
    const bool is_gemm = op.find("mm.") != std::string::npos;
    if (in_backward && is_gemm && event.phase == CapturedPhase::kForward) return true;
  }
  return false;
}

// Repeats the events of a micro-batch.
class Repeated {
 public:
  explicit Repeated(CapturedStep step) : step_(std::move(step)), end_(end_of_micro_batch(step_)) {
    for (std::size_t i = 0; i < end_; ++i) {
      const CapturedEvent& event = step_.events[i];
      if (event.kind == Kind::kAllocate) outlives_[event.index] = true;
      if (event.kind == Kind::kFree) outlives_.erase(event.index);
    }
  }

  CapturedStep run(std::int64_t count) && {
    for (std::int64_t i = 0; i < count; ++i) add_micro_batch(i == 0, i == count - 1);
    made_.insert(made_.end(), step_.events.begin() + static_cast<std::ptrdiff_t>(end_),
                 step_.events.end());
    step_.events = std::move(made_);
    return std::move(step_);
  }

 private:
  bool is_gradient(std::uint32_t storage) const {
    return step_.storages[storage].category == MemoryCategory::kGradients &&
           outlives_.find(storage) != outlives_.end();
  }

  void add_micro_batch(bool is_first, bool is_last) {
    std::map<std::uint32_t, std::uint32_t> own;  // the storages of this micro-batch
    for (std::size_t i = 0; i < end_; ++i) {
      CapturedEvent event = step_.events[i];
      if (event.kind == Kind::kCollective && !is_last && event.phase == CapturedPhase::kBackward &&
          step_.collectives[event.index].kind == CollectiveKind::kAllReduce) {
        continue;
      }
      if (event.kind == Kind::kAllocate)
        own[event.index] = storage_for(event.index, is_first, is_last);
      if (moves_memory(event)) {
        const auto found = own.find(event.index);
        if (found == own.end() && !is_first) continue;  // freed before
        if (found != own.end()) event.index = found->second;
      }
      made_.push_back(event);
    }
    for (const auto& [storage, mine] : own) {
      if (outlives_.find(storage) == outlives_.end()) continue;
      if (!is_first && is_gradient(storage)) add_gradient(storage);
      if (mine != storage) made_.push_back({Kind::kFree, mine});
    }
  }

  // The first gradients and the last of the other tensors stay.
  std::uint32_t storage_for(std::uint32_t storage, bool is_first, bool is_last) {
    if (is_gradient(storage) ? is_first : is_last) return storage;
    CapturedStorage copy = step_.storages[storage];
    copy.category.reset();
    step_.storages.push_back(copy);
    return static_cast<std::uint32_t>(step_.storages.size() - 1);
  }

  void add_gradient(std::uint32_t storage) {
    const CapturedStorage& gradient = step_.storages[storage];
    CapturedEvent add{Kind::kKernel, static_cast<std::uint32_t>(step_.kernels.size()), 0,
                      CapturedPhase::kBackward, gradient.module};
    CapturedKernel kernel{"aten.add_.Tensor", {}, {}, {}};
    kernel.bytes = 3 * gradient.bytes;
    step_.kernels.push_back(std::move(kernel));
    made_.push_back(add);
  }

  CapturedStep step_;
  std::size_t end_;
  std::map<std::uint32_t, bool> outlives_;  // storages that the micro-batch leaves
  std::vector<CapturedEvent> made_;
};

}  // namespace

Result<CapturedStep> with_ranks(CapturedStep step, std::int64_t ranks) {
  if (ranks == step.world) return step;
  std::vector<bool> grows;
  std::int64_t replicas = step.world;  // smallest size of a group that grows
  for (const std::vector<std::int64_t>& group : step.groups) {
    grows.push_back(is_outermost(group, step.world));
    if (grows.back()) replicas = std::min(replicas, static_cast<std::int64_t>(group.size()));
  }
  if (std::find(grows.begin(), grows.end(), true) == grows.end()) {
    return bad_input(fmt::format("no collective of the program spans its {}",
                                 step.world == 1 ? "1 rank" : fmt::format("{} ranks", step.world)),
                     "--ranks", "capture the program with --world 2 or more");
  }
  const std::int64_t others = step.world / replicas;
  if (ranks % others != 0 || ranks < 2 * others) {
    return bad_input(fmt::format("{} is not a multiple of {}, from {}", ranks, others, 2 * others),
                     "--ranks", "only data-parallel ranks are added or removed");
  }
  if (is_sharded(step, grows)) {
    resize_shards(step, static_cast<double>(step.world) / static_cast<double>(ranks));
  }
  for (std::size_t i = 0; i < grows.size(); ++i) {
    if (!grows[i]) continue;
    std::vector<std::int64_t>& group = step.groups[i];
    const std::int64_t stride = group[1] - group[0];
    const std::int64_t first = group[0] % stride;
    group.clear();
    for (std::int64_t rank = first; rank < ranks; rank += stride) group.push_back(rank);
  }
  step.world = ranks;
  step.rank = std::min(step.rank, ranks - 1);
  return step;
}

Result<CapturedStep> with_accumulation(CapturedStep step, std::int64_t count) {
  if (count == 1) return step;
  if (accumulates(step)) {
    return bad_input("the captured step has several micro-batches already", "--accumulation",
                     "capture the program without accumulation");
  }
  return Repeated(std::move(step)).run(count);
}

}  // namespace tpsim
