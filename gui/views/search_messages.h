// Messages between a page and the worker that searches for it, as JSON.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/json/json_value.h"
#include "gui/views/search_job.h"

namespace tpsim::gui {

std::string request_of(const Choice& choice);
// Parses the result of request_of().
Result<Choice> choice_of(std::string_view request);

std::string message_of(const SearchNews& news);
// Parses the result of message_of(). An error becomes SearchNews::error.
SearchNews news_of(std::string_view message);

}  // namespace tpsim::gui
