// The keys of all reports of --json, as docs/reports.md lists them: the program embeds that page.
#pragma once

#include <string_view>
#include <vector>

#include "core/json/json_value.h"

namespace tpsim::app {

// A report: the object that a command prints. A row of the page's first table.
struct ReportFormat {
  std::string_view command;
  std::string_view kind;     // of `tpsim show schema`: "plan-report"
  std::string_view object;   // the section with its keys
  std::string_view version;  // value of its first key: "tpsim-plan-report/1"
};

const std::vector<ReportFormat>& report_formats();

// Returns the JSON schema of a report. Keys of objects that it contains are under "$defs". No key
// is required, and other keys are allowed: versions add keys.
JsonValue report_schema(const ReportFormat& format);

// Returns docs/reports.md.
std::string_view reports_page();

}  // namespace tpsim::app
