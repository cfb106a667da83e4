#include "profiler/collective_timer.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>

namespace tpsim {
namespace {

constexpr Label kLabel{ModelPart::kMeasurement, "profile"};
// Up to kSmallBytes, several calls form one sample, which averages over unequal arrivals. On a CPU
// larger calls are timed one by one, because activations are rewritten before each call, as in a
// step.
constexpr std::int64_t kSmallBytes = 4096;
constexpr int kSmallAtATime = 20;
// A GPU is delayed until the host has issued a sample, and the members are synchronized on the
// device. A few calls per sample then suffice to hide the overhead of marks.
constexpr double kHoldSeconds = 2e-3;  // time to issue kSmallAtATime calls
constexpr std::int64_t kShortBytes = std::int64_t{16} << 20;
constexpr int kShortAtATime = 5;

bool is_message(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive;
}

// One rank's side of the timing of one collective: group, buffers and calls.
class Exercise {
 public:
  Exercise(Device& device, Communicator& group, const CollectiveNeed& need,
           const CollectiveTimerSettings& settings)
      : device_(device), group_(group), need_(need) {
    // Equal parts of fp32, at least one element each.
    const std::int64_t parts = need.ranks;
    const std::int64_t elements = std::max(need.bytes / 4 / parts, std::int64_t{1}) * parts;
    if (need.kind == CollectiveKind::kAllToAll) {
      arrived_ =
          device.allocate({elements}, DType::kFloat32, MemoryCategory::kWorkspace, kLabel.text);
    }
    word_ = device.allocate({1}, DType::kFloat32, MemoryCategory::kWorkspace, kLabel.text);
    device.run(Fill{word_, 0.0F, kLabel});
    just_computed_ = need.bytes <= settings.just_computed;
    const double rotated = just_computed_ ? 0 : settings.rotated.value();
    do {
      data_.push_back(
          device.allocate({elements}, DType::kFloat32, MemoryCategory::kWorkspace, kLabel.text));
      device.run(Fill{data_.back(), 1.0F, kLabel});
    } while (static_cast<double>(std::ssize(data_) * data_.back().bytes()) < rotated);
  }

  // Call before every sample. Rewrites the buffer if it stands for activations that were just
  // computed, so that the caches contain it as in a step.
  void prepare() {
    if (just_computed_) device_.run(Scale{all(), 1.0F, kLabel});
  }

  // Synchronizes the members on their devices, without the hosts.
  void line_up() {
    if (is_alone()) return;
    if (is_message(need_.kind)) return there_and_back(word_);
    group_.all_reduce(word_, ReduceOp::kMax, kLabel);
  }

  // Returns the minimum of `seconds` over the ranks: the time of the rank that arrived last and did
  // not wait.
  double least(double seconds) {
    // Both ranks of a round trip wait for each other, so their times are equal.
    if (is_alone() || is_message(need_.kind)) return seconds;
    const auto mine = static_cast<float>(-seconds);
    device_.upload(std::as_bytes(std::span(&mine, 1)), word_);
    group_.all_reduce(word_, ReduceOp::kMax, kLabel);
    return -static_cast<double>(download_scalar(device_, word_));
  }

  void run() {
    turn_ = (turn_ + 1) % data_.size();
    if (is_alone()) return;
    switch (need_.kind) {
      // Maximum instead of sum, so that repetition leaves the values unchanged.
      case CollectiveKind::kAllReduce: return group_.all_reduce(all(), ReduceOp::kMax, kLabel);
      case CollectiveKind::kAllGather: return group_.all_gather(part(), all(), kLabel);
      case CollectiveKind::kReduceScatter: return group_.reduce_scatter(all(), part(), kLabel);
      case CollectiveKind::kBroadcast: return group_.broadcast(all(), 0, kLabel);
      case CollectiveKind::kAllToAll: return group_.all_to_all(all(), arrived_, kLabel);
      case CollectiveKind::kSend:
      case CollectiveKind::kReceive: return there_and_back(all());
    }
  }

  bool is_alone() const { return group_.size() == 1; }
  std::int64_t bytes() const { return all().bytes(); }
  // Returns the number of collectives that run() contains: a round trip is two sends.
  double runs_at_once() const { return need_.kind == CollectiveKind::kSend ? 2 : 1; }

