#include "campaigns/assumptions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "campaigns/offers.h"
#include "core/base/leading_number.h"
#include "core/base/shipped_data.h"
#include "core/base/text.h"
#include "core/json/field_schema.h"
#include "core/json/json_document.h"
#include "core/json/json_fields.h"

namespace tpsim {
namespace {

namespace fs = std::filesystem;

constexpr std::array<AssumptionRow, kAssumptionCount> kRows = {{
    {Assumption::kGpuPower, "gpu_power", "W", "power of a GPU", 1, 1e5, "W", "400W"},
    {Assumption::kOtherPower, "other_power", "W", "power of the rest of the node per GPU", 0, 1e5,
     "W"},
    {Assumption::kPue, "pue", "", "power usage effectiveness of the data center", 1, 10, "X"},
    {Assumption::kCarbon, "carbon", "g/kWh", "carbon intensity of the grid", 0, 5000, "G",
     "57g/kWh"},
    {Assumption::kPrice, "price", "USD/h", "price of a GPU-hour", 0, 1e6, "USD|OFFER", "2USD/h"},
    {Assumption::kNodeMtbf, "node_mtbf", "h", "mean time between failures of a node", 1, 1e9, "H",
     "5000h"},
    {Assumption::kStorageBandwidth, "storage_bandwidth", "GB/s",
     "write bandwidth of all ranks for a checkpoint", 1e-3, 1e6, "GB/s"},
    {Assumption::kRestartTime, "restart_time", "min", "time from a failure to the next step", 0,
     1e5, "MIN", "30min"},
    {Assumption::kRepairTime, "repair_time", "h", "time until a failed node is repaired", 0, 1e5,
     "H", "72h"},
    {Assumption::kDowntime, "downtime", "h", "downtime for other reasons than failed nodes", 0, 1e5,
     "H", "100h"},
    {Assumption::kSpareNodes, "spare_nodes", "",
     "spare nodes, or the number with the least cost or time [cost]", 0, 1e5, "N|cost|time", "",
     true},
}};

// Returns the valid values: "number with its unit, from 1 W to 100000 W".
std::string values_text(const AssumptionRow& row) {
  std::string text = fmt::format("{} {}, from {} to {}", row.whole ? "whole number" : "number",
                                 *row.unit == '\0' ? "without unit" : "with its unit",
                                 assumption_text(row, row.least), assumption_text(row, row.most));
  if (row.assumption == Assumption::kPrice) {
    text +=
        "; or the rental offers to take the median of: on-demand, reserved or spot, a provider, "
        "or PROVIDER:spot";
  }
  return text;
}

// The file may omit spare nodes: plan_campaign() then chooses their number.
template <class Io>
void assumption_fields(Io& io, Assumptions& assumptions) {
  io.format("tpsim-campaign/1");
  io.text({"name", "name in reports"}, assumptions.name);
  io.text({"gpu", "GPU in the table of rental offers"}, assumptions.gpu, kOptional);
  for (const AssumptionRow& row : kRows) {
    std::string text;
    AssumedValue& value = assumptions.values[static_cast<std::size_t>(row.assumption)];
    io.object(
        {row.key, row.meaning},
        [&](auto& inner) {
          inner.text({"value", values_text(row)}, text);
          inner.text({"source", "source of the value"}, value.source);
          if constexpr (std::is_same_v<Io, FieldReader>) {
            // A missing key was already reported.
            if (text.empty()) return;
            if (names_offers(row.assumption, text)) {
              const Status priced = set_offered_price(assumptions, text);
              if (!priced.ok()) inner.reject("value", priced.error().message, priced.error().hint);
              return;
            }
            const Result<double> parsed = parse_assumption(row, text);
            if (parsed.ok()) {
              value.value = *parsed;
            } else {
              inner.reject("value", parsed.error().message, parsed.error().hint);
            }
          }
        },
        row.assumption == Assumption::kSpareNodes ? kOptional : kRequired);
  }
}

Error wrong_text(const AssumptionRow& row, std::string_view text) {
  const std::string unit =
      *row.unit == '\0' ? "without a unit" : fmt::format("with the unit {}", row.unit);
  const auto typed = leading_number(text);
  // If the text is a plain number in range, only the unit is missing, and the hint shows this
  // number.
  const bool usable = typed && typed->length == text.size() && typed->value >= row.least &&
                      typed->value <= row.most;
  const double example = usable ? typed->value : std::max(1.0, row.least);
  return bad_input(fmt::format("'{}' is not a number {}", text, unit), "",
                   fmt::format("write it as \"{}\"", assumption_text(row, example)));
}

Result<double> checked_assumption(const AssumptionRow& row, double value) {
  const bool whole = !row.whole || value == std::floor(value);
  if (!(value >= row.least && value <= row.most) || !whole) {
    return bad_input(fmt::format("{} is out of range: it must be {} from {} to {}",
                                 assumption_text(row, value),
                                 row.whole ? "a whole number" : "a number", row.least, row.most));
  }
  return value;
}

}  // namespace

std::span<const AssumptionRow> assumption_rows() { return kRows; }

const AssumptionRow& row_of(Assumption assumption) {
  return kRows[static_cast<std::size_t>(assumption)];
}

std::string option_of(Assumption assumption) {
  std::string name = "--" + std::string(row_of(assumption).key);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

bool names_offers(Assumption assumption, std::string_view text) {
  return assumption == Assumption::kPrice && !text.empty() && !leading_number(text);
}

Result<double> parse_assumption(const AssumptionRow& row, std::string_view text) {
  const auto leading = leading_number(text);
  if (!leading) return wrong_text(row, text);
  std::string_view unit = text.substr(leading->length);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  return unit == row.unit ? checked_assumption(row, leading->value) : wrong_text(row, text);
}

Result<double> assumption_value(const AssumptionRow& row, double value) {
  return *row.unit == '\0' ? checked_assumption(row, value)
                           : wrong_text(row, fmt::format("{}", value));
}

std::string assumption_text(const AssumptionRow& row, double value) {
  return *row.unit == '\0' ? fmt::format("{}", value) : fmt::format("{} {}", value, row.unit);
}

Status set_offered_price(Assumptions& assumptions, std::string_view words) {
  TPSIM_TRY(const OfferedPrice price, offered_price(assumptions.gpu, words));
  assumptions.set(Assumption::kPrice, price.usd, price.source);
  return Ok{};
}

JsonValue assumptions_schema() {
  FieldSchema io;
  Assumptions none;
  assumption_fields(io, none);
  return std::move(io).value();
}

Result<Assumptions> parse_assumptions(std::string_view text, const std::string& file) {
  TPSIM_TRY(const JsonValue root, parse_json(text, file));
  return spec_from_json<Assumptions>(root, file, assumption_fields<FieldReader>);
}

Result<Assumptions> read_assumptions(const fs::path& path) {
  TPSIM_TRY(const JsonValue root, read_json_file(path));
  return spec_from_json<Assumptions>(root, path.string(), assumption_fields<FieldReader>);
}

std::vector<std::string> assumption_names(const Catalogue& catalogue) {
  return stems_in(catalogue.directory() / "campaigns", ".json");
}

Result<fs::path> find_assumptions(const Catalogue& catalogue, std::string_view name_or_path) {
  const bool is_path =
      name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".json");
  if (is_path) return fs::path(name_or_path);
  const std::vector<std::string> names = assumption_names(catalogue);
  TPSIM_TRY(const std::size_t index, choose("set of campaign assumptions", name_or_path,
                                            std::span<const std::string>(names)));
  return catalogue.directory() / "campaigns" / (names[index] + ".json");
}

std::string assumptions_name_of(const Catalogue& catalogue, std::string_view cluster,
                                std::string_view profile) {
  const std::vector<std::string> names = assumption_names(catalogue);
  const auto own_name = [&](std::string_view of) -> std::string {
    constexpr std::string_view kOneNode = "-node";
    if (of.ends_with(kOneNode)) of.remove_suffix(kOneNode.size());
    return std::find(names.begin(), names.end(), of) == names.end() ? "" : std::string(of);
  };
  std::string found = own_name(cluster);
  for (const std::string& other : catalogue.list(CatalogueKind::kClusters)) {
    if (!found.empty()) break;
    const Result<ClusterSpec> spec = catalogue.load_cluster(other);
    const bool is_usual = spec.ok() && spec->profile == profile && !spec->usual_for.empty();
    if (is_usual) found = own_name(other);
  }
  return found;
}

Result<Assumptions> load_assumptions(const Catalogue& catalogue, std::string_view name_or_path) {
  TPSIM_TRY(const fs::path path, find_assumptions(catalogue, name_or_path));
  return read_assumptions(path);
}

}  // namespace tpsim
