// Time of a program with several streams. Streams are first in, first out, so the order of the
// program decides: a collective runs behind those of its stream while the compute stream goes on,
// until the compute stream waits for it. The time is the longest path. Layers, gradient reduction,
// weight gathers, offloaded updates and copies are all timed by this class.
//
// Kernels of collectives and compute kernels share the multiprocessors: while both run, each takes
// `slowdown` times as long, and a second collective adds as much. Copy engines slow nothing. A
// longer kernel or call never shortens a program that has one stream of collectives on
// multiprocessors, if `slowdown` is at most 2.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lowering/passes/lowered_layer.h"

namespace tpsim {

class StreamClocks {
 public:
  explicit StreamClocks(double slowdown) : slowdown_(slowdown) {}

  // A call that has ended. It begins when those before it on its stream have ended.
  struct Ended {
    std::uint32_t id = 0;
    Seconds begin, end;
  };
  // Appends calls that end to `ended` from now on. The time since the start is kept from set_time()
  // on while calls are in flight.
  void record(std::vector<Ended>* ended) { ended_ = ended; }
  void set_time(Seconds now) { now_ = now; }

  // Starts a call on a stream. `id` names the call.
  void start(std::uint32_t id, Stream stream, Mover mover, Seconds time) {
    if (time > Seconds()) {
      in_flight_.push_back({id, stream, mover == Mover::kProcessors, time, now_});
    }
  }

  // Runs kernels on the compute stream. Returns how much longer they take because of calls in
  // flight. `charge(id, time)` is called with each call's share.
  template <class Charge>
  Seconds run(Seconds kernels, const Charge& charge) {
    Seconds longer;
    while (!in_flight_.empty() && kernels > Seconds()) {
      const double rate = rate_of_kernels();
      const Seconds both = std::min(kernels, until_next_end(rate));
      const Seconds added = (slowdown_ - 1) * both;
      for (std::size_t i = 0; i < in_flight_.size(); ++i) {
        if (!in_flight_[i].slows || !is_first(i)) continue;
        longer += added;
        charge(in_flight_[i].id, added);
      }
      advance(both, rate);
      kernels -= both;
    }
    return longer;
  }
  Seconds run(Seconds kernels) {
    return run(kernels, [](std::uint32_t, Seconds) {});
  }

  bool is_idle() const { return in_flight_.empty(); }
  // Lets calls go on while no kernel runs.
  void rest(Seconds time) {
    while (!in_flight_.empty() && time > Seconds()) {
      const Seconds step = std::min(time, until_next_end(1));
      advance(step, 1);
      time -= step;
    }
  }

  // Waits for a call, and so for those before it on its stream. Returns the time in which the
  // compute stream is idle.
  Seconds wait(std::uint32_t id) {
    Seconds idle;
    while (is_in_flight(id)) idle += step();
    return idle;
  }
  // Waits for all calls of a stream.
  Seconds wait(Stream stream) {
    Seconds idle;
    while (is_busy(stream)) idle += step();
    return idle;
  }

 private:
  struct InFlight {
    std::uint32_t id = 0;
    Stream stream{};
    bool slows = false;
    Seconds left;
    Seconds begin;  // at the earliest
  };

  bool is_in_flight(std::uint32_t id) const;
  bool is_busy(Stream stream) const;
  bool is_first(std::size_t i) const;  // of its stream
  double rate_of_kernels() const;      // elapsed time over the kernels' own
  // Returns the time of kernels until a call ends.
  Seconds until_next_end(double rate) const;
  void advance(Seconds kernels, double rate);
  Seconds step();  // until a call ends, without kernels; returns the time
  void record_ended();

  double slowdown_;
  std::vector<InFlight> in_flight_;  // in the order of their starts
  std::vector<Ended>* ended_ = nullptr;
  Seconds now_;
};

// Returns how much longer kernels take if a call starts with them and is waited for at their end.
inline Seconds time_beside(Seconds call, Seconds kernels, Mover mover, double slowdown) {
  StreamClocks clocks(slowdown);
  clocks.start(0, Stream::kData, mover, call);
  const Seconds longer = clocks.run(kernels);
  return longer + clocks.wait(0);
}

}  // namespace tpsim
