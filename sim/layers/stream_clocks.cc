#include "sim/layers/stream_clocks.h"

namespace tpsim {
namespace {

constexpr Seconds kNothingLeft(1e-16);

}  // namespace

bool StreamClocks::is_in_flight(std::uint32_t id) const {
  return std::any_of(in_flight_.begin(), in_flight_.end(),
                     [&](const InFlight& one) { return one.id == id; });
}

bool StreamClocks::is_busy(Stream stream) const {
  return std::any_of(in_flight_.begin(), in_flight_.end(),
                     [&](const InFlight& one) { return one.stream == stream; });
}

bool StreamClocks::is_first(std::size_t i) const {
  for (std::size_t before = 0; before < i; ++before) {
    if (in_flight_[before].stream == in_flight_[i].stream) return false;
  }
  return true;
}

double StreamClocks::rate_of_kernels() const {
  double rate = 1;
  for (std::size_t i = 0; i < in_flight_.size(); ++i) {
    if (in_flight_[i].slows && is_first(i)) rate += slowdown_ - 1;
  }
  return rate;
}

Seconds StreamClocks::until_next_end(double rate) const {
  const auto until = [&](const InFlight& one) { return one.slows ? one.left : one.left / rate; };
  Seconds least = until(in_flight_.front());
  for (std::size_t i = 1; i < in_flight_.size(); ++i) {
    if (is_first(i)) least = std::min(least, until(in_flight_[i]));
  }
  return least;
}

// Calls on multiprocessors share them with the kernels, others do not.
void StreamClocks::advance(Seconds kernels, double rate) {
  for (std::size_t i = in_flight_.size(); i-- > 0;) {
    if (is_first(i)) in_flight_[i].left -= in_flight_[i].slows ? kernels : rate * kernels;
  }
  now_ += rate * kernels;
  if (ended_ != nullptr) record_ended();
  std::erase_if(in_flight_, [](const InFlight& one) { return one.left <= kNothingLeft; });
}

void StreamClocks::record_ended() {
  for (std::size_t i = 0; i < in_flight_.size(); ++i) {
    const InFlight& one = in_flight_[i];
    if (one.left > kNothingLeft) continue;
    ended_->push_back({one.id, one.begin, now_});
    for (std::size_t next = i + 1; next < in_flight_.size(); ++next) {
      if (in_flight_[next].stream == one.stream) in_flight_[next].begin = now_;
    }
  }
}

Seconds StreamClocks::step() {
  const Seconds time = until_next_end(1);
  advance(time, 1);
  return time;
}

}  // namespace tpsim
