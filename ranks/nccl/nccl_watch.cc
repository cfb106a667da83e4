#include "ranks/nccl/nccl_watch.h"

#include <condition_variable>

namespace tpsim {
namespace {

// Calls `act` in a separate thread after the limit, unless destroyed before.
class Deadline {
 public:
  Deadline(std::chrono::milliseconds limit, std::function<void()> act)
      : thread_([this, limit, act = std::move(act)] {
          std::unique_lock lock(mutex_);
          if (!gone_.wait_for(lock, limit, [this] { return is_gone_; })) act();
        }) {}
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      is_gone_ = true;
    }
    gone_.notify_all();
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable gone_;
  bool is_gone_ = false;
  std::jthread thread_;  // last member, since it uses the others
};

}  // namespace

NcclWatch::NcclWatch(Callbacks callbacks) : callbacks_(std::move(callbacks)) {
  thread_ = std::thread([this] { look(); });
}

NcclWatch::~NcclWatch() {
  ends_ = true;
  thread_.join();
}

void NcclWatch::add(const std::shared_ptr<NcclComm>& comm) {
  const std::lock_guard lock(mutex_);
  std::erase_if(comms_, [](const std::weak_ptr<NcclComm>& one) { return one.expired(); });
  comms_.push_back(comm);
}

NcclWatch::Trouble NcclWatch::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

void NcclWatch::look() {
  if (callbacks_.begin) callbacks_.begin();
  auto asked = std::chrono::steady_clock::now();
  while (!ends_) {
    std::this_thread::sleep_for(callbacks_.look_every);
    const auto now = std::chrono::steady_clock::now();
    const bool asks = callbacks_.elsewhere && now - asked >= callbacks_.ask_every;
    if (asks) asked = now;
    look_once(asks);
  }
}

std::vector<std::shared_ptr<NcclComm>> NcclWatch::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<NcclComm>> comms;
  for (const std::weak_ptr<NcclComm>& weak : comms_) {
    if (auto comm = weak.lock()) comms.push_back(std::move(comm));
  }
  return comms;
}

void NcclWatch::look_once(bool also_elsewhere) {
  if (!trouble().text.empty()) return;
  // The query may take long, so it runs without the lock.
  Trouble found = {also_elsewhere ? callbacks_.elsewhere() : std::string(), true};
  if (found.text.empty()) {
    found.elsewhere = false;
    for (const std::shared_ptr<NcclComm>& comm : all()) {
      if (found.text.empty()) found.text = comm->trouble().value_or("");
    }
  }
  if (found.text.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    trouble_ = found;
  }
  abort_all(found.text);
}

void NcclWatch::abort(const std::string& reason) { abort_all(reason); }

void NcclWatch::abort_all(const std::string& reason) {
  const std::lock_guard lock(aborts_);
  const Deadline deadline(callbacks_.abort_limit, [&] {
    if (callbacks_.abort_hangs) callbacks_.abort_hangs(reason);
  });
  abort_together(all(), reason, callbacks_.begin);
}

}  // namespace tpsim
