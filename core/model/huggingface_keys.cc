// Keys of a config.json that a family's table does not read. Three kinds: keys without effect, keys
// that repeat a value of the model, and keys that would change the plan.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/model/huggingface_reader.h"

namespace tpsim {
namespace {

bool is_number(const JsonValue& value, double number) {
  const std::int64_t* whole = value.as<std::int64_t>();
  const double* real = value.as<double>();
  if (whole == nullptr && real == nullptr) return false;
  const double given = whole != nullptr ? static_cast<double>(*whole) : *real;
  return std::abs(given - number) <= 1e-9 * std::max(1.0, std::abs(number));
}

bool is_flag(const JsonValue& value, bool flag) {
  const bool* given = value.as<bool>();
  return given != nullptr && *given == flag;
}

// Whether no layer has chunks or windows.
bool sees_all(const std::vector<BlockShape>& layers, const ModelSpec& model) {
  const auto is_full = [](const AttentionShape& a) { return reach(a) == 0 && a.chunk == 0; };
  return is_full(model.attention) &&
         std::all_of(layers.begin(), layers.end(),
                     [&](const BlockShape& block) { return is_full(block.attention); });
}

// Whether a value is a list of full attention for all layers.
bool is_full_everywhere(const JsonValue& value) {
  const auto* words = value.as<JsonValue::Array>();
  return words != nullptr && std::all_of(words->begin(), words->end(), [](const JsonValue& word) {
           const std::string* text = word.as<std::string>();
           return text != nullptr && (*text == "full_attention" || *text == "attention");
         });
}

// Whether a value describes rotary positions without scaling and with the base of the model.
bool is_plain_rotation(const JsonValue& value, const ModelSpec& model) {
  if (value.as<JsonValue::Object>() == nullptr) return false;
  for (const JsonMember& member : *value.as<JsonValue::Object>()) {
    const bool names_kind = member.key == "rope_type" || member.key == "type";
    const std::string* text = member.value.as<std::string>();
    if (names_kind && (text == nullptr || *text != "default")) return false;
    if (member.key == "rope_theta" && !is_number(member.value, model.attention.rope_theta)) {
      return false;
    }
    if (member.key == "factor" && !is_number(member.value, 1)) return false;
  }
  return true;
}

// Whether a key that the family's table did not read repeats a value of the model.
bool says_what_is(const JsonMember& member, TableReader& reader) {
  const ModelSpec& model = reader.model();
  for (const KnownValue& known : family_tables().known_values) {
    if (!matches_any(member.key, known.keys)) continue;
    const double value = reader.number(known.value);
    return known.is_flag ? is_flag(member.value, value != 0) : is_number(member.value, value);
  }
  if (member.key == "layer_types") {
    return sees_all(reader.layers, model) && is_full_everywhere(member.value);
  }
  const bool is_rotation = member.key == "rope_scaling" || member.key == "rope_parameters";
  return is_rotation && is_plain_rotation(member.value, model);
}

std::string shown_value(const JsonValue& value) {
  if (const bool* flag = value.as<bool>()) return *flag ? " = true" : " = false";
  if (const std::int64_t* whole = value.as<std::int64_t>()) return fmt::format(" = {}", *whole);
  if (const double* real = value.as<double>()) return fmt::format(" = {}", *real);
  if (const std::string* text = value.as<std::string>()) return fmt::format(" = '{}'", *text);
  return "";
}

}  // namespace

bool is_neutral(const JsonValue& value) {
  if (value.is_null()) return true;
  if (const bool* flag = value.as<bool>()) return !*flag;
  if (const std::int64_t* whole = value.as<std::int64_t>()) return *whole == 0;
  if (const double* real = value.as<double>()) return *real == 0;
  if (const auto* array = value.as<JsonValue::Array>()) return array->empty();
  if (const auto* object = value.as<JsonValue::Object>()) return object->empty();
  return false;
}

void name_what_was_left(TableReader& reader, const std::string& type) {
  const FamilyTables& tables = family_tables();
  std::string unknown;
  for (const JsonMember* member : reader.in().unread()) {
    if (is_neutral(member->value) || matches_any(member->key, tables.other_keys)) continue;
    if (matches_any(member->key, tables.shaping_keys)) {
      if (says_what_is(*member, reader)) continue;
      return reader.in().reject(
          member->key,
          fmt::format("tpsim cannot read {} models with {}{}, which would change the plan", type,
                      member->key, shown_value(member->value)),
          "remove the key if the model does not use it, or correct model_type");
    }
    if (member->key == "quantization_config") {
      reader.model().notes.push_back(
          "quantization_config: ignored, it describes the stored weights; --dtype sets the plan's "
          "dtype");
    } else {
      unknown += (unknown.empty() ? "" : ", ") + member->key;
    }
  }
  if (!unknown.empty())
    reader.model().notes.push_back("ignored keys that do not affect predictions: " + unknown);
}

}  // namespace tpsim
