// Finds one field of a struct by the path of its key in files, such as "host.per_op".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/json/json_fields.h"

namespace tpsim {

// A number of a struct, with its meaning and range in files. Times have no upper limit.
struct FoundNumber {
  std::string_view meaning;
  NumberRange range;
  std::variant<double*, Seconds*> place;

  bool is_time() const { return std::holds_alternative<Seconds*>(place); }
  double value() const {
    return is_time() ? std::get<Seconds*>(place)->value() : *std::get<double*>(place);
  }
  void set(double value) const {
    if (is_time()) {
      *std::get<Seconds*>(place) = Seconds(value);
    } else {
      *std::get<double*>(place) = value;
    }
  }
};

struct WordPlace {
  std::uint8_t* value;
  std::vector<std::string_view> words;
};
// A field of a struct. Lists and texts are not found.
struct FieldPlace {
  std::variant<std::monostate, std::int64_t*, double*, bool*, WordPlace, Seconds*> where;
  NumberRange range = {};
  std::string_view meaning = {};

  bool is_found() const { return where.index() > 0; }
};

// Finds the field when passed to a field list in place of a FieldReader. Paths may leave out the
// objects "extras".
class FieldFinder {
 public:
  FieldFinder(std::string_view path, FieldPlace& found) : path_(path), found_(found) {}

  template <class Value>
  void integer(const FieldKey& key, Value& value, IntRange range, Presence = kRequired) {
    if constexpr (std::is_same_v<Value, std::int64_t>) {
      const auto least = static_cast<double>(range.least), most = static_cast<double>(range.most);
      if (key.name == path_) found_ = {&value, {least, most}, key.meaning};
    }
  }
  void number(const FieldKey& key, double& value, NumberRange range, Presence = kRequired) {
    if (key.name == path_) found_ = {&value, range, key.meaning};
  }
  template <class Q>
  void quantity(const FieldKey& key, Q& value, Presence = kRequired) {
    if constexpr (std::is_same_v<Q, Seconds>) {
      if (key.name == path_) found_ = {&value, {}, key.meaning};
    }
  }
  void flag(const FieldKey& key, bool& value, Presence = kRequired) {
    if (key.name == path_) found_ = {&value, {}, key.meaning};
  }
  template <class E>
  void choice(const FieldKey& key, E& value, const std::vector<std::type_identity_t<E>>& all,
              Presence = kRequired) {
    static_assert(sizeof(E) == 1);
    if (key.name != path_) return;
    found_ = {WordPlace{reinterpret_cast<std::uint8_t*>(&value),
                        texts_of(all, [](E one) { return name_of(one); })},
              {},
              key.meaning};
  }
  template <class Fields>
  void object(const FieldKey& key, Fields&& fields, Presence = kRequired) {
    const bool is_named = path_.starts_with(key.name) && path_.substr(key.name.size(), 1) == ".";
    if (!is_named && key.name == "extras") return fields(*this);
    if (!is_named) return;
    FieldFinder inner(path_.substr(key.name.size() + 1), found_);
    fields(inner);
  }
  template <class Fields>
  void object_if(bool /*written*/, const FieldKey& key, Fields&& fields) {
    object(key, fields);
  }
  template <class Fields>
  void when(bool /*written*/, Fields&& fields) {
    fields(*this);
  }

  void format(std::string_view) {}
  void require(bool, std::string_view, std::string_view) {}
  void renamed(std::string_view, std::string_view) {}
  template <class... Rest>
  void text(const FieldKey&, const Rest&...) {}
  template <class... Rest>
  void texts(const FieldKey&, const Rest&...) {}
  template <class Value>
  void integers(const FieldKey&, const Value&, IntRange, Presence = kRequired) {}
  void numbers(const FieldKey&, const std::vector<double>&, NumberRange) {}
  template <class... Rest>
  void objects(const FieldKey&, Rest&&...) {}
  template <class... Rest>
  void word(const FieldKey&, const Rest&...) {}
  template <class... Rest>
  void choices(const FieldKey&, const Rest&...) {}
  template <class... Rest>
  void word_list(const FieldKey&, const Rest&...) {}

 private:
  std::string_view path_;
  FieldPlace& found_;
};

// Returns the number at `path`; empty if the file has no such number.
template <class Spec, class Fields>
std::optional<FoundNumber> number_at(Spec& spec, std::string_view path, Fields fields) {
  FieldPlace found;
  FieldFinder finder(path, found);
  fields(finder, spec);
  if (double* const* number = std::get_if<double*>(&found.where)) {
    return FoundNumber{found.meaning, found.range, *number};
  }
  Seconds* const* const time = std::get_if<Seconds*>(&found.where);
  if (time == nullptr) return std::nullopt;
  return FoundNumber{found.meaning, found.range, *time};
}

}  // namespace tpsim
