#include "frameworks/olmo/olmo_values.h"

#include <fmt/format.h>

#include "core/base/leading_number.h"
#include "core/base/text.h"

namespace tpsim {

std::string OlmoValues::text(const std::string& key) {
  read_.insert(key);
  const auto found = values_.find(key);
  return found == values_.end() ? "" : found->second;
}

std::string OlmoValues::lower(const std::string& key) { return in_lower_case(text(key)); }

std::int64_t OlmoValues::number(const std::string& key, std::int64_t otherwise) {
  return parse_number<std::int64_t>(text(key)).value_or(otherwise);
}

double OlmoValues::real(const std::string& key, double otherwise) {
  return parse_number<double>(text(key)).value_or(otherwise);
}

bool OlmoValues::flag(const std::string& key, bool otherwise) {
  const std::string value = lower(key);
  return value.empty() ? otherwise : value == "true";
}

std::vector<std::string> OlmoValues::list(const std::string& key) {
  std::vector<std::string> all;
  for (std::size_t i = 0;; ++i) {
    const std::string element = fmt::format("{}.{}", key, i);
    if (!values_.contains(element)) return all;
    all.push_back(text(element));
  }
}

bool OlmoValues::has_section(const std::string& key) const {
  return values_.contains(fmt::format("{}.{}", key, kMadeBy));
}

bool OlmoValues::has_prefix(const std::string& prefix) const {
  const auto found = values_.lower_bound(prefix);
  return found != values_.end() && found->first.starts_with(prefix);
}

std::string OlmoValues::class_of(const std::string& key) {
  return text(fmt::format("{}.{}", key, kMadeBy));
}

void OlmoValues::refuse(const std::string& key, const std::string& why) {
  if (!refused_.insert(key).second) return;  // layers share their block's settings
  left_.refuse(key, fmt::format("{}: {}", key, text(key)), why);
}

void OlmoValues::refuse_if_set(const std::string& key, const std::string& why) {
  const std::string value = lower(key);
  if (!value.empty() && !matches_any(value, "false 0 0.0 none")) refuse(key, why);
}

std::vector<FlatSetting> OlmoValues::unread() const {
  std::vector<FlatSetting> settings;
  for (const FlatSetting& one : recipe_.settings) {
    const bool is_known = read_.contains(one.key) || recipe_.is_default(one.key) ||
                          recipe_.is_default(list_of(one.key));
    if (!is_known && !one.key.ends_with(kMadeBy)) settings.push_back(one);
  }
  return settings;
}

}  // namespace tpsim
