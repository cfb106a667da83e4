// Reads, writes and describes values of settings and parts (core/plan/field.h) in JSON files.
#pragma once

#include <string>
#include <vector>

#include "core/json/field_schema.h"
#include "core/json/json_fields.h"
#include "core/plan/plan_settings.h"
#include "core/software/stack_parts.h"

namespace tpsim {

// Parses a value that a file has as text.
template <class Io>
void parsed_field(Io& io, const FieldFacts& field, const std::string& text, std::int64_t& value) {
  const Result<std::int64_t> read = parse_value(field, text);
  io.require(read.ok(), field.key,
             read.ok() ? "" : read.error().message + "; " + read.error().hint);
  if (read.ok()) value = *read;
}

// One value. An absent optional key leaves `value` unchanged. Lists have no single value.
template <class Io>
void value_field(Io& io, const FieldFacts& field, std::int64_t& value, Presence presence) {
  const FieldKey key{field.key, field.help};
  switch (field.kind) {
    case FieldKind::kNumber: return io.integer(key, value, {field.least, field.most}, presence);
    case FieldKind::kSwitch: {
      bool on = value != 0;
      io.flag(key, on, presence);
      value = on ? 1 : 0;
      return;
    }
    case FieldKind::kWord: return io.word(key, value, field.words, presence);
    case FieldKind::kWordOrCount:
    case FieldKind::kWordOrRatio:
    case FieldKind::kSet: {
      std::string text = text_of(field, value);
      io.text(key, text, presence);
      return parsed_field(io, field, text, value);
    }
    case FieldKind::kList: return;
  }
}

// A list of values. An empty list has no key.
template <class Io, class Values>
void values_field(Io& io, const FieldFacts& field, Values& values) {
  const FieldKey key{field.key, field.help};
  switch (field.kind) {
    case FieldKind::kNumber: return io.integers(key, values, {field.least, field.most}, kOptional);
    case FieldKind::kSwitch:
    case FieldKind::kWord: return io.word_list(key, values, field.words, kOptional);
    case FieldKind::kWordOrCount:
    case FieldKind::kWordOrRatio:
    case FieldKind::kSet: {
      std::vector<std::string> texts;
      for (const std::int64_t value : values) texts.push_back(text_of(field, value));
      io.texts(key, texts);
      std::vector<std::int64_t> read(texts.size());
      for (std::size_t i = 0; i < texts.size(); ++i) parsed_field(io, field, texts[i], read[i]);
      if constexpr (!std::is_const_v<Values>) values = std::move(read);
      return;
    }
    case FieldKind::kList: return;
  }
}

// Lists of values of each setting that has single values.
template <class Io, class Lists>
void setting_list_fields(Io& io, Lists& lists) {
  for (const SettingRow& row : setting_rows()) values_field(io, row, lists[row.setting]);
}

// Returns a valid value of a part.
inline std::int64_t valid_value(const PartRow& row) {
  return row.words.empty() ? row.least : row.words.front().value;
}

// Reads or writes the values that replace the stack's. Other parts have no key.
inline void part_value_fields(FieldReader& in, PartValues& parts) {
  for (const PartRow& row : part_rows()) {
    if (!in.has(row.key)) continue;
    std::int64_t value = valid_value(row);
    value_field(in, row, value, kOptional);
    parts[row.part] = value;
  }
}
inline void part_value_fields(FieldWriter& out, const PartValues& parts) {
  for (const auto& [part, value] : parts) {
    std::int64_t written = value;
    value_field(out, row_of(part), written, kOptional);
  }
}

// Adds all parts to the schema, as optional keys.
inline void part_value_fields(FieldSchema& schema, const PartValues&) {
  for (const PartRow& row : part_rows()) {
    std::int64_t value = valid_value(row);
    value_field(schema, row, value, kOptional);
  }
}

}  // namespace tpsim
