// Order in which thread blocks process the work of flash attention. GPU kernels and tests share
// these functions; a test computes how long all SMs are busy.
#pragma once

#include <algorithm>

namespace tpsim {

// Backward. A work item is one block of keys of one unit. A unit is a group of query heads of one
// sample that share a key/value head. The thread block iterates over the tiles of queries that see
// its keys. It adds its part of their dq to the accumulators of earlier key blocks. Counts of
// heads, keys and tiles fit in 32 bits.
struct FlashSchedule {
  int units = 0;         // of all samples
  int sample_units = 0;  // of one sample; the units with its first query heads come first
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
  int unit = 0;          // of all samples
  int slot = 0;          // slot of the unit's accumulators
  int unit_before = -1;  // previous unit in that slot; -1: none
  int sample = 0, first_head = 0;
  int tiles_met = 0;  // the last tiles; queries of earlier tiles do not see the keys
};

// Returns the n-th item. Units come in rounds of `slots` units or one less, so that the last round
// is full. In a round the longest items come first. For each query, blocks of earlier keys come
// first, and a unit comes after the previous unit of its slot. An item therefore only waits for
// items with lower numbers.
constexpr FlashItem item_of(int n, const FlashSchedule& s) {
  const int rounds = (s.units + s.slots - 1) / s.slots;
  const int full_rounds = s.units - rounds * (s.slots - 1);
  const int full_units = full_rounds * s.slots, full_items = full_units * s.key_blocks;
  const bool is_full = n < full_items;
  const int units = is_full ? s.slots : s.slots - 1;  // units of the round
  const int nth = is_full ? n : n - full_items;       // number among the rounds of its size
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

// A step of an item is one tile of one query head. All heads of a tile come before the next tile,
// so that the key blocks of a unit follow one another at a distance of few steps.
constexpr int tile_of(int step, const FlashSchedule& s) {
  return s.query_tiles - 1 - step / s.group;
}
constexpr int head_in_unit(int step, const FlashSchedule& s) { return step % s.group; }

// Forward. The grid has all heads of all samples along x (fastest) and tiles of queries along y.
// The tiles with the most keys come first.
constexpr int forward_tile(int y, int tiles) { return tiles - 1 - y; }

}  // namespace tpsim
