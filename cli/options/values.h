// Texts of options as values. An error says which option, what was typed and what would be valid.
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

// Ascending, each value once.
template <class T>
void sort_and_unite(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// The parts of "2,4,8-16" between its commas.
std::vector<std::string_view> listed(std::string_view text);
// Appends "4" or "1-4".
Status append_range(Opt opt, std::string_view text, ValueRange range,
                    std::vector<std::int64_t>& out);

// One whole number; `fallback` when the option is absent.
Result<std::int64_t> integer_of(const Arguments& arguments, Opt opt, std::int64_t fallback,
                                ValueRange range = {});

// "1,2,8" and "1-4" (both ends included), in any mixture, in the order written; empty when absent.
Result<std::vector<std::int64_t>> integers_of(const Arguments& arguments, Opt opt,
                                              ValueRange range = {});
// --gpus "64,128,...,4096": what stands before the dots goes on, by the same factor or else by the
// same step, up to what stands behind them.
Result<std::vector<std::int64_t>> gpu_counts(const Arguments& arguments);
// Which of `names` the option lists, in the order of `names`; empty when absent.
Result<std::vector<std::size_t>> chosen_names(const Arguments& arguments, Opt opt,
                                              std::span<const std::string_view> names);

// An error for a list where one value is wanted.
Status check_single(const Arguments& arguments, Opt opt, std::size_t values);

// What an option says of a setting: "2,4-8", "none,blocks:2-4", "on"; ascending, each value once.
// Empty when it is absent.
struct SettingChoices {
  std::vector<std::int64_t> values;
  std::vector<std::int64_t> counts;  // behind a value: of blocks:2-4
};
Result<SettingChoices> setting_choices(const Arguments& arguments, Setting setting);

// A part of the software. --expert-load may also name a file of counts, which the model has from
// then on: kCountedLoad. Errors name the option, or the file with its line.
Result<std::int64_t> part_value(const PartRow& row, std::string_view text, ModelSpec& model);

// One of the names of an enumeration with words; `fallback` when the option is absent.
template <HasEnumNames E>
Result<E> choice_of(const Arguments& arguments, Opt opt, E fallback) {
  TPSIM_TRY(const std::vector<std::size_t> chosen, chosen_names(arguments, opt, kEnumNames<E>));
  TPSIM_TRY_STATUS(check_single(arguments, opt, chosen.size()));
  return chosen.empty() ? fallback : static_cast<E>(chosen.front());
}

// What leaves a node in Gb/s, 0 where nobody says.
Result<double> node_gbps_of(const Arguments& arguments);
// "5%" or "0.05": a probability above 0 and below 1.
Result<double> probability_of(const Arguments& arguments, Opt opt, double fallback);

// "72GiB"; zero when absent.
Result<Bytes> bytes_of(const Arguments& arguments, Opt opt);

// "2026-11-23", of UTC.
std::string today();

// "--tp: '4x' is no whole number (hint)"
Error option_error(Opt opt, std::string message, std::string hint = "");

}  // namespace tpsim::cli
