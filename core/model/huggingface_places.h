// Finds a field of a model or block by its path in model files, such as
// "attention.rotary.fraction". Paths leave out the objects "extras".
#pragma once

#include <concepts>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/model/model_fields.h"

namespace tpsim {

struct WordPlace {
  std::uint8_t* value;
  std::vector<std::string_view> words;
};
struct FieldPlace {
  std::variant<std::monostate, std::int64_t*, double*, bool*, WordPlace> where;
  NumberRange range = {};

  bool is_found() const { return where.index() > 0; }
};

// Finds the field when passed to a field list in place of a FieldReader.
class PlaceFinder {
 public:
  PlaceFinder(std::string_view path, FieldPlace& found) : path_(path), found_(found) {}

  void integer(const FieldKey& key, std::int64_t& value, IntRange range, Presence = kRequired) {
    if (key.name != path_) return;
    found_ = {&value, {static_cast<double>(range.least), static_cast<double>(range.most)}};
  }
  void number(const FieldKey& key, double& value, NumberRange range, Presence = kRequired) {
    if (key.name == path_) found_ = {&value, range};
  }
  void flag(const FieldKey& key, bool& value, Presence = kRequired) {
    if (key.name == path_) found_ = {&value};
  }
  template <class E>
  void choice(const FieldKey& key, E& value, const std::vector<std::type_identity_t<E>>& all,
              Presence = kRequired) {
    static_assert(sizeof(E) == 1);
    if (key.name != path_) return;
    found_ = {WordPlace{reinterpret_cast<std::uint8_t*>(&value),
                        texts_of(all, [](E one) { return name_of(one); })}};
  }
  template <class Fields>
  void object(const FieldKey& key, Fields&& fields, Presence = kRequired) {
    if (key.name == "extras") return fields(*this);
    if (!path_.starts_with(key.name) || path_.substr(key.name.size(), 1) != ".") return;
    PlaceFinder inner(path_.substr(key.name.size() + 1), found_);
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
  template <class... Rest>
  void text(const FieldKey&, const Rest&...) {}
  void integers(const FieldKey&, const std::vector<std::int64_t>&, IntRange, Presence = kRequired) {
  }
  void numbers(const FieldKey&, const std::vector<double>&, NumberRange) {}
  template <class... Rest>
  void objects(const FieldKey&, Rest&&...) {}

 private:
  std::string_view path_;
  FieldPlace& found_;
};

// The fields of a block are those of `block`, which may be the model itself.
inline FieldPlace place_in(ModelSpec& model, BlockShape& block, std::string_view path) {
  FieldPlace found;
  PlaceFinder finder(path, found);
  block_fields(finder, block);
  if (!found.is_found()) model_fields(finder, model);
  return found;
}

}  // namespace tpsim
