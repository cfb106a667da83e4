#include "core/result.h"

#include <fmt/format.h>

namespace tpsim {

std::string to_string(const Error& error) {
  std::string text = error.where.empty() ? "" : error.where + ": ";
  text += error.message;
  if (!error.hint.empty()) text += " (" + error.hint + ")";
  return text;
}

void fail_check(const char* file, int line, const char* condition, const std::string& message) {
  throw BugError(fmt::format("{}:{}: check failed: {}: {}", file, line, condition, message));
}

}  // namespace tpsim
