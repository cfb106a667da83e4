// Describes a file kind once, for reading and writing. A function template lists the fields of a
// struct; FieldReader fills the struct from JSON, FieldWriter turns the struct into JSON.
//
//   template <class Io, class Spec>  // Spec is LinkSpec or const LinkSpec
//   void link_fields(Io& io, Spec& link) {
//     io.text({"kind", "name of the link"}, link.kind);
//     io.quantity({"bandwidth", "bandwidth in one direction"}, link.bandwidth);
//     io.number({"efficiency", "share of it that is reached"}, link.efficiency, {0, 1}, kOptional);
//   }
//
// FieldSchema (core/json/field_schema.h) makes a JSON schema and docs/files.md from the same list.
// A key without a meaning does not compile there.
//
// The reader is strict. Errors are missing and unknown keys, a wrong kind of value, a number out of
// range, and a quantity without unit. The error names file, line, key and the nearest valid choice.
// All missing keys are named at once; after any other error nothing more is read. finish() returns
// the error.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/enum_words.h"
#include "core/base/result.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/json/json_value.h"

namespace tpsim {

// A key of a tpsim file and its meaning in docs/files.md.
struct FieldKey {
  std::string_view name;
  std::string_view meaning;
};

// Name of a key. Readers and writers drop the meaning. Files of other programs have none.
class KeyName {
 public:
  template <class Text>
  requires std::convertible_to<const Text&, std::string_view> KeyName(const Text& name)
      : name_(name) {}
  KeyName(const FieldKey& key) : name_(key.name) {}
  KeyName(std::string_view name, std::string_view /*meaning*/) : name_(name) {}
  operator std::string_view() const { return name_; }

 private:
  std::string_view name_;
};

// An absent optional key leaves the field unchanged. Writers always write optional keys.
enum class Presence : std::uint8_t { kRequired, kOptional };
inline constexpr Presence kRequired = Presence::kRequired;
inline constexpr Presence kOptional = Presence::kOptional;

struct IntRange {
  std::int64_t least = 1;
  std::int64_t most = std::int64_t{1} << 24;
};
struct NumberRange {
  double least = 0;
  double most = 1e18;
};

// A column of a table. With `is_whole`, only whole numbers are valid.
struct TableColumn {
  std::string_view name;
  bool is_whole = false;
  NumberRange range;
};
using TableRows = std::vector<std::vector<double>>;

// All values of an enum, for choice().
template <class E>
std::vector<E> every() {
  const auto all = all_of<E>();
  return {all.begin(), all.end()};
}

class FieldReader {
 public:
  // `path` is the prefix of keys in messages: "device.".
  FieldReader(const JsonValue& value, std::string file, std::string path = "");

  // Checks the format and version, the first key of every file: "tpsim-model/1".
  void format(std::string_view expected);

