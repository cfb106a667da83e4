#include "cli/options/values.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/plan/ratio.h"

namespace tpsim::cli {
namespace {

// Maximum number of values in a range "1-N". No searched setting has more.
constexpr std::int64_t kLongestRange = 4096;
constexpr double kMostAmount = 1e18;

Error out_of_range(Opt opt, std::string_view text, ValueRange range) {
  return option_error(
      opt, fmt::format("{} is out of range: from {} to {}", text, range.least, range.most));
}

// Checks a whole number that a program stated.
Result<std::int64_t> whole_number(Opt opt, double number, ValueRange range) {
  if (number != std::floor(number)) {
    return option_error(opt, fmt::format("'{}' is not a whole number", number));
  }
  const bool fits =
      number >= static_cast<double>(range.least) && number <= static_cast<double>(range.most);
  if (!fits) return out_of_range(opt, fmt::format("{:.0f}", number), range);
  return static_cast<std::int64_t>(number);
}

// Returns the value of a setting or part with two values that a program stated as true, false, 1 or
// 0; nothing for other values.
std::optional<std::int64_t> switched(const FieldFacts& field, const OptionValue& value) {
  if (field.kind != FieldKind::kSwitch) return std::nullopt;
  if (const auto* is_on = std::get_if<bool>(&value)) return *is_on ? 1 : 0;
  const auto* number = std::get_if<double>(&value);
  const bool is_bit = number != nullptr && (*number == 0 || *number == 1);
  return is_bit ? std::optional(static_cast<std::int64_t>(*number)) : std::nullopt;
}

Result<std::int64_t> parse_integer(Opt opt, std::string_view text, ValueRange range) {
  std::int64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, value);
  if (code == std::errc::invalid_argument || end != last) {
    return option_error(opt, fmt::format("'{}' is not a whole number", text));
  }
  if (code != std::errc() || value < range.least || value > range.most) {
    return out_of_range(opt, text, range);
  }
  return value;
}

Status append_range(Opt opt, std::string_view text, ValueRange range,
                    std::vector<std::int64_t>& out) {
  const std::size_t dash = text.find('-', 1);
  TPSIM_TRY(const std::int64_t first, parse_integer(opt, text.substr(0, dash), range));
  std::int64_t last = first;
  if (dash != std::string_view::npos) {
    TPSIM_TRY(last, parse_integer(opt, text.substr(dash + 1), range));
  }
  if (last < first) {
    return option_error(opt, fmt::format("'{}' is a range whose end is below its start", text),
                        fmt::format("write {}-{}", last, first));
  }
  if (last - first >= kLongestRange) {
    return option_error(opt, fmt::format("'{}' spans more than {} values", text, kLongestRange));
  }
  for (std::int64_t value = first; value <= last; ++value) out.push_back(value);
  return Ok{};
}

}  // namespace

std::string text_of(const OptionValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* is_on = std::get_if<bool>(&value)) return *is_on ? "on" : "off";
  return fmt::format("{}", std::get<double>(value));
}

void Arguments::set(Opt opt, std::vector<OptionValue> values) {
  set(opt, joined_text(values, ",", [](const OptionValue& value) { return cli::text_of(value); }));
  values_[opt] = std::move(values);
}

