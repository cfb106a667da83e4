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

// An object that reports contain, such as a layout or a prediction.
struct ReportObject {
  std::string_view name;
  std::string_view base;  // object whose keys this object has too; empty: none
  std::span<const ReportKey> keys;
};

// A report: the object that a command prints.
struct ReportFormat {
  std::string_view kind;     // of `tpsim show schema`: "plan-report"
  std::string_view version;  // value of its first key: "tpsim-plan-report/1"
  std::string_view command;
  std::string_view object;
};

std::span<const ReportFormat> report_formats();

// Tables of objects, by the reports that contain them.
std::span<const ReportObject> prediction_objects();  // layouts, predictions, terms
std::span<const ReportObject> answer_objects();      // plan, simulate, explain, compare, export
std::span<const ReportObject> evidence_objects();    // run, validate, check-log, calibrate
std::span<const ReportObject> campaign_objects();    // campaign, list, errors

// Returns the JSON schema of a report. Keys of objects that it contains are under "$defs". No key
// is required, and other keys are allowed: versions add keys.
JsonValue report_schema(const ReportFormat& format);

// Returns docs/reports.md.
std::string reports_page();

}  // namespace tpsim::app
