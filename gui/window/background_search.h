// Runs searches in a separate thread, so that the window stays responsive.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "gui/views/search_job.h"

namespace tpsim::gui {

class BackgroundSearch : public SearchHost {
 public:
  // `on_news` is called from the search thread when there are results, to wake up the window.
  explicit BackgroundSearch(std::function<void()> on_news);
  ~BackgroundSearch() override;
  BackgroundSearch(const BackgroundSearch&) = delete;
  BackgroundSearch& operator=(const BackgroundSearch&) = delete;

  // Starts a job and stops a running job. news() rethrows an exception of the job.
  void begin(SearchJob job) override;
  std::optional<SearchNews> news() override;
  bool is_busy() const override;
  double progress() const override;
  void stop() override;

 private:
  void work();
  void work_on_jobs();
  std::optional<SearchNews> step(SearchJob& job, std::uint64_t generation);

  std::function<void()> on_news_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<SearchJob> next_;
  std::deque<SearchNews> news_;  // of the latest job
  std::exception_ptr failure_;
  std::uint64_t generation_ = 0;  // number of the latest job
  double progress_ = 0;
  bool is_busy_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tpsim::gui
