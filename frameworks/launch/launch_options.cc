#include "frameworks/launch/launch_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "formats/unset_marks.h"

namespace tpsim {
namespace {

// Upper bound of degrees, batches and layer sizes. The product of three such values fits into 64
// bits.
constexpr std::int64_t kLargestCount = 1 << 20;

bool parse_whole(std::string_view text, std::int64_t& out) {
  const auto number = parse_number<std::int64_t>(text);
  if (!number || *number < 0 || *number > kLargestCount) return false;
  out = *number;
  return true;
}

}  // namespace

bool is_same_value(std::string_view value, std::string_view wanted) {
  const auto number = parse_number<double>(wanted);
  return value == wanted || (number && number == parse_number<double>(value));
}

bool LaunchOptionReader::has(std::string_view name) const { return has_key(left_, name); }

bool LaunchOptionReader::has_value(std::string_view name, std::string_view value) const {
  return std::any_of(left_.begin(), left_.end(), [&](const LaunchOption& option) {
    return option.key == name && option.value == value;
  });
}

// A switch may also be followed by an unset variable, which is empty when the script runs.
bool LaunchOptionReader::flag(std::string_view name) {
  const auto value = taken(name);
  const bool is_unset = value && is_unset_word(*value);
  const auto name_of_value = is_unset ? unset_name(*value) : std::nullopt;
  if (is_unset && name_of_value->starts_with("$(")) {
    fail(fmt::format("the option after {} is {}", name, why_unset(*name_of_value)),
         "add " + unset_remedy(*name_of_value));
  }
  const bool is_bare = !value || value->empty() || is_unset;
  if (!is_bare) fail(fmt::format("{} is a switch and cannot have the value '{}'", name, *value));
  return value.has_value();
}

void LaunchOptionReader::drop(std::string_view name) { taken(name); }

std::optional<std::string> LaunchOptionReader::taken(std::string_view name) {
  known_.emplace_back(name);
  const auto found = std::find_if(left_.begin(), left_.end(),
                                  [&](const LaunchOption& option) { return option.key == name; });
  if (found == left_.end()) return std::nullopt;
  std::string value = std::move(found->value);
  left_.erase(found);
  return value;
}

std::optional<std::string> LaunchOptionReader::text(std::string_view name) {
  auto value = taken(name);
  if (!value) return value;
  const auto unset = unset_name(*value);
  if (unset) fail(fmt::format("{} is {}", name, why_unset(*unset)), "add " + unset_remedy(*unset));
  return value;
}

std::int64_t LaunchOptionReader::integer(std::string_view name, std::int64_t fallback) {
  const auto value = text(name);
  if (!value) return fallback;
  std::int64_t number = 0;
  if (!parse_whole(*value, number))
    fail(fmt::format("{} is '{}'; it must be a whole number", name, *value));
  return number;
}

std::int64_t LaunchOptionReader::degree(std::string_view name) {
  const std::int64_t number = integer(name, 1);
  if (number < 1) fail(fmt::format("{} is {}; it must be at least 1", name, number));
  return std::max<std::int64_t>(1, number);
}

void LaunchOptionReader::expect(std::string_view name, std::int64_t wanted) {
  const std::int64_t found = integer(name, -1);
  if (found != wanted) {
    fail(found < 0 ? fmt::format("{} is missing", name)
                   : fmt::format("{} is {}; it must be {}", name, found, wanted));
  }
}

void LaunchOptionReader::expect(const LaunchOption& wanted, std::string_view otherwise) {
  const auto found = text(wanted.key);
  const std::string_view value = found ? std::string_view(*found) : otherwise;
  const bool same = is_same_value(value, wanted.value);
  if (same && (found || !otherwise.empty())) return;
  if (!found && otherwise.empty()) return fail(fmt::format("{} is missing", wanted.key));
  fail(fmt::format("{} is {}{}; the model has {}", wanted.key, value, found ? "" : " by default",
                   wanted.value));
}

void LaunchOptionReader::refuse_other(std::span<const char* const> switches,
                                      const LaunchOptions& wanted) {
  for (const char* name : switches) {
    const bool is_wanted = has_key(wanted.all(), name);
    const bool is_set = flag(name);
    if (is_set == is_wanted) continue;
    fail(is_set ? fmt::format("{} does not match the model", name)
                : fmt::format("{} is missing: the model needs it", name));
  }
}

void LaunchOptionReader::note_other(const LaunchOption& wanted, std::vector<std::string>& notes) {
  const auto found = taken(wanted.key);
  if (!found || unset_name(*found) || is_same_value(*found, wanted.value)) return;
  notes.push_back(fmt::format("{} is {}; the prediction uses the named model's value {}",
                              wanted.key, *found, wanted.value));
}

void LaunchOptionReader::note_other(std::span<const char* const> switches,
                                    const LaunchOptions& wanted, std::vector<std::string>& notes) {
  for (const char* name : switches) {
    if (!taken(name) || has_key(wanted.all(), name)) continue;
    notes.push_back(
        fmt::format("{} does not match the named model; the prediction follows the model", name));
  }
}

void LaunchOptionReader::fail(std::string message, std::string hint) {
  if (!error_) error_ = bad_input(std::move(message), "", std::move(hint));
}

std::vector<std::string> LaunchOptionReader::left() const {
  std::vector<std::string> names;
  for (const LaunchOption& option : left_) names.push_back(option.key);
  return names;
}

Status LaunchOptionReader::error() const { return error_ ? Status(*error_) : Ok{}; }

Status LaunchOptionReader::finish(LeftSettings& unknown) const {
  for (const LaunchOption& option : left_) {
    if (std::find(known_.begin(), known_.end(), option.key) != known_.end()) {
      return bad_input(fmt::format("{} is given twice", option.key), "", "give it once");
    }
    unknown.ask(option.key, nearest(option.key, known_));
  }
  return error();
}

}  // namespace tpsim