std::vector<OptionValue> values_in(std::string_view text, char separator) {
  std::vector<OptionValue> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(std::string(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<OptionValue> values_of(const Arguments& arguments, Opt opt) {
  const auto* stated = arguments.values(opt);
  return stated != nullptr ? *stated : values_in(*arguments[opt], ',');
}

Result<std::string> word_of(Opt opt, const OptionValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return option_error(opt, fmt::format("'{}' is not a text", text_of(value)));
}

Status append_integers(Opt opt, const OptionValue& value, ValueRange range,
                       std::vector<std::int64_t>& out) {
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr) return append_range(opt, text_of(value), range, out);
  TPSIM_TRY(out.emplace_back(), whole_number(opt, *number, range));
  return Ok{};
}

Error option_error(Opt opt, std::string message, std::string hint) {
  return bad_input(std::move(message), row_of(opt).name, std::move(hint));
}

Status check_plot(const Arguments& arguments) {
  if (!arguments.has("--plot")) return Ok{};
  const std::filesystem::path path = *arguments["--plot"];
  if (path.extension() == ".svg") return Ok{};
  return option_error(
      "--plot", fmt::format("'{}' is not the name of an SVG file", path.string()),
      fmt::format("plots are SVG: type --plot {}",
                  shell_quoted(std::filesystem::path(path).replace_extension(".svg").string())));
}

Status check_single(const Arguments& arguments, Opt opt, std::size_t values) {
  if (values < 2) return Ok{};
  return option_error(opt, fmt::format("'{}' is more than one value", *arguments[opt]),
                      "give one value");
}

Result<std::vector<std::int64_t>> integers_of(const Arguments& arguments, Opt opt,
                                              ValueRange range) {
  std::vector<std::int64_t> values;
  if (!arguments.has(opt)) return values;
  for (const OptionValue& value : values_of(arguments, opt)) {
    TPSIM_TRY_STATUS(append_integers(opt, value, range, values));
  }
  return values;
}

Result<std::int64_t> integer_of(const Arguments& arguments, Opt opt, std::int64_t fallback,
                                ValueRange range) {
  TPSIM_TRY(const std::vector<std::int64_t> values, integers_of(arguments, opt, range));
  TPSIM_TRY_STATUS(check_single(arguments, opt, values.size()));
  return values.empty() ? fallback : values.front();
}

Result<std::vector<std::size_t>> chosen_names(const Arguments& arguments, Opt opt,
                                              std::span<const std::string_view> names) {
  std::vector<std::size_t> indices;
  if (!arguments.has(opt)) return indices;
  for (const OptionValue& value : values_of(arguments, opt)) {
    TPSIM_TRY(const std::string word, word_of(opt, value));
    const Result<std::size_t> index = choose("value", word, names);
    if (!index.ok()) return option_error(opt, index.error().message, index.error().hint);
    indices.push_back(*index);
  }
  sort_and_unite(indices);
  return indices;
}

Result<SettingChoices> setting_choices(const Arguments& arguments, Setting setting) {
  const SettingRow& row = row_of(setting);
  const Opt opt = opt_of(setting);
  SettingChoices choices;
  if (!arguments.has(opt)) return choices;
  if (row.words.empty()) {
    TPSIM_TRY(choices.values, integers_of(arguments, opt, {row.least, row.most}));
    sort_and_unite(choices.values);
    return choices;
  }
  for (const OptionValue& one : values_of(arguments, opt)) {
    if (const auto value = switched(row, one)) {
      choices.values.push_back(*value);
      continue;
    }
    TPSIM_TRY(const std::string word, word_of(opt, one));
    const std::string_view part = word;
    const std::size_t colon = part.find(':');
    const Result<std::int64_t> value = parse_value(row, part.substr(0, colon));
    if (!value.ok()) {
      const std::string_view instead = possible_instead(row_of(opt).name, part);
      return option_error(opt, value.error().message,
                          instead.empty() ? value.error().hint : std::string(instead));
    }
    choices.values.push_back(*value);
    if (colon == std::string_view::npos) continue;
    const SettingRow* count = count_setting_of({setting, *value});
    if (count == nullptr) {
      return option_error(
          opt, fmt::format("'{}' has a number of layers, which is valid for blocks only", part),
          fmt::format("write {}", row_of(opt).value));
    }
    TPSIM_TRY_STATUS(append_range(opt, part.substr(colon + 1), {1, count->most}, choices.counts));
  }
  sort_and_unite(choices.values);
  sort_and_unite(choices.counts);
  return choices;
}

Result<std::int64_t> part_value(const PartRow& row, const OptionValue& stated) {
  const Opt opt = opt_of(row.part);
  if (const auto value = switched(row, stated)) return *value;
  if (const auto* number = std::get_if<double>(&stated)) {
    if (row.kind == FieldKind::kWordOrCount) return whole_number(opt, *number, {1, row.most});
    if (row.kind == FieldKind::kNumber) {
      return whole_number(opt, *number, {row.least, row.most});
    }
    if (row.kind == FieldKind::kWordOrRatio) {
      if (const auto value = ratio_value(*number)) return *value;
      return option_error(opt, fmt::format("{} is not a number from 1 on", *number));
    }
  }
  TPSIM_TRY(const std::string text, word_of(opt, stated));
  Result<std::int64_t> value = parse_value(row, text);
  if (value.ok()) return value;
  std::string hint = value.error().hint;
  if (row.part == StackPart::kExpertLoad) {
    hint += "; or a file with the token count of each expert";
  }
  const std::string_view instead = possible_instead(row_of(opt).name, text);
  if (!instead.empty()) hint = instead;
  return option_error(opt, value.error().message, std::move(hint));
}

std::optional<double> number_of(const Arguments& arguments, Opt opt) {
  const std::vector<OptionValue>* values = arguments.values(opt);
  if (values == nullptr) return parse_number<double>(*arguments[opt]);
  const auto* number = values->size() == 1 ? std::get_if<double>(&values->front()) : nullptr;
  return number == nullptr ? std::nullopt : std::optional(*number);
}

Result<std::optional<double>> probability_of(const Arguments& arguments, Opt opt) {
  if (!arguments.has(opt)) return std::optional<double>();
  const std::string_view text = *arguments[opt];
  const bool in_percent = text.ends_with('%');
  const auto number = in_percent ? parse_number<double>(text.substr(0, text.size() - 1))
                                 : number_of(arguments, opt);
  const double value = number.value_or(0) / (in_percent ? 100 : 1);
  if (!(value > 0 && value < 1)) {
    return option_error(opt, fmt::format("'{}' is not a probability between 0 and 1", text),
                        "write 0.05 or 5%");
  }
  return std::optional(value);
}

Result<double> node_gbps_of(const Arguments& arguments) {
  if (!arguments.has("--node-gbps")) return 0.0;
  constexpr double kLeast = 1, kMost = 1e6;
  const std::string& text = *arguments["--node-gbps"];
  const double rate = number_of(arguments, "--node-gbps").value_or(0);
  if (!(rate >= kLeast && rate <= kMost)) {
    return option_error("--node-gbps", fmt::format("'{}' is not a rate in Gb/s", text),
                        "write a number: four NICs of 100 Gb/s are 400");
  }
  return rate;
}

Result<Bytes> bytes_of(const Arguments& arguments, Opt opt) {
  if (!arguments.has(opt)) return Bytes();
  Result<Bytes> bytes = parse_bytes(*arguments[opt]);
  if (!bytes.ok()) return option_error(opt, bytes.error().message, bytes.error().hint);
  if (bytes->value() <= 0) return option_error(opt, "the size must be above zero");
  return bytes;
}

Result<double> amount_of(const Arguments& arguments, Opt opt, std::span<const AmountUnit> units,
                         const char* what, const char* hint) {
  const std::string& text = *arguments[opt];
  const std::optional<double> stated =
      arguments.values(opt) == nullptr ? std::nullopt : number_of(arguments, opt);
  const LeadingNumber number =
      stated ? LeadingNumber{*stated, text.size()} : leading_number(text).value_or(LeadingNumber{});
  std::string_view unit = std::string_view(text).substr(number.length);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto found = std::find_if(units.begin(), units.end(),
                                  [&](const AmountUnit& one) { return one.name == unit; });
  if (number.length == 0 || found == units.end()) {
    return option_error(opt, fmt::format("'{}' is not {}", text, what), hint);
  }
  if (!(number.value > 0 && number.value * found->factor < kMostAmount)) {
    return option_error(opt, fmt::format("'{}' is out of range", text),
                        number.value > 0 ? "write a smaller value" : "write a value above zero");
  }
  return number.value * found->factor;
}

Result<Seconds> time_of(const Arguments& arguments, Opt opt) {
  constexpr AmountUnit kUnits[] = {
      {"d", 24 * 3600}, {"h", 3600}, {"min", 60}, {"s", 1}, {"ms", 1e-3}};
  if (!arguments.has(opt)) return Seconds();
  TPSIM_TRY(const double seconds,
            amount_of(arguments, opt, kUnits, "a time", "write 850ms, 105s, 30min, 3h or 60d"));
  return Seconds(seconds);
}

}  // namespace tpsim::cli
