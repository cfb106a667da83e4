// Runs searches in a separate thread, so that the window stays responsive.
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
  // `on_news` is called from the search thread when there are new findings, to wake up the window.
  explicit BackgroundSearch(std::function<void()> on_news);
  ~BackgroundSearch() override;
  BackgroundSearch(const BackgroundSearch&) = delete;
  BackgroundSearch& operator=(const BackgroundSearch&) = delete;

  // Starts a job. A running job stops after its current piece and its findings are dropped. news()
  // rethrows an exception of the job.
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
  std::uint64_t generation_ = 0;  // number of the latest job
  bool is_busy_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tpsim::gui
