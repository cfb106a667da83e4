// In which order blocks of threads take the work of flash attention. The kernels ask these
// functions on the GPU; a test asks them too, and computes how long all multiprocessors are busy.
#pragma once

#include <algorithm>

namespace tpsim {

// Backward. A block of threads keeps one block of keys of one unit: some query heads that share a
// key/value head, of one sample. It meets the tiles of queries that see the keys and adds its part
// of their dq to the sums of earlier blocks of keys. Heads, keys and tiles fit in 32 bits.
struct FlashSchedule {
  int units = 0;         // of all samples
  int sample_units = 0;  // of one sample: the units of its first query heads first
  int group = 1;         // query heads of a unit
  int slots = 1;         // units whose sums of dq have room at once
  int keys_of_block = 0, key_blocks = 0;
  int queries_of_tile = 0, query_tiles = 0;
  int earlier = 0;  // keys before the first query: query q sees keys 0 .. q + earlier

  constexpr int items() const { return units * key_blocks; }
  // Blocks of keys that the tile's last query sees.
  constexpr int key_blocks_of(int tile) const {
    return std::min(((tile + 1) * queries_of_tile - 1 + earlier) / keys_of_block + 1, key_blocks);
  }
};

struct FlashItem {
  int key_block = 0, first_key = 0;
  int unit = 0;          // of all samples
  int slot = 0;          // whose room the unit's sums take
  int unit_before = -1;  // that had the room before; -1: none
  int sample = 0, first_head = 0;
  int tiles_met = 0;  // the last ones: queries of earlier tiles see none of the block's keys
};

// The n-th item to be begun. Units come in rounds of as many as have room for their sums, or one
// less, so that the last round is as long as the others; of a round the longest items come first.
// For each query, blocks of earlier keys come first, and a unit comes after the one that had its
// room: whoever waits, waits for an earlier number.
constexpr FlashItem item_of(int n, const FlashSchedule& s) {
  const int rounds = (s.units + s.slots - 1) / s.slots;
  const int full_rounds = s.units - rounds * (s.slots - 1);
  const int full_units = full_rounds * s.slots, full_items = full_units * s.key_blocks;
  const bool is_full = n < full_items;
  const int units = is_full ? s.slots : s.slots - 1;  // of the round
  const int nth = is_full ? n : n - full_items;       // of the rounds of its size
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
// so that the blocks of keys of a unit follow one another at a distance of few steps.
constexpr int tile_of(int step, const FlashSchedule& s) {
  return s.query_tiles - 1 - step / s.group;
}
constexpr int head_in_unit(int step, const FlashSchedule& s) { return step % s.group; }

// Forward. The grid has all heads of all samples along x, which runs fastest, and tiles of queries
// along y: the longest rows of every head come first.
constexpr int forward_tile(int y, int tiles) { return tiles - 1 - y; }

}  // namespace tpsim