 private:
  const Tensor& all() const { return data_[turn_]; }
  Tensor part() const {
    const std::int64_t count = all().elements() / need_.ranks;
    return all().slice(group_.rank() % need_.ranks * count, count);
  }

  // Runs a round trip between the first and the second member. Further members form pairs too.
  void there_and_back(const Tensor& x) {
    const int other = group_.rank() ^ 1;
    if (other >= group_.size()) return;
    if (group_.rank() < other) {
      group_.send(x, other, kLabel);
      group_.receive(x, other, kLabel);
    } else {
      group_.receive(x, other, kLabel);
      group_.send(x, other, kLabel);
    }
  }

  Device& device_;
  Communicator& group_;
  CollectiveNeed need_;
  bool just_computed_ = true;
  std::vector<Tensor> data_;
  Tensor arrived_;  // output of an all-to-all
  Tensor word_;     // [1] fp32
  std::size_t turn_ = 0;
};

double timed_runs(Device& device, Exercise& exercise, int runs) {
  const bool holds = device.delay(kHoldSeconds);
  if (holds) exercise.line_up();
  const DeviceMark begin = device.mark();
  for (int i = 0; i < runs; ++i) exercise.run();
  const double seconds =
      device.seconds_between(begin, device.mark()) / runs / exercise.runs_at_once();
  return holds ? exercise.least(seconds) : seconds;
}

int at_a_time(Device& device, const Exercise& exercise) {
  if (exercise.bytes() <= kSmallBytes) return kSmallAtATime;
  return device.delay(0) && exercise.bytes() <= kShortBytes ? kShortAtATime : 1;
}

std::vector<double> times_of(Device& device, RankBarrier& barrier, Exercise& exercise,
                             const CollectiveTimerSettings& settings) {
  timed_runs(device, exercise, 2);
  barrier.wait();
  const int runs = at_a_time(device, exercise);

  std::vector<double> seconds;
  const DeviceMark begin = device.mark();
  while (seconds.size() < settings.most_samples) {
    exercise.prepare();
    barrier.wait();
    seconds.push_back(timed_runs(device, exercise, runs));
    const double spent = device.seconds_between(begin, device.mark());
    const bool enough = exercise.is_alone() || (seconds.size() >= settings.least_samples &&
                                                spent >= settings.budget.value());
    if (barrier.all_agree(enough)) break;
  }
  device.forget_marks();
  return seconds;
}

// Returns the consecutive ranks of this rank's group; only this rank if the last group is
// incomplete.
std::vector<std::int64_t> block_of(const World& world, std::int64_t ranks) {
  const std::int64_t first = world.rank() / ranks * ranks;
  if (first + ranks > world.size()) return {world.rank()};
  std::vector<std::int64_t> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), first);
  return members;
}

}  // namespace

std::vector<std::int64_t> size_ladder(std::int64_t most) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = 8; bytes <= most; bytes *= 4) sizes.push_back(bytes);
  return sizes;
}

void time_collectives(World& world, Device& device, RankBarrier& barrier,
                      const std::vector<CollectiveNeed>& needs,
                      const CollectiveTimerSettings& settings, Samples& samples) {
  std::map<std::pair<GroupKind, std::int64_t>, std::unique_ptr<Communicator>> groups;
  for (const CollectiveNeed& need : needs) {
    if (need.ranks < 2 || need.ranks > world.size()) continue;
    // Only pipeline groups have P2P messages.
    const GroupKind kind = is_message(need.kind) ? GroupKind::kPipeline : GroupKind::kData;
    std::unique_ptr<Communicator>& group = groups[{kind, need.ranks}];
    if (group == nullptr) group = world.communicator(device, kind, block_of(world, need.ranks));
    Exercise exercise(device, *group, need, settings);
    const std::vector<double> seconds = times_of(device, barrier, exercise, settings);
    if (group->size() == 1) continue;
    for (const double s : seconds) samples.add(need.kind, need.ranks, need.bytes, s);
  }
}

}  // namespace tpsim
