#include "core/base/result.h"

#include <fmt/format.h>

#include <new>
#include <stdexcept>

namespace tpsim {

std::string to_string(const Error& error) {
  std::string text = error.where.empty() ? "" : error.where + ": ";
  text += error.message;
  if (!error.hint.empty()) text += " (" + error.hint + ")";
  return text;
}

Error error_from(const std::exception& exception) {
  // Containers throw length_error before they try to allocate an impossible size.
  const bool is_memory = dynamic_cast<const std::bad_alloc*>(&exception) != nullptr ||
                         dynamic_cast<const std::length_error*>(&exception) != nullptr;
  if (!is_memory) return Error{ErrorKind::kBug, exception.what(), "", ""};
  return Error{ErrorKind::kDoesNotFit,
               "out of memory: this machine's memory or its limit is exhausted", "",
               "request less work at once, or raise the memory limit (ulimit -v)"};
}

void fail_check(const char* file, int line, const char* condition, const std::string& message) {
  throw BugError(fmt::format("{}:{}: check failed: {}: {}", file, line, condition, message));
}

}  // namespace tpsim
