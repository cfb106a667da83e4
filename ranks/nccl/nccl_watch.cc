#include "ranks/nccl/nccl_watch.h"

namespace tpsim {

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

void NcclWatch::look_once(bool also_elsewhere) {
  // Asking may take a while, and add() shall not wait for it.
  const std::string elsewhere = also_elsewhere ? callbacks_.elsewhere() : std::string();
  const std::lock_guard lock(mutex_);
  if (!trouble_.text.empty()) return;
  trouble_ = {elsewhere, !elsewhere.empty()};
  for (const std::weak_ptr<NcclComm>& weak : comms_) {
    if (!trouble_.text.empty()) break;
    if (const auto comm = weak.lock()) trouble_.text = comm->trouble().value_or("");
  }
  if (trouble_.text.empty()) return;
  for (const std::weak_ptr<NcclComm>& weak : comms_) {
    if (const auto comm = weak.lock()) comm->abort(trouble_.text);
  }
}

}  // namespace tpsim
