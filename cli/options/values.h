// Converts the texts of options to values. Errors name the option, its text and the valid values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cli/options/options.h"
#include "core/base/result.h"
#include "core/base/units.h"

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

// Returns the parts of a text that `separator` separates.
std::vector<OptionValue> values_in(std::string_view text, char separator);
// Returns the values of an option that a program stated, or else the parts of its text, "2,4,8-16".
// The option must be given.
std::vector<OptionValue> values_of(const Arguments& arguments, Opt opt);
// Returns a text of values_of(). Error if the program stated a number or switch.
Result<std::string> word_of(Opt opt, const OptionValue& value);
// Appends a whole number, or the values of "4" or of the range "1-4".
Status append_integers(Opt opt, const OptionValue& value, ValueRange range,
                       std::vector<std::int64_t>& out);

// Returns an integer; `fallback` if the option is absent.
Result<std::int64_t> integer_of(const Arguments& arguments, Opt opt, std::int64_t fallback,
                                ValueRange range = {});

// Parses "1,2,8" and "1-4" (both ends included), in any mixture, in the order written; empty if
// absent.
Result<std::vector<std::int64_t>> integers_of(const Arguments& arguments, Opt opt,
                                              ValueRange range = {});
// Returns the indices in `names` of the names that the option lists, ascending; empty if the option
// is absent.
Result<std::vector<std::size_t>> chosen_names(const Arguments& arguments, Opt opt,
                                              std::span<const std::string_view> names);

// Fails if --plot names a file that is not an SVG.
Status check_plot(const Arguments& arguments);

// Returns an error if `values`, the number of values given, is more than one.
Status check_single(const Arguments& arguments, Opt opt, std::size_t values);

// Values of a setting that its option gives: "2,4-8", "none,blocks:2-4", "on". Sorted, without
// duplicates; empty if the option is absent.
struct SettingChoices {
  std::vector<std::int64_t> values;
  std::vector<std::int64_t> counts;  // counts after a value: 2, 3, 4 for blocks:2-4
};
Result<SettingChoices> setting_choices(const Arguments& arguments, Setting setting);

// Returns the value of a software part.
Result<std::int64_t> part_value(const PartRow& row, const OptionValue& stated);

// Returns the number that a given option states; nothing if its text is not a number.
std::optional<double> number_of(const Arguments& arguments, Opt opt);

// Parses a name of an enumeration; `fallback` if the option is absent.
template <HasEnumNames E>
Result<E> choice_of(const Arguments& arguments, Opt opt, E fallback) {
  TPSIM_TRY(const std::vector<std::size_t> chosen, chosen_names(arguments, opt, kEnumNames<E>));
  TPSIM_TRY_STATUS(check_single(arguments, opt, chosen.size()));
  return chosen.empty() ? fallback : static_cast<E>(chosen.front());
}

// Returns the network bandwidth per node in Gb/s; 0 if not given.
Result<double> node_gbps_of(const Arguments& arguments);
// Parses a probability between 0 and 1, both excluded: "5%" or "0.05". Nothing if absent.
Result<std::optional<double>> probability_of(const Arguments& arguments, Opt opt);

// Parses a size such as "72GiB"; zero if the option is absent.
Result<Bytes> bytes_of(const Arguments& arguments, Opt opt);

struct AmountUnit {
  std::string_view name;
  double factor;
};
// Parses an amount with a unit. `what` completes the error "'x' is not ...".
Result<double> amount_of(const Arguments& arguments, Opt opt, std::span<const AmountUnit> units,
                         const char* what, const char* hint);
// Parses a time: "850ms", "105s", "3 h", "30min", "60d". Zero if the option is absent.
Result<Seconds> time_of(const Arguments& arguments, Opt opt);

// Returns an error such as "--tp: '4x' is not a whole number (hint)".
Error option_error(Opt opt, std::string message, std::string hint = "");

}  // namespace tpsim::cli
