#include "kernels/nccl/nccl_watch.h"

namespace tpsim {

NcclWatch::NcclWatch(Senses senses) : senses_(std::move(senses)) {
  thread_ = std::thread([this] { look(); });
}

NcclWatch::~NcclWatch() {
  ends_ = true;
  thread_.join();
}

void NcclWatch::add(const std::shared_ptr<NcclLine>& line) {
  const std::lock_guard lock(mutex_);
  std::erase_if(lines_, [](const std::weak_ptr<NcclLine>& one) { return one.expired(); });
  lines_.push_back(line);
}

NcclWatch::Trouble NcclWatch::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

void NcclWatch::look() {
  if (senses_.begin) senses_.begin();
  auto asked = std::chrono::steady_clock::now();
  while (!ends_) {
    std::this_thread::sleep_for(senses_.look_every);
    const auto now = std::chrono::steady_clock::now();
    const bool asks = senses_.elsewhere && now - asked >= senses_.ask_every;
    if (asks) asked = now;
    look_once(asks);
  }
}

void NcclWatch::look_once(bool also_elsewhere) {
  // Asking may take a while, and add() shall not wait for it.
  const std::string elsewhere = also_elsewhere ? senses_.elsewhere() : std::string();
  const std::lock_guard lock(mutex_);
  if (!trouble_.text.empty()) return;
  trouble_ = {elsewhere, !elsewhere.empty()};
  for (const std::weak_ptr<NcclLine>& weak : lines_) {
    if (!trouble_.text.empty()) break;
    if (const auto line = weak.lock()) trouble_.text = line->trouble().value_or("");
  }
  if (trouble_.text.empty()) return;
  for (const std::weak_ptr<NcclLine>& weak : lines_) {
    if (const auto line = weak.lock()) line->abort(trouble_.text);
  }
}

}  // namespace tpsim
