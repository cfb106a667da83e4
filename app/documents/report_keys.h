// The keys of all reports of --json, for `tpsim show schema` and docs/reports.md.
#pragma once

#include <span>
#include <string_view>

#include "core/json/json_value.h"

namespace tpsim::app {

struct ReportKey {
  // Names of keys of the object, separated by spaces. "*": any name.
  std::string_view names;
  // "text", "number", "whole" (a whole number), "bool" or the name of an object below. Prefix
  // "list of": an array. Suffix "?": or null.
  std::string_view type;
  std::string_view meaning;
};

// The row of a table that begins an object, such as a layout or a prediction. The object has the
// keys of the rows up to the next such row, and those of the object `base`; empty: none.
constexpr ReportKey object(std::string_view name, std::string_view base = "") {
  return {name, "object", base};
}

// A report: the object that a command prints.
struct ReportFormat {
  std::string_view kind;     // of `tpsim show schema`: "plan-report"
  std::string_view version;  // value of its first key: "tpsim-plan-report/1"
  std::string_view command;
  std::string_view object;
};

std::span<const ReportFormat> report_formats();

// Tables of objects, by the reports that contain them.
std::span<const ReportKey> prediction_keys();  // layouts, predictions, terms
std::span<const ReportKey> answer_keys();      // plan, simulate, explain, compare, export
std::span<const ReportKey> evidence_keys();    // run, validate, check-log, calibrate
std::span<const ReportKey> campaign_keys();    // campaign, list, errors

// Returns the JSON schema of a report. Keys of objects that it contains are under "$defs". No key
// is required, and other keys are allowed: versions add keys.
JsonValue report_schema(const ReportFormat& format);

// Returns docs/reports.md.
std::string reports_page();

}  // namespace tpsim::app
