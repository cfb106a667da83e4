// Finds one number of a struct by the path of its key in files, such as "host.per_op".
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>

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

// Finds the number when passed to a field list in place of a FieldReader.
class FieldFinder {
 public:
  explicit FieldFinder(std::string_view path) : path_(path) {}

  std::optional<FoundNumber> found() const { return found_; }

  void number(const FieldKey& key, double& value, NumberRange range, Presence = kRequired) {
    if (key.name == path_) found_ = FoundNumber{key.meaning, range, &value};
  }
  template <class Q>
  void quantity(const FieldKey& key, Q& value, Presence = kRequired) {
    if constexpr (std::is_same_v<Q, Seconds>) {
      if (key.name == path_) found_ = FoundNumber{key.meaning, {}, &value};
    }
  }
  template <class Fields>
  void object(const FieldKey& key, Fields&& fields, Presence = kRequired) {
    if (!path_.starts_with(key.name) || path_.substr(key.name.size(), 1) != ".") return;
    FieldFinder inner(path_.substr(key.name.size() + 1));
    fields(inner);
    found_ = inner.found_;
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
  template <class... Rest>
  void flag(const FieldKey&, const Rest&...) {}
  template <class Value>
  void integer(const FieldKey&, const Value&, IntRange, Presence = kRequired) {}
  template <class Value>
  void integers(const FieldKey&, const Value&, IntRange, Presence = kRequired) {}
  template <class E>
  void choice(const FieldKey&, const E&, const std::vector<std::type_identity_t<E>>&,
              Presence = kRequired) {}
  template <class... Rest>
  void word(const FieldKey&, const Rest&...) {}
  template <class... Rest>
  void word_list(const FieldKey&, const Rest&...) {}

 private:
  std::string_view path_;
  std::optional<FoundNumber> found_;
};

// Returns the number at `path`; empty if the file has no such number.
template <class Spec, class Fields>
std::optional<FoundNumber> number_at(Spec& spec, std::string_view path, Fields fields) {
  FieldFinder finder(path);
  fields(finder, spec);
  return finder.found();
}

}  // namespace tpsim
