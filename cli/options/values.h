// Converts texts of options to values. Errors name the option, the text and valid values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cli/options/options.h"
#include "core/base/result.h"
#include "core/base/units.h"
#include "core/model/model_spec.h"

namespace tpsim::cli {

struct ValueRange {
  std::int64_t least = 1;
  std::int64_t most = 1 << 20;
};

// Sorts in ascending order and removes duplicates.
template <class T>
void sort_and_unite(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// Splits "2,4,8-16" at commas.
std::vector<std::string_view> listed(std::string_view text);
// Appends the values of "4" or "1-4".
Status append_range(Opt opt, std::string_view text, ValueRange range,
                    std::vector<std::int64_t>& out);

// Returns an integer; `fallback` if the option is absent.
Result<std::int64_t> integer_of(const Arguments& arguments, Opt opt, std::int64_t fallback,
                                ValueRange range = {});

// Parses "1,2,8" and "1-4" (both ends included), in any mixture, in the order written; empty if
// absent.
Result<std::vector<std::int64_t>> integers_of(const Arguments& arguments, Opt opt,
                                              ValueRange range = {});
// Parses --gpus "64,128,...,4096". The dots continue the values before them by their factor, or
// else their step, up to the value after the dots.
Result<std::vector<std::int64_t>> gpu_counts(const Arguments& arguments);
// Returns the indices of `names` that the option lists, in the order of `names`; empty if absent.
Result<std::vector<std::size_t>> chosen_names(const Arguments& arguments, Opt opt,
                                              std::span<const std::string_view> names);

// Returns an error for a list if a single value is needed.
Status check_single(const Arguments& arguments, Opt opt, std::size_t values);

// Values of a setting given by its option: "2,4-8", "none,blocks:2-4", "on". Ascending, without
// duplicates; empty if absent.
struct SettingChoices {
  std::vector<std::int64_t> values;
  std::vector<std::int64_t> counts;  // numbers of a value: of blocks:2-4
};
Result<SettingChoices> setting_choices(const Arguments& arguments, Setting setting);

// Parses the value of a part. --expert-load may also name a file of token counts: the model gets
// the counts, and the value is kCountedLoad. Errors name the option, or the file with its line.
Result<std::int64_t> part_value(const PartRow& row, std::string_view text, ModelSpec& model);

// Parses a name of an enumeration; `fallback` if the option is absent.
template <HasEnumNames E>
Result<E> choice_of(const Arguments& arguments, Opt opt, E fallback) {
  TPSIM_TRY(const std::vector<std::size_t> chosen, chosen_names(arguments, opt, kEnumNames<E>));
  TPSIM_TRY_STATUS(check_single(arguments, opt, chosen.size()));
  return chosen.empty() ? fallback : static_cast<E>(chosen.front());
}

// Returns the network bandwidth per node in Gb/s; 0 if not given.
Result<double> node_gbps_of(const Arguments& arguments);
// Parses "5%" or "0.05": a probability between 0 and 1, both excluded.
Result<double> probability_of(const Arguments& arguments, Opt opt, double fallback);

// Parses "72GiB"; zero if absent.
Result<Bytes> bytes_of(const Arguments& arguments, Opt opt);

// Returns the date in UTC: "2026-11-23".
std::string today();

// Returns an error such as "--tp: '4x' is not a whole number (hint)".
Error option_error(Opt opt, std::string message, std::string hint = "");

}  // namespace tpsim::cli
