#include "app/reports/error_json.h"

namespace tpsim::app {
namespace {

std::string_view word_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kBug: return "bug";
    case ErrorKind::kBadInput: return "bad_input";
    case ErrorKind::kDoesNotFit: return "does_not_fit";
    case ErrorKind::kMissing: return "missing";
    case ErrorKind::kInterrupted: return "interrupted";
    case ErrorKind::kTerminated: return "terminated";
  }
  throw BugError("an error of unknown kind");
}

}  // namespace

JsonValue error_json(const Error& error) {
  return json_object({{"kind", word_of(error.kind)},
                      {"exit_code", static_cast<int>(error.kind)},
                      {"text", to_string(error)},
                      {"message", error.message},
                      {"where", error.where},
                      {"hint", error.hint}});
}

JsonValue error_report(const Error& error) {
  JsonValue report = json_object({{"version", "tpsim-error-report/1"}});
  JsonValue keys = error_json(error);
  for (JsonMember& one : *keys.as<JsonValue::Object>()) report.set(one.key, std::move(one.value));
  return report;
}

}  // namespace tpsim::app
