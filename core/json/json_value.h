// A JSON document as a tree of plain values, each with its line in the source text.
//
// The parser returns it (core/json/json_document.h); commands build it for --json output. Objects
// keep the order of their keys.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace tpsim {

struct JsonMember;

class JsonValue {
 public:
  using Array = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;

  JsonValue();                        // null
  template <std::integral T>          // bool or a whole number
  JsonValue(T value);                 // NOLINT(google-explicit-constructor)
  JsonValue(double value);            // NOLINT(google-explicit-constructor)
  JsonValue(std::string value);       // NOLINT(google-explicit-constructor)
  JsonValue(std::string_view value);  // NOLINT(google-explicit-constructor)
  JsonValue(const char* value);       // NOLINT(google-explicit-constructor)
  JsonValue(Array value);             // NOLINT(google-explicit-constructor)
  JsonValue(Object value);            // NOLINT(google-explicit-constructor)

  // Defined after JsonMember is complete, as the standard requires of a vector's element type.
  ~JsonValue();
  JsonValue(const JsonValue&);
  JsonValue(JsonValue&&) noexcept;
  JsonValue& operator=(const JsonValue&);
  JsonValue& operator=(JsonValue&&) noexcept;

  // Returns the value as bool, std::int64_t, double, std::string, Array or Object; null if it is of
  // another kind. A whole number is always an std::int64_t, never a double.
  template <class T>
  const T* as() const {
    return std::get_if<T>(&data_);
  }
  template <class T>
  T* as() {
    return std::get_if<T>(&data_);
  }
  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }

  // Returns the member of an object; null if there is none or the value is not an object.
  const JsonValue* find(std::string_view key) const;

  // Appends a member to an object. A fresh (null) value becomes an object.
  JsonValue& set(std::string key, JsonValue value);
  // Appends to an array. A fresh (null) value becomes an array.
  JsonValue& push(JsonValue value);

  int line() const { return line_; }  // line in the parsed text, from 1; 0 if built
  void set_line(int line) { line_ = line; }

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> data_;
  int line_ = 0;
};

struct JsonMember {
  std::string key;
  JsonValue value;
  int line = 0;  // of the key
};

template <std::integral T>
JsonValue::JsonValue(T value)
    : data_(std::conditional_t<std::same_as<T, bool>, bool, std::int64_t>(value)) {}

// Makes an object from members such as {{"tp", 4}, {"schedule", "1f1b"}}.
JsonValue json_object(std::vector<std::pair<std::string, JsonValue>> members = {});

// Makes an array with one element per item of the range.
template <class Range, class ToJson>
JsonValue json_array(const Range& range, ToJson to_json) {
  JsonValue::Array array;
  for (const auto& item : range) array.push_back(to_json(item));
  return array;
}
template <class Range>
JsonValue json_array(const Range& range) {
  return json_array(range, [](const auto& item) { return JsonValue(item); });
}

// Returns the name of the value's kind for messages: "whole number", "text", "object", ...
std::string_view kind_of(const JsonValue& value);

}  // namespace tpsim
