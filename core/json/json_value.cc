#include "core/json/json_value.h"

#include "core/base/check.h"

namespace tpsim {

JsonValue::JsonValue() = default;
JsonValue::JsonValue(double value) : data_(value) {}
JsonValue::JsonValue(std::string value) : data_(std::move(value)) {}
JsonValue::JsonValue(std::string_view value) : data_(std::string(value)) {}
JsonValue::JsonValue(const char* value) : data_(std::string(value)) {}
JsonValue::JsonValue(Array value) : data_(std::move(value)) {}
JsonValue::JsonValue(Object value) : data_(std::move(value)) {}
JsonValue::~JsonValue() = default;
JsonValue::JsonValue(const JsonValue&) = default;
JsonValue::JsonValue(JsonValue&&) noexcept = default;
JsonValue& JsonValue::operator=(const JsonValue&) = default;
JsonValue& JsonValue::operator=(JsonValue&&) noexcept = default;

const JsonValue* JsonValue::find(std::string_view key) const {
  const Object* object = as<Object>();
  if (object == nullptr) return nullptr;
  for (const JsonMember& member : *object) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

JsonValue& JsonValue::set(std::string key, JsonValue value) {
  if (is_null()) data_ = Object{};
  Object* object = as<Object>();
  TPSIM_CHECK(object != nullptr, "set('" + key + "') of a JSON value that is not an object");
  object->push_back({std::move(key), std::move(value)});
  return *this;
}

JsonValue& JsonValue::push(JsonValue value) {
  if (is_null()) data_ = Array{};
  Array* array = as<Array>();
  TPSIM_CHECK(array != nullptr, "push() to a JSON value that is not an array");
  array->push_back(std::move(value));
  return *this;
}

JsonValue json_object(std::vector<std::pair<std::string, JsonValue>> members) {
  JsonValue object(JsonValue::Object{});
  for (auto& [key, value] : members) object.set(std::move(key), std::move(value));
  return object;
}

std::string_view kind_of(const JsonValue& value) {
  if (value.is_null()) return "null";
  if (value.as<bool>() != nullptr) return "true or false";
  if (value.as<std::int64_t>() != nullptr) return "a whole number";
  if (value.as<double>() != nullptr) return "a fraction";
  if (value.as<std::string>() != nullptr) return "a text";
  return value.as<JsonValue::Array>() != nullptr ? "an array" : "an object";
}

}  // namespace tpsim
