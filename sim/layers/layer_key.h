// Keys of the layer caches: plans with equal keys have equal layer costs.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "lowering/trace/trace.h"

namespace tpsim {

// The settings that affect the cost of a layer. Settings that do not affect it stay zero.
struct LayerKey {
  LayerKind kind{};
  std::int64_t block = 0;  // kind of the block
  ParallelDegrees degrees{0, 0, 0, 0, 0};
  std::int64_t micro_batch = 0;
  std::int64_t virtual_stages = 0;
  std::int64_t node = 0;       // node_size(): GPUs that the plan uses per node
  std::int64_t world = 0;      // total number of GPUs if they do not fill whole nodes, else 0
  std::int64_t placement = 0;  // LayerPricer's number of the groups' placements
  int zero = 0;
  bool sequence_parallel = false;
  Recompute recompute{};
  AttentionKind attention{};
  RankOrder rank_order{};
  Offload offload{};
  DType dtype{};
  DType gradient_dtype{};
  Precision precision{};
  bool fp8_param_gather = false;
  bool whole_gradients = false;  // holds_whole_gradients()
  bool splits_backward = false;
  friend bool operator==(const LayerKey&, const LayerKey&) = default;
};
// Return the key of a layer's costs per micro-batch, of its costs per step, of a P2P transfer, and
// of the settings that the costs of all chunks of a plan depend on. For Recompute::kBlocks, call
// layer_key() with with_whole_recompute(), since recomputed and other blocks differ.
LayerKey layer_key(LayerKind kind, const Plan& plan, const Scenario& scenario,
                   std::int64_t block = 0);
LayerKey fixed_key(LayerKind kind, const Plan& plan, const Scenario& scenario,
                   std::int64_t block = 0);
LayerKey transfer_key(const Plan& plan, const Scenario& scenario);
LayerKey chunk_key(const Plan& plan, const Scenario& scenario);

struct LayerKeyHash {
  std::size_t operator()(const LayerKey& key) const noexcept;
};

// Cache of layers; references stay valid. Remembers the last entry for each kind of layer, with and
// without full recompute, because consecutive plans often need the same entry.
template <class T>
class LayerCache {
 public:
  // Returns the value for the key, and whether this call created it.
  std::pair<T&, bool> place(const LayerKey& key) {
    Entry*& recent = recent_of(key);
    if (recent && recent->first == key) return {recent->second, false};
    const auto [entry, is_new] = entries_.try_emplace(key);
    recent = &*entry;
    return {entry->second, is_new};
  }

 private:
  using Entry = std::pair<const LayerKey, T>;

  Entry*& recent_of(const LayerKey& key) {
    return recent_[static_cast<std::size_t>(key.kind)][key.recompute == Recompute::kFull ? 1 : 0];
  }

  std::unordered_map<LayerKey, T, LayerKeyHash> entries_;
  std::array<std::array<Entry*, 2>, static_cast<std::size_t>(LayerKind::kHead) + 1> recent_{};
};

}  // namespace tpsim
