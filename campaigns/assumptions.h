// Assumptions of a campaign besides the predicted step: power, prices, failures, storage.
//
// Every assumption is a number with a unit and a source. Assumptions are read from {"format":
// "tpsim-campaign/1", ...} files in data/campaigns/. Options replace single values.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/json/json_value.h"
#include "core/scenario/catalogue.h"

namespace tpsim {

enum class Assumption : std::uint8_t {
  kGpuPower,          // power of one GPU while the run occupies it
  kOtherPower,        // power of host, network and storage per GPU
  kPue,               // power usage effectiveness: power of the building / power of its machines
  kCarbon,            // carbon intensity of the grid
  kPrice,             // price of one GPU for one hour
  kNodeMtbf,          // mean time between failures of one node
  kStorageBandwidth,  // write bandwidth of a checkpoint, all ranks together
  kRestartTime,       // from a failure to the first new step, without waiting for a node
  kRepairTime,        // time until a failed node is available again
  kDowntime,          // downtime of the whole run for reasons other than node failures
  kSpareNodes,
};
inline constexpr int kAssumptionCount = static_cast<int>(Assumption::kSpareNodes) + 1;

struct AssumptionRow {
  Assumption assumption;
  const char* key;
  const char* unit;  // unit of every value; empty for a plain number
  const char* meaning;
  double least;
  double most;
  const char* placeholder;   // of the option in --help
  const char* example = "";  // value in --help
  bool whole = false;
};
// In the order of Assumption.
std::span<const AssumptionRow> assumption_rows();
const AssumptionRow& row_of(Assumption assumption);
std::string option_of(Assumption assumption);  // "--gpu-power"

// Parses "400 W" as 400 for a row with unit W. Error with the expected format if the unit is
// missing or different, or if the number is out of range.
Result<double> parse_assumption(const AssumptionRow& row, std::string_view text);
// Whether the text names rental offers (offered_price()) instead of a price.
bool names_offers(Assumption assumption, std::string_view text);
// Checks a number without unit. Error if the assumption has a unit.
Result<double> assumption_value(const AssumptionRow& row, double value);
// Inverse of parse_assumption(): "400 W".
std::string assumption_text(const AssumptionRow& row, double value);

struct AssumedValue {
  double value = 0;  // in the row's unit
  std::string source;
};

struct Assumptions {
  std::string name;
  std::string gpu;  // in the table of rental offers; empty: none
  std::array<AssumedValue, kAssumptionCount> values;

  double operator[](Assumption assumption) const {
    return values[static_cast<std::size_t>(assumption)].value;
  }
  void set(Assumption assumption, double value, std::string source) {
    values[static_cast<std::size_t>(assumption)] = {value, std::move(source)};
  }
};

// Replaces the price by that of rental offers (offered_price()) of the assumptions' GPU.
Status set_offered_price(Assumptions& assumptions, std::string_view words);

Result<Assumptions> read_assumptions(const std::filesystem::path& path);
Result<Assumptions> parse_assumptions(std::string_view text, const std::string& file);

// Returns the JSON schema of assumption files.
JsonValue assumptions_schema();

// Names in data/campaigns/, in alphabetical order.
std::vector<std::string> assumption_names(const Catalogue& catalogue);
// Resolves a name in data/campaigns/ or the path of a file (contains '/' or ends in ".json").
Result<std::filesystem::path> find_assumptions(const Catalogue& catalogue,
                                               std::string_view name_or_path);
// Returns the name of the assumptions for a cluster: the cluster's name without "-node", or else
// that of a cluster that is usual for its GPU (ClusterSpec::usual_for). Empty if neither exists.
std::string assumptions_name_of(const Catalogue& catalogue, std::string_view cluster,
                                std::string_view profile);
Result<Assumptions> load_assumptions(const Catalogue& catalogue, std::string_view name_or_path);

}  // namespace tpsim
