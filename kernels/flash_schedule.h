// Order in which the thread blocks of flash attention process their work items. GPU kernels and
// tests share these functions. A test computes for how long all SMs are busy.
#pragma once

#include <algorithm>

namespace tpsim {

// Backward. A unit is a group of query heads of one sample that share a key/value head. A work item
// is one block of keys of one unit, processed by one thread block. The thread block iterates over
// the tiles of queries that see its keys and adds its part of dq to the unit's accumulators, after
// the blocks with earlier keys. Counts of heads, keys and tiles fit in 32 bits.
struct FlashSchedule {
  int units = 0;         // in all samples
  int sample_units = 0;  // in one sample, in the order of query heads
  int group = 1;         // query heads of a unit
  int slots = 1;         // units whose dq accumulators are in memory at once
  int keys_of_block = 0, key_blocks = 0;
  int queries_of_tile = 0, query_tiles = 0;
  int earlier = 0;  // keys before the first query: query q sees keys 0 .. q + earlier

  constexpr int items() const { return units * key_blocks; }
  // Returns the number of key blocks that the tile's last query sees.
  constexpr int key_blocks_of(int tile) const {
    return std::min(((tile + 1) * queries_of_tile - 1 + earlier) / keys_of_block + 1, key_blocks);
  }
};

struct FlashItem {
  int key_block = 0, first_key = 0;
  int unit = 0;          // index among the units of all samples
  int slot = 0;          // slot of the unit's accumulators
  int unit_before = -1;  // previous unit in that slot; -1: none
  int sample = 0, first_head = 0;
  int tiles_met = 0;  // number of query tiles that see the keys: the last tiles
};

// Returns the n-th item. Units are processed in rounds of `slots` or `slots` - 1 units, so that no
// round is nearly empty. Within a round, blocks with earlier keys come first: more queries see
// them, so they take longest. An item waits for the earlier key blocks of its unit and for the
// previous unit of its slot. Both have lower numbers.
constexpr FlashItem item_of(int n, const FlashSchedule& s) {
  const int rounds = (s.units + s.slots - 1) / s.slots;
  const int full_rounds = s.units - rounds * (s.slots - 1);
  const int full_units = full_rounds * s.slots, full_items = full_units * s.key_blocks;
  const bool is_full = n < full_items;
  const int units = is_full ? s.slots : s.slots - 1;  // units of the round
  const int nth = is_full ? n : n - full_items;       // index among the rounds of the same size
  const int round = nth / (units * s.key_blocks);
  FlashItem item{};
  item.key_block = nth % (units * s.key_blocks) / units;
  item.first_key = item.key_block * s.keys_of_block;
  item.slot = nth % units;
  item.unit = (is_full ? 0 : full_units) + round * units + item.slot;
  if (item.unit >= s.slots) item.unit_before = item.unit - (round > 0 ? units : s.slots);
  item.sample = item.unit / s.sample_units;
  item.first_head = item.unit % s.sample_units * s.group;
  item.tiles_met = s.query_tiles - std::max(item.first_key - s.earlier, 0) / s.queries_of_tile;
  return item;
}

// A step of an item processes one tile of queries of one query head. All heads of a tile come
// before the next tile, so that a key block can run few steps behind the previous key block.
constexpr int tile_of(int step, const FlashSchedule& s) {
  return s.query_tiles - 1 - step / s.group;
}
constexpr int head_in_unit(int step, const FlashSchedule& s) { return step % s.group; }

// Forward. The grid has all heads of all samples along x (fastest) and tiles of queries along y.
// The tiles with the most keys come first.
constexpr int forward_tile(int y, int tiles) { return tiles - 1 - y; }

}  // namespace tpsim
