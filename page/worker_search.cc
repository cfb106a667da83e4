#include "page/worker_search.h"

#include <emscripten.h>

#include <memory>

#include "core/scenario/catalogue.h"
#include "gui/views/choice.h"
#include "gui/views/search_messages.h"
#include "page/paths.h"

namespace tpsim::gui {
namespace {

SearchNews failure(Error error) {
  SearchNews news;
  news.error = std::move(error);
  news.is_last = true;
  return news;
}

void post(const SearchNews& news) {
  EM_ASM({ postMessage({news : UTF8ToString($0), isLast : !!$1, heap : HEAPU8.length}); },
         message_of(news).c_str(), news.is_last);
}

Result<SearchJob> job_of(const char* request) {
  TPSIM_TRY(Choice choice, choice_of(request));
  TPSIM_TRY(LoadedChoice loaded, load_choice(Catalogue(kCatalogue), choice));
  return SearchJob(std::move(choice), std::make_shared<const Scenario>(std::move(loaded.scenario)));
}

}  // namespace

void WorkerSearch::begin(SearchJob job) {
  stop();
  is_busy_ = true;
  EM_ASM({ beginSearch(UTF8ToString($0)); }, request_of(job.choice()).c_str());
}

void WorkerSearch::stop() {
  EM_ASM({ endSearch(); });
  news_.clear();
  progress_ = 0;
  is_busy_ = false;
}

std::optional<SearchNews> WorkerSearch::news() {
  if (news_.empty()) return std::nullopt;
  SearchNews first = std::move(news_.front());
  news_.pop_front();
  return first;
}

void WorkerSearch::hear_news(const char* message) {
  news_.push_back(news_of(message));
  is_busy_ = !news_.back().is_last;
}

void WorkerSearch::hear_failure(const char* reason) {
  news_.push_back(failure({ErrorKind::kBug, "the search ended early", "", reason}));
  is_busy_ = false;
}

void search_in_worker(const char* request) {
  Result<SearchJob> job = job_of(request);
  if (!job.ok()) return post(failure(job.error()));
  double shown = 0;
  const auto show = [&shown](double share) {
    if (share < shown + 0.01) return;  // a message per percent
    shown = share;
    EM_ASM({ postMessage({progress : $0}); }, share);
  };
  while (!job->done()) post(job->step(show));
}

}  // namespace tpsim::gui
