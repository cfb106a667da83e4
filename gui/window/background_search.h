// Searches in a thread of its own, so that the window never waits for one.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "gui/views/search_job.h"

namespace tpsim::gui {

class BackgroundSearch : public SearchHost {
 public:
  // `on_news` is called from the thread when there are findings: it wakes the window.
  explicit BackgroundSearch(std::function<void()> on_news);
  ~BackgroundSearch() override;
  BackgroundSearch(const BackgroundSearch&) = delete;
  BackgroundSearch& operator=(const BackgroundSearch&) = delete;

  // A job that is under way is given up after its present piece; its findings are dropped. What a
  // job throws, news() throws.
  void begin(SearchJob job) override;
  std::optional<Findings> news() override;
  bool is_busy() const override;

 private:
  void work();
  void work_on_jobs();

  std::function<void()> on_news_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<SearchJob> next_;
  std::optional<Findings> findings_;
  std::exception_ptr failure_;
  std::uint64_t generation_ = 0;  // of the job asked for last
  bool is_busy_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tpsim::gui
