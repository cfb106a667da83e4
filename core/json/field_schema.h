// Builds a JSON schema (draft 2020-12), which editors use to check files, from the field list of a
// file kind (core/json/json_fields.h).
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/json/json_fields.h"

namespace tpsim {

// Collects the schema, with the meanings of the keys, when passed to a field list in place of a
// FieldReader. Ignores values, so that fields which writers often omit are described too.
class FieldSchema {
 public:
  void format(std::string_view expected) {
    put({"format", "kind of file, and version of its keys"}, json_object({{"const", expected}}),
        kRequired);
  }
  void text(const FieldKey& key, const std::string&, Presence presence = kRequired) {
    put(key, json_object({{"type", "string"}}), presence);
  }
  void flag(const FieldKey& key, bool, Presence presence = kRequired) {
    put(key, json_object({{"type", "boolean"}}), presence);
  }
  void number(const FieldKey& key, double, NumberRange range, Presence presence = kRequired) {
    put(key, number_schema(range), presence);
  }
  template <std::integral Int>
  void integer(const FieldKey& key, Int, IntRange range, Presence presence = kRequired) {
    put(key, integer_schema(range), presence);
  }
  void integers(const FieldKey& key, const std::vector<std::int64_t>&, IntRange range,
                Presence presence = kRequired) {
    put(key, array_of(integer_schema(range)), presence);
  }
  void numbers(const FieldKey& key, const std::vector<double>&, NumberRange range) {
    put(key, array_of(number_schema(range)), kOptional);
  }
  void texts(const FieldKey& key, const std::vector<std::string>&) {
    put(key, array_of(json_object({{"type", "string"}})), kOptional);
  }
  template <class Q>
  void quantity(const FieldKey& key, Q, Presence presence = kRequired) {
    put(key, json_object({{"type", "string"}, {"examples", json_array(examples_of<Q>())}}),
        presence);
  }
  template <class E>
  void choice(const FieldKey& key, E, const std::vector<std::type_identity_t<E>>& all,
              Presence presence = kRequired) {
    put(key, words_schema(all), presence);
  }
  template <class E>
  void choices(const FieldKey& key, const std::vector<E>&,
               const std::vector<std::type_identity_t<E>>& all) {
    put(key, array_of(words_schema(all)), kOptional);
  }
  template <class Words>
  void word(const FieldKey& key, std::int64_t, const Words& words, Presence presence = kRequired) {
    put(key, word_schema(words), presence);
  }
  template <class Words>
  void word_list(const FieldKey& key, const std::vector<std::int64_t>&, const Words& words,
                 Presence presence = kRequired) {
    put(key, array_of(word_schema(words)), presence);
  }
  template <class Fields>
  void object(const FieldKey& key, Fields&& fields, Presence presence = kRequired) {
    FieldSchema inner;
    fields(inner);
    put(key, std::move(inner).value(), presence);
  }
  template <class Fields>
  void object_if(bool, const FieldKey& key, Fields&& fields) {
    object(key, fields, kOptional);
  }
  template <class Fields>
  void when(bool /*written*/, Fields&& fields) {
    fields(*this);
  }
  template <class Item, class Fields>
  void objects(const FieldKey& key, const std::vector<Item>&, Fields&& fields,
               Presence presence = kRequired) {
    FieldSchema inner;
    Item item{};
    fields(inner, item);
    put(key, array_of(std::move(inner).value()), presence);
  }
  void table(const FieldKey& key, const TableRows&, const std::vector<TableColumn>&, std::size_t) {
    put(key, array_of(array_of(json_object({{"type", "number"}}))), kRequired);
  }
  void require(bool, std::string_view, std::string_view) {}
  void renamed(std::string_view, std::string_view) {}

  JsonValue value() &&;

 private:
  template <class Q>
  static std::vector<std::string> examples_of() {
    if constexpr (std::same_as<Q, Bytes>)
      return {"80 GiB", "512 MiB"};
    else if constexpr (std::same_as<Q, Seconds>)
      return {"5 us", "1.5 ms"};
    else if constexpr (std::same_as<Q, BytesPerSecond>)
      return {"450 GB/s"};
    else
      return {"989 TFLOP/s"};
  }
  template <class Values>
  static JsonValue words_schema(const Values& values) {
    return json_object(
        {{"enum", json_array(values, [](auto value) { return JsonValue(name_of(value)); })}});
  }
  template <class Words>
  static JsonValue word_schema(const Words& words) {
    return json_object(
        {{"enum", json_array(words, [](const auto& one) { return JsonValue(one.word); })}});
  }
  static JsonValue array_of(JsonValue items);
  static JsonValue number_schema(NumberRange range);
  static JsonValue integer_schema(IntRange range);
  void put(const FieldKey& key, JsonValue schema, Presence presence);

  JsonValue properties_ = json_object();
  JsonValue required_ = JsonValue(JsonValue::Array{});
};

// The schema of a whole file of one kind.
template <class Spec, class Fields>
JsonValue schema_from_fields(Fields fields) {
  Spec spec{};
  FieldSchema schema;
  fields(schema, spec);
  return std::move(schema).value();
}

}  // namespace tpsim
