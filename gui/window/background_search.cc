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
    news_.clear();
    is_busy_ = true;
    progress_ = 0;
    ++generation_;
  }
  wake_.notify_one();
}

std::optional<SearchNews> BackgroundSearch::news() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (news_.empty()) return std::nullopt;
  SearchNews first = std::move(news_.front());
  news_.pop_front();
  return first;
}

bool BackgroundSearch::is_busy() const {
  const std::lock_guard lock(mutex_);
  return is_busy_ || !news_.empty();
}

double BackgroundSearch::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

void BackgroundSearch::stop() {
  const std::lock_guard lock(mutex_);
  next_.reset();
  is_busy_ = false;
  ++generation_;
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

// Returns the results of a piece; none if another job began or the job was stopped.
std::optional<SearchNews> BackgroundSearch::step(SearchJob& job, std::uint64_t generation) {
  try {
    return job.step([&](double share) {
      const std::lock_guard lock(mutex_);
      if (generation != generation_) throw SearchStopped();
      progress_ = share;
    });
  } catch (const SearchStopped&) {
    return std::nullopt;
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
      std::optional<SearchNews> news = step(job, generation);
      lock.lock();
      if (generation != generation_ || !news) break;
      news_.push_back(*std::move(news));
      is_busy_ = !job.done();
      lock.unlock();
      on_news_();
      lock.lock();
    }
  }
}

}  // namespace tpsim::gui
