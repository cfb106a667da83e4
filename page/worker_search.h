// Searches in a worker of the browser, which runs the same program as the page. The page's thread
// stays free to draw. Stopping a search ends its worker, so that the worker's memory is released.
#pragma once

#include <deque>
#include <optional>

#include "gui/views/search_job.h"

namespace tpsim::gui {

class WorkerSearch : public SearchHost {
 public:
  ~WorkerSearch() override { stop(); }

  void begin(SearchJob job) override;
  std::optional<SearchNews> news() override;
  bool is_busy() const override { return is_busy_ || !news_.empty(); }
  double progress() const override { return progress_; }
  void stop() override;

  // Called by the page's script with messages of the worker.
  void hear_progress(double share) { progress_ = share; }
  void hear_news(const char* message);
  void hear_failure(const char* reason);

 private:
  std::deque<SearchNews> news_;
  double progress_ = 0;
  bool is_busy_ = false;
};

// Runs a search in a worker. `request` is a message of request_of(). Posts the results to the page.
void search_in_worker(const char* request);

}  // namespace tpsim::gui