  void text(KeyName key, std::string& out, Presence presence = kRequired);
  void flag(KeyName key, bool& out, Presence presence = kRequired);
  void number(KeyName key, double& out, NumberRange range, Presence presence = kRequired);
  void integers(KeyName key, std::vector<std::int64_t>& out, IntRange range,
                Presence presence = kRequired);
  // Optional arrays; writers omit empty ones.
  void numbers(KeyName key, std::vector<double>& out, NumberRange range);
  void texts(KeyName key, std::vector<std::string>& out);
  template <std::integral Int>
  void integer(KeyName key, Int& out, IntRange range, Presence presence = kRequired) {
    if (const auto whole = read_integer(key, range, presence)) out = static_cast<Int>(*whole);
  }
  // A number with a unit, as text: "300 GB/s".
  template <class Q>
  void quantity(KeyName key, Q& out, Presence presence = kRequired) {
    if (const std::string* written = read_quantity_text(key, presence)) {
      take(key, parse_quantity<Q>(*written), out);
    }
  }
  // The name_of() of one of the values in `all`.
  template <class E>
  void choice(KeyName key, E& out, const std::vector<std::type_identity_t<E>>& all,
              Presence presence = kRequired) {
    const auto names = texts_of(all, [](E value) { return name_of(value); });
    if (const auto index = read_choice(key, names, presence)) out = all[*index];
  }
  // A word that stands for a number. Elements of `words` have members .word and .value.
  template <class Words>
  void word(KeyName key, std::int64_t& out, const Words& words, Presence presence = kRequired) {
    const auto names = texts_of(words, [](const auto& one) { return one.word; });
    if (const auto index = read_choice(key, names, presence)) out = words[*index].value;
  }
  // An array of words as in word(), without duplicates.
  template <class Words>
  void word_list(KeyName key, std::vector<std::int64_t>& out, const Words& words,
                 Presence presence = kRequired) {
    if (presence == kOptional && !has(key)) return;
    const auto names = texts_of(words, [](const auto& one) { return one.word; });
    if (const auto indices = read_choices(key, names)) {
      out.clear();
      for (const std::size_t index : *indices) out.push_back(words[index].value);
    }
  }
  // An optional array of names as in choice(), without duplicates.
  template <class E>
  void choices(KeyName key, std::vector<E>& out, const std::vector<std::type_identity_t<E>>& all) {
    if (!has(key)) return;
    const auto names = texts_of(all, [](E value) { return name_of(value); });
    if (const auto indices = read_choices(key, names)) {
      out.clear();
      for (const std::size_t index : *indices) out.push_back(all[index]);
    }
  }
  template <class Fields>
  void object(KeyName key, Fields&& fields, Presence presence = kRequired) {
    if (const JsonValue* value = find(key, presence)) {
      FieldReader inner(*value, file_, inner_path(key));
      fields(inner);
      adopt(inner);
    }
  }
  // An object that is written only if `written` is true.
  template <class Fields>
  void object_if(bool /*written*/, KeyName key, Fields&& fields) {
    object(key, fields, kOptional);
  }
  // Fields that are written only if `written` is true; the reader always accepts them.
  template <class Fields>
  void when(bool /*written*/, Fields&& fields) {
    fields(*this);
  }
  // An array of objects; fields(reader, item) reads each.
  template <class Item, class Fields>
  void objects(KeyName key, std::vector<Item>& out, Fields&& fields,
               Presence presence = kRequired) {
    if (presence == kOptional && !has(key)) return;
    for (const JsonValue& value : read_array(key)) {
      FieldReader inner(value, file_, inner_path(key));
      fields(inner, out.emplace_back());
      adopt(inner);
      if (failed()) return;
    }
  }
  // An array of rows of numbers. A row has all columns, or only the first `needed` ones.
  void table(KeyName key, TableRows& out, const std::vector<TableColumn>& columns,
             std::size_t needed);

  // Reads `key` by its former name in files that have only that.
  void renamed(std::string_view former, std::string_view key);

  // For files of other programs: unknown keys are allowed, and null means absent.
  void allow_foreign_keys() { foreign_keys_ = true; }
  bool has(std::string_view key);
  // Whether the key is present with value null. has() is false for such a key if foreign keys are
  // allowed.
  bool is_null(std::string_view key);
  bool is_list(std::string_view key);
  // Returns the members that were not read, in the order of the file.
  std::vector<const JsonMember*> unread() const;
  bool failed() const { return error_.has_value() || !missing_.empty(); }

  // Adds the error `rule`, which names `key`, unless `holds`.
  void require(bool holds, std::string_view key, std::string_view rule) {
    if (!holds) reject(key, std::string(rule));
  }
  void reject(std::string_view key, std::string message, std::string hint = "");

  // Returns the first error; else an error for the first unknown key.
  Status finish();

 private:
  const JsonValue* member(std::string_view key) const;
  const JsonValue* find(std::string_view key, Presence presence);
  const JsonValue::Array& read_array(std::string_view key);
  std::optional<std::int64_t> read_integer(std::string_view key, IntRange range, Presence presence);
  const std::string* read_quantity_text(std::string_view key, Presence presence);
  std::optional<std::size_t> read_choice(std::string_view key,
                                         const std::vector<std::string_view>& names,
                                         Presence presence);
  std::optional<std::vector<std::size_t>> read_choices(std::string_view key,
                                                       const std::vector<std::string_view>& names);
  std::optional<std::int64_t> whole_number(std::string_view key, const JsonValue& value,
                                           IntRange range);
  std::optional<double> real_number(std::string_view key, const JsonValue& value,
                                    NumberRange range);
  std::vector<double> table_row(const std::string& name, const JsonValue& value,
                                const std::vector<TableColumn>& columns, std::size_t needed);
  std::string inner_path(std::string_view key) const { return path_ + std::string(key) + "."; }
  void fail(int line, std::string message, std::string hint = "");
  void wrong_kind(std::string_view key, const JsonValue& value, std::string_view wanted);
  void adopt(FieldReader& inner);

  template <class Q>
  static Result<Q> parse_quantity(std::string_view written) {
    if constexpr (std::same_as<Q, Bytes>)
      return parse_bytes(written);
    else if constexpr (std::same_as<Q, Seconds>)
      return parse_seconds(written);
    else if constexpr (std::same_as<Q, BytesPerSecond>)
      return parse_bandwidth(written);
    else
      return parse_flops_rate(written);
  }
  template <class T>
  void take(std::string_view key, Result<T> result, T& out) {
    if (result.ok()) {
      out = *result;
    } else {
      reject(key, result.error().message, result.error().hint);
    }
  }

