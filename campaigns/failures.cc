#include "campaigns/failures.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <random>
#include <vector>

#include "core/base/check.h"

namespace tpsim {
namespace {

// Nodes in repair. The node that returns first is on top of the queue.
class Workshop {
 public:
  explicit Workshop(const SpareNodes& spares) : spares_(spares) {}

  // Removes a node at `now`. Returns the time at which the run has enough nodes again.
  double fail(double now) {
    while (!back_at_.empty() && back_at_.top() <= now) back_at_.pop();
    back_at_.push(now + spares_.repair.value());
    while (static_cast<std::int64_t>(back_at_.size()) > spares_.count) {
      now = std::max(now, back_at_.top());
      back_at_.pop();
    }
    return now;
  }

 private:
  SpareNodes spares_;
  std::priority_queue<double, std::vector<double>, std::greater<>> back_at_;
};

struct Outcome {
  double wall = 0;
  double lost = 0;
  double waiting = 0;
  double failures = 0;
};

class PlayedCampaign {
 public:
  PlayedCampaign(const FailureModel& model, const SpareNodes& spares, std::mt19937_64& random)
      : model_(model), workshop_(spares), random_(random) {}

  // Simulates one campaign. Each iteration advances to the next failure, or to the end of the run.
  Outcome play() {
    const double stretch = (model_.interval + model_.write).value();
    const double behind = model_.behind.value();
    double left = model_.work.value();
    for (;;) {
      const auto full = std::floor(left / model_.interval.value() + 1e-9);
      const double rest = left - full * model_.interval.value();
      // Below this threshold, the remainder is rounding error and not a segment.
      const bool has_rest = rest > 1e-9 * model_.interval.value();
      const double last = std::max(rest + model_.write.value(), full > 0 ? behind : 0.0);
      const double need = full * stretch + (has_rest ? last : 0) + behind;
      const double until_failure = next_failure();
      if (until_failure >= need) {
        now_ += need;
        outcome_.wall = now_;
        return outcome_;
      }
      const double saved = std::clamp(std::floor((until_failure - behind) / stretch), 0.0, full);
      left -= saved * model_.interval.value();
      outcome_.lost += until_failure - saved * stretch;
      now_ += until_failure;
      restart();
    }
  }

 private:
  // Draws the exponential time to the next failure by inversion. The distributions of <random>
  // would differ between standard libraries.
  double next_failure() {
    // 53 random bits plus one half, since log(0) is infinite.
    const double uniform = (static_cast<double>(random_() >> 11) + 0.5) * 0x1p-53;
    return -std::log(uniform) * model_.mtbf.value();
  }

  void lose_node() {
    outcome_.failures += 1;
    const double ready = workshop_.fail(now_);
    outcome_.waiting += ready - now_;
    now_ = ready;
  }

  void restart() {
    lose_node();
    for (;;) {
      const double until_failure = next_failure();
      if (until_failure >= model_.restart.value()) break;
      now_ += until_failure;
      lose_node();
    }
    now_ += model_.restart.value();
  }

  const FailureModel& model_;
  Workshop workshop_;
  std::mt19937_64& random_;
  double now_ = 0;
  Outcome outcome_;
};

Seconds quantile(const std::vector<double>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return Seconds(sorted[static_cast<std::size_t>(std::lround(share * last))]);
}

}  // namespace

Replays replay_campaigns(const FailureModel& model, const SpareNodes& spares,
                         std::int64_t campaigns, std::uint64_t seed) {
  // A variance needs two campaigns.
  TPSIM_CHECK(campaigns >= 2 && can_end(model), "campaigns that can be played");
  std::mt19937_64 random(seed);
  std::vector<double> walls;
  Outcome sum;
  double squares = 0;
  const double reference = expected_wall(model).value();
  for (std::int64_t i = 0; i < campaigns; ++i) {
    const Outcome outcome = PlayedCampaign(model, spares, random).play();
    walls.push_back(outcome.wall);
    const double off = outcome.wall - reference;  // differences keep the variance accurate
    sum.wall += off;
    squares += off * off;
    sum.lost += outcome.lost;
    sum.waiting += outcome.waiting;
    sum.failures += outcome.failures;
  }
  std::sort(walls.begin(), walls.end());
  const auto n = static_cast<double>(campaigns);
  const double variance = std::max(0.0, (squares - sum.wall * sum.wall / n) / (n - 1));
  Replays replays;
  replays.campaigns = campaigns;
  replays.mean = Seconds(reference + sum.wall / n);
  replays.standard_error = Seconds(std::sqrt(variance / n));
  replays.low = quantile(walls, 0.05);
  replays.median = quantile(walls, 0.5);
  replays.high = quantile(walls, 0.95);
  replays.failures = sum.failures / n;
  replays.lost = Seconds(sum.lost / n);
  replays.waiting = Seconds(sum.waiting / n);
  return replays;
}

std::int64_t spare_nodes_for(Seconds repair, Seconds mtbf, double risk) {
  const double mean = repair / mtbf;
  if (mean <= 0) return 0;
  double covered = 0;
  for (std::int64_t count = 0;; ++count) {
    const auto k = static_cast<double>(count);
    // Probability of k missing nodes. Computed with logarithms, since powers and factorials
    // overflow.
    covered += std::exp(k * std::log(mean) - mean - std::lgamma(k + 1));
    // Rounding can keep the sum below 1 - risk, so the loop also ends ten standard deviations above
    // the mean.
    if (covered >= 1 - risk || k > mean + 10 * std::sqrt(mean) + 10) return count;
  }
}

}  // namespace tpsim
