// Busy time of a GPU's SMs in flash attention forward and backward, computed from the order of the
// work items.
#include "kernels/flash_schedule.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <numeric>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/shipped_data.h"
#include "core/model/model_json.h"
#include "kernels/flash_memory.h"

namespace tpsim {
namespace {

// Clocks of a Hopper GPU for a tile of 64 queries x 128 keys x 128 columns, and for the ordered
// addition to dq that follows. Only the ratio matters here.
constexpr double kStep = 4200, kTurn = 1800;
constexpr std::array kMultiprocessors = {80, 108, 132, 148};  // similar to L4, A100, H100, B200

// SMs, each of which takes the next item when it is idle.
class Clocks {
 public:
  explicit Clocks(int multiprocessors) {
    for (int i = 0; i < multiprocessors; ++i) free_.push(0);
  }
  double begin() {
    const double now = free_.top();
    free_.pop();
    return now;
  }
  void end(double now) {
    free_.push(now);
    last_ = std::max(last_, now);
  }
  double last() const { return last_; }

 private:
  std::priority_queue<double, std::vector<double>, std::greater<>> free_;
  double last_ = 0;
};

// Lower bound of the makespan of any order: the longest item, the mean work per SM, and n + 1 items
// on one of m SMs among the n * m + 1 longest.
double least_makespan(std::vector<double> lengths, int multiprocessors) {
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  const double work = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  double least = work / multiprocessors;
  for (std::size_t n = 0; n * multiprocessors < lengths.size(); ++n) {
    least = std::max(least, static_cast<double>(n + 1) * lengths[n * multiprocessors]);
  }
  return least;
}

struct Busy {
  double makespan = 0, least = 0;
  double ratio() const { return makespan / least; }
};

Busy backward(const AttentionDims& dims, int multiprocessors) {
  const FlashSchedule s = flash_schedule(dims, flash_backward_memory(dims), 128);
  // Time at which the n-th key block has added to a tile of a head of a unit.
  std::vector<double> added(
      static_cast<std::size_t>(std::int64_t{s.units} * s.group * s.query_tiles * s.key_blocks));
  const auto turn = [&](int unit, int step, int key_block) -> double& {
    const std::int64_t tile =
        (std::int64_t{unit} * s.group + head_in_unit(step, s)) * s.query_tiles + tile_of(step, s);
    return added[static_cast<std::size_t>(tile * s.key_blocks + key_block)];
  };
  Clocks clocks(multiprocessors);
  bool waits_for_the_begun = true;
  std::vector<double> lengths;
  for (int n = 0; n < s.items(); ++n) {
    const FlashItem item = item_of(n, s);
    const int steps = item.tiles_met * s.group;
    double now = clocks.begin();
    for (int step = 0; step < steps; ++step) {
      double others = 0;
      if (item.key_block > 0) {
        others = turn(item.unit, step, item.key_block - 1);
        waits_for_the_begun = waits_for_the_begun && others > 0;
      } else if (item.unit_before >= 0) {
        others = turn(item.unit_before, step, s.key_blocks_of(tile_of(step, s)) - 1);
        waits_for_the_begun = waits_for_the_begun && others > 0;
      }
      now = std::max(now + kStep, others) + kTurn;
      turn(item.unit, step, item.key_block) = now;
    }
    clocks.end(now);
    lengths.push_back(steps * (kStep + kTurn));
  }
  CHECK(waits_for_the_begun);
  return {clocks.last(), least_makespan(std::move(lengths), multiprocessors)};
}

// Tiles of 128 queries, two blocks per SM.
Busy forward(const AttentionDims& dims, int multiprocessors) {
  const int tiles = static_cast<int>((dims.seq + 127) / 128);
  Clocks clocks(2 * multiprocessors);
  std::vector<double> lengths;
  for (int y = 0; y < tiles; ++y) {
    for (std::int64_t head = 0; head < dims.heads * dims.batch; ++head) {
      const double length = forward_tile(y, tiles) + 1;
      clocks.end(clocks.begin() + length);
      lengths.push_back(length);
    }
  }
  return {clocks.last(), least_makespan(std::move(lengths), 2 * multiprocessors)};
}

// Longer sequences have more items per SM and so less idle time; their simulation takes minutes.
constexpr std::int64_t kLongest = 8192;

// Attention shapes of every model of the catalogue for one sample, by TP degree; each shape once.
std::vector<AttentionDims> shapes() {
  const std::filesystem::path models = std::filesystem::path(TPSIM_SOURCE_DIR) / "data/models";
  std::set<std::array<std::int64_t, 4>> some;
  for (const std::string& name : stems_in(models, ".json")) {
    const ModelSpec model = std::move(read_model(models / (name + ".json"))).value();
    const AttentionShape& a = model.attention;
    for (const std::int64_t tp : {1, 2, 4, 8}) {
      if (a.heads % tp != 0 || a.head_dim % 8 != 0 || a.head_dim > 128) continue;
      some.insert({std::min(model.seq, kLongest), a.heads / tp,
                   std::max<std::int64_t>(a.kv_heads / tp, 1), a.head_dim});
    }
  }
  std::vector<AttentionDims> all;
  for (const auto& [seq, heads, kv_heads, head_dim] : some) {
    if (heads % kv_heads == 0) all.push_back({1, seq, heads, kv_heads, head_dim});
  }
  return all;
}

// With few long items some idle time is unavoidable: at most a sixth, and less than a tenth for 95
// % of shapes and GPUs.
template <class Kernel>
void check_busy(Kernel kernel) {
  int all = 0, within_a_tenth = 0;
  for (const AttentionDims& dims : shapes()) {
    for (const int multiprocessors : kMultiprocessors) {
      const double ratio = kernel(dims, multiprocessors).ratio();
      INFO(dims.seq << " positions, heads " << dims.heads << " / " << dims.kv_heads << " x "
                    << dims.head_dim << " on " << multiprocessors << " multiprocessors");
      CHECK(ratio <= 1.16);
      ++all;
      within_a_tenth += ratio <= 1.1 ? 1 : 0;
    }
  }
  CHECK(all > 500);
  CHECK(within_a_tenth >= 0.95 * all);
}

}  // namespace

TEST_CASE("attention's backward keeps the multiprocessors of every GPU busy") {
  check_busy(backward);
}

TEST_CASE("attention's forward keeps the multiprocessors of every GPU busy") {
  check_busy(forward);
}

}  // namespace tpsim
