// What a campaign is costed with beside the prediction of a step: power, prices, failures, storage.
//
// Every assumption is a number with a unit and a source. They come from
// {"format": "tpsim-campaign/1", ...} files in data/campaigns/, and options may replace them.
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
  kGpuPower,          // one GPU while the run occupies it
  kOtherPower,        // power of host, network and storage per GPU
  kPue,               // what the building draws over what its machines draw
  kCarbon,            // carbon intensity of the grid
  kPrice,             // of one GPU for an hour
  kNodeMtbf,          // mean time between failures of one node
  kStorageBandwidth,  // at which all ranks together write a checkpoint
  kRestartTime,       // from a failure to the first new step, without waiting for a node
  kRepairTime,        // until a failed node is back
  kDowntime,          // of the whole run, for reasons other than failing nodes
  kSpareNodes,
};
inline constexpr int kAssumptionCount = static_cast<int>(Assumption::kSpareNodes) + 1;

struct AssumptionRow {
  Assumption assumption;
  const char* key;
  const char* unit;  // that every value is written with; empty for a plain number
  const char* meaning;
  double least;
  double most;
  bool whole = false;
};
// In the order of Assumption.
std::span<const AssumptionRow> assumption_rows();
const AssumptionRow& row_of(Assumption assumption);

// "400 W" as 400 for a row whose unit is W. Another unit, none, or a number out of range is an
// error that says what is wanted.
Result<double> parse_assumption(const AssumptionRow& row, std::string_view text);
// The reverse: "400 W".
std::string assumption_text(const AssumptionRow& row, double value);

struct AssumedValue {
  double value = 0;  // in the row's unit
  std::string source;
};

struct Assumptions {
  std::string name;
  std::array<AssumedValue, kAssumptionCount> values;

  double operator[](Assumption assumption) const {
    return values[static_cast<std::size_t>(assumption)].value;
  }
  void set(Assumption assumption, double value, std::string source) {
    values[static_cast<std::size_t>(assumption)] = {value, std::move(source)};
  }
};

Result<Assumptions> read_assumptions(const std::filesystem::path& path);
Result<Assumptions> parse_assumptions(std::string_view text, const std::string& file);

// The JSON schema of its files.
JsonValue assumptions_schema();

// Names in data/campaigns/, in alphabetical order.
std::vector<std::string> assumption_names(const Catalogue& catalogue);
// A name in data/campaigns/ or the path of a file (it contains '/' or ends in ".json").
Result<std::filesystem::path> find_assumptions(const Catalogue& catalogue,
                                               std::string_view name_or_path);
Result<Assumptions> load_assumptions(const Catalogue& catalogue, std::string_view name_or_path);

}  // namespace tpsim
