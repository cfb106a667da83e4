#include "tests/emulated_gpu/stream.h"

#include <chrono>
#include <cstdlib>
#include <deque>
#include <string_view>
#include <thread>
#include <utility>

namespace tpsim::emulated {
namespace {

struct Stream {
  std::deque<Work> queue;
  std::vector<Work> recorded;
  bool records = false;
};

struct Streams {
  Stream standard;  // cudaStream_t{}
  std::vector<std::unique_ptr<Stream>> made;

  Stream& at(cudaStream_t stream) {
    return stream == nullptr ? standard : *reinterpret_cast<Stream*>(stream);
  }
};

Streams& streams() {
  static Streams all;
  return all;
}

std::mutex one_at_a_time;

// Runs one piece of a stream's work. Returns whether there was progress.
bool step(Stream& stream) {
  if (stream.queue.empty() || !stream.queue.front()()) return false;
  stream.queue.pop_front();
  return true;
}

bool step_any(const Stream* but) {
  bool went_on = false;
  if (&streams().standard != but) went_on = step(streams().standard);
  for (const auto& one : streams().made) {
    if (one.get() != but) went_on = step(*one) || went_on;
  }
  return went_on;
}

}  // namespace

std::unique_lock<std::mutex> at_work() { return std::unique_lock(one_at_a_time); }

cudaStream_t new_stream() {
  streams().made.push_back(std::make_unique<Stream>());
  return reinterpret_cast<cudaStream_t>(streams().made.back().get());
}

void delete_stream(cudaStream_t stream) {
  finish(stream);
  std::erase_if(streams().made,
                [&](const auto& one) { return one.get() == &streams().at(stream); });
}

void enqueue(cudaStream_t stream, Work work) {
  Stream& its = streams().at(stream);
  if (its.records) {
    its.recorded.push_back(std::move(work));
  } else {
    its.queue.push_back(std::move(work));
  }
}

// If no stream progresses, waits for another process or thread.
void work_until(cudaStream_t first, const std::function<bool()>& done) {
  constexpr std::chrono::microseconds kPause(20);
  Stream& stream = streams().at(first);
  while (!done()) {
    if (step(stream) || step_any(&stream)) continue;
    one_at_a_time.unlock();
    std::this_thread::sleep_for(kPause);
    one_at_a_time.lock();
  }
}

void finish(cudaStream_t stream) {
  work_until(stream, [&] { return streams().at(stream).queue.empty(); });
}

void finish_all() {
  finish(nullptr);
  for (std::size_t i = 0; i < streams().made.size(); ++i) {
    finish(reinterpret_cast<cudaStream_t>(streams().made[i].get()));
  }
}

void work_a_little() { step_any(nullptr); }

void begin_recording(cudaStream_t stream) { streams().at(stream).records = true; }
bool is_recorded(cudaStream_t stream) { return streams().at(stream).records; }

std::vector<Work> end_recording(cudaStream_t stream) {
  Stream& its = streams().at(stream);
  its.records = false;
  return std::exchange(its.recorded, {});
}

bool is_played(std::string_view way) {
  static const char* const how = std::getenv("TPSIM_EMULATED_GPU");
  if (how == nullptr) return false;
  std::string_view left = how;
  while (true) {
    const std::size_t comma = left.find(',');
    if (left.substr(0, comma) == way) return true;
    if (comma == std::string_view::npos) return false;
    left.remove_prefix(comma + 1);
  }
}

int compute_capability() {
  if (is_played("ampere")) return 80;
  if (is_played("ada")) return 89;
  return is_played("blackwell") ? 100 : 90;
}

bool works() {
  static const bool idle = is_played("idle");
  return !idle;
}

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace tpsim::emulated