  const JsonValue* value_;
  std::string file_;
  std::string path_;
  std::vector<std::string_view> asked_;
  std::vector<std::pair<std::string_view, std::string_view>> renamed_;  // key, former name
  bool foreign_keys_ = false;
  std::vector<std::string> missing_;  // keys with their paths
  int missing_line_ = 0;              // line of the object that lacks the first of them
  std::optional<Error> error_;
};

class FieldWriter {
 public:
  void format(std::string_view expected) { set("format", expected); }
  void text(KeyName key, const std::string& value, Presence = kRequired) { set(key, value); }
  void flag(KeyName key, bool value, Presence = kRequired) { set(key, value); }
  void number(KeyName key, double value, NumberRange range, Presence = kRequired);
  // Writers omit an empty optional list.
  void integers(KeyName key, const std::vector<std::int64_t>& values, IntRange range,
                Presence presence = kRequired);
  void numbers(KeyName key, const std::vector<double>& values, NumberRange range);
  void texts(KeyName key, const std::vector<std::string>& values);
  template <std::integral Int>
  void integer(KeyName key, Int value, IntRange range, Presence = kRequired) {
    set(key, in_range(key, static_cast<std::int64_t>(value), range));
  }
  template <class Q>
  void quantity(KeyName key, Q value, Presence = kRequired) {
    set(key, to_exact_string(value));
  }
  template <class E>
  void choice(KeyName key, E value, const std::vector<std::type_identity_t<E>>&,
              Presence = kRequired) {
    set(key, name_of(value));
  }
  template <class Words>
  void word(KeyName key, std::int64_t value, const Words& words, Presence = kRequired) {
    set(key, word_for(value, words));
  }
  template <class Words>
  void word_list(KeyName key, const std::vector<std::int64_t>& values, const Words& words,
                 Presence presence = kRequired) {
    if (presence == kOptional && values.empty()) return;
    set(key, json_array(values, [&](std::int64_t value) { return word_for(value, words); }));
  }
  template <class E>
  void choices(KeyName key, const std::vector<E>& values,
               const std::vector<std::type_identity_t<E>>&) {
    set(key, json_array(values, [](E value) { return JsonValue(name_of(value)); }));
  }
  template <class Fields>
  void object(KeyName key, Fields&& fields, Presence = kRequired) {
    FieldWriter inner;
    fields(inner);
    set(key, std::move(inner).value());
  }
  template <class Fields>
  void object_if(bool written, KeyName key, Fields&& fields) {
    if (written) object(key, fields);
  }
  template <class Fields>
  void when(bool written, Fields&& fields) {
    if (written) fields(*this);
  }
  template <class Item, class Fields>
  void objects(KeyName key, const std::vector<Item>& items, Fields&& fields, Presence = kRequired) {
    set(key, json_array(items, [&](const Item& item) {
          FieldWriter inner;
          fields(inner, item);
          return std::move(inner).value();
        }));
  }
  void table(KeyName key, const TableRows& rows, const std::vector<TableColumn>& columns,
             std::size_t needed);

  void require(bool holds, std::string_view key, std::string_view rule);
  void renamed(std::string_view, std::string_view) {}

  JsonValue value() && { return std::move(value_); }

 private:
  void set(std::string_view key, JsonValue value) {
    value_.set(std::string(key), std::move(value));
  }
  template <class Words>
  static JsonValue word_for(std::int64_t value, const Words& words) {
    for (const auto& one : words) {
      if (one.value == value) return JsonValue(one.word);
    }
    throw BugError("the number is not the value of any word");
  }
  // Checks that the reader accepts the value. A value out of range is a bug of the caller.
  static std::int64_t in_range(std::string_view key, std::int64_t value, IntRange range);

  JsonValue value_ = json_object();
};

// Returns `status`; an error without a location gets the file's name as its location.
Status at_file(Status status, const std::string& file);

// Reads a whole file of one kind. `file` is only used in messages.
template <class Spec, class Fields>
Result<Spec> spec_from_json(const JsonValue& root, const std::string& file, Fields fields) {
  Spec spec;
  FieldReader reader(root, file);
  fields(reader, spec);
  TPSIM_TRY_STATUS(reader.finish());
  return spec;
}

template <class Spec, class Fields>
JsonValue json_from_spec(const Spec& spec, Fields fields) {
  FieldWriter writer;
  fields(writer, spec);
  return std::move(writer).value();
}

}  // namespace tpsim
