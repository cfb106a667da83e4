#include "gui/window/background_search.h"

namespace tpsim::gui {

BackgroundSearch::BackgroundSearch(std::function<void()> on_news)
    : on_news_(std::move(on_news)), thread_([this] { work(); }) {}

BackgroundSearch::~BackgroundSearch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    ++generation_;
  }
  wake_.notify_one();
  thread_.join();
}

void BackgroundSearch::begin(SearchJob job) {
  {
    const std::lock_guard lock(mutex_);
    next_.emplace(std::move(job));
    findings_.reset();
    is_busy_ = true;
    ++generation_;
  }
  wake_.notify_one();
}

std::optional<Findings> BackgroundSearch::news() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return std::exchange(findings_, std::nullopt);
}

bool BackgroundSearch::is_busy() const {
  const std::lock_guard lock(mutex_);
  return is_busy_ || findings_.has_value();
}

void BackgroundSearch::work() {
  try {
    work_on_jobs();
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
    on_news_();
  }
}

void BackgroundSearch::work_on_jobs() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ends_ || next_.has_value(); });
    if (ends_) return;
    SearchJob job = std::move(*next_);
    next_.reset();
    const std::uint64_t generation = generation_;
    while (!job.done() && generation == generation_) {
      lock.unlock();
      job.step();
      lock.lock();
      if (generation != generation_) break;
      findings_ = job.findings();
      is_busy_ = !job.done();
      lock.unlock();
      on_news_();
      lock.lock();
    }
  }
}

}  // namespace tpsim::gui
