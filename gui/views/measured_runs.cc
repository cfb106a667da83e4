#include "core/json/json_document.h"
#include "gui/views/views.h"

namespace tpsim::gui {
namespace {

std::optional<double> number_at(const JsonValue& row, std::string_view key) {
  const JsonValue* value = row.find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* real = value->as<double>()) return *real;
  if (const auto* whole = value->as<std::int64_t>()) return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<MeasuredRow> row_of(const JsonValue& row) {
  const auto measured = number_at(row, "measured_step_s");
  const auto predicted = number_at(row, "predicted_step_s");
  const JsonValue* skipped = row.find("skipped_because");
  if (skipped != nullptr && !skipped->is_null()) return std::nullopt;
  if (!measured || !predicted || *measured <= 0 || *predicted <= 0) return std::nullopt;
  MeasuredRow result;
  if (const JsonValue* id = row.find("id"); id != nullptr && id->as<std::string>() != nullptr) {
    result.id = *id->as<std::string>();
  }
  result.measured = *measured;
  result.predicted = *predicted;
  result.low = number_at(row, "low_s").value_or(*predicted);
  result.high = number_at(row, "high_s").value_or(*predicted);
  return result;
}

// Reads the error figures that `tpsim validate` wrote under `key` of the report.
Result<MeasuredFigures> figures_of(const JsonValue& root, const char* key,
                                   const std::string& file) {
  const JsonValue* summary = root.find(key);
  const auto figure = [&](const char* name) {
    return summary == nullptr ? std::nullopt : number_at(*summary, name);
  };
  const auto rows = figure("n"), error = figure("mape"), coverage = figure("interval_coverage_90");
  if (!rows || !error || !coverage) {
    return bad_input(std::string("lacks \"") + key + "\" with n, mape, interval_coverage_90", file,
                     "write the report again: tpsim validate --runs runs.csv --json > report.json");
  }
  return MeasuredFigures{static_cast<std::int64_t>(*rows), *error / 100, *coverage};
}

Result<MeasuredRuns> runs_of(const std::string& file) {
  TPSIM_TRY(const JsonValue root, read_json_file(file));
  const JsonValue* rows = root.find("rows");
  if (rows == nullptr || rows->as<JsonValue::Array>() == nullptr) {
    return bad_input("contains no rows of measured runs", file,
                     "write such a file: tpsim validate --runs runs.csv --json > report.json");
  }
  MeasuredRuns runs;
  for (const JsonValue& row : *rows->as<JsonValue::Array>()) {
    if (const auto read = row_of(row)) {
      runs.rows.push_back(*read);
    } else {
      ++runs.skipped;
    }
  }
  if (runs.rows.empty()) {
    return bad_input("no row has both a measured and a predicted step", file,
                     "add the column step_s to the table of runs and validate it again");
  }
  TPSIM_TRY(runs.tested, figures_of(root, "summary_test_rows", file));
  TPSIM_TRY(runs.fitted, figures_of(root, "summary_calibration_rows", file));
  return runs;
}

}  // namespace

MeasuredRuns read_measured_runs(const std::string& file) {
  Result<MeasuredRuns> runs = runs_of(file);
  if (runs.ok()) return std::move(runs).value();
  MeasuredRuns none;
  none.error = runs.error();
  return none;
}

}  // namespace tpsim::gui
