// JSON fields of software parts, one key per PartRow (core/software/stack_parts.h).
#pragma once

#include "core/json/field_schema.h"
#include "core/json/json_fields.h"
#include "core/software/stack_parts.h"

namespace tpsim {

// Reads or writes the value of one part. An absent key leaves `value` unchanged.
template <class Io>
void part_field(Io& io, const PartRow& row, std::int64_t& value) {
  bool on = value != 0;
  if (row.is_switch) {
    io.flag({row.key, row.help}, on, kOptional);
    value = on ? 1 : 0;
  } else if (row.most_count == 0 && !row.is_set && !row.is_ratio) {
    io.word({row.key, row.help}, value, row.words, kOptional);
  } else {  // words or a number, as text
    std::string text = text_of(row, value);
    io.text({row.key, row.help}, text, kOptional);
    const Result<std::int64_t> read = parse_value(row, text);
    io.require(read.ok(), row.key,
               read.ok() ? "" : read.error().message + "; " + read.error().hint);
    if (read.ok()) value = *read;
  }
}

// Reads or writes a list of values of one part.
template <class Io>
void part_list_field(Io& io, const PartRow& row, PartLists& lists) {
  std::vector<std::string> texts;
  for (const std::int64_t value : lists[row.part]) texts.push_back(text_of(row, value));
  io.texts({row.key, row.help}, texts);
  lists[row.part].clear();
  for (const std::string& text : texts) {
    const Result<std::int64_t> read = parse_value(row, text);
    io.require(read.ok(), row.key,
               read.ok() ? "" : read.error().message + "; " + read.error().hint);
    if (read.ok()) lists[row.part].push_back(*read);
  }
  if (texts.empty()) lists.erase(row.part);
}

// Reads or writes the values that replace the stack's. Other parts have no key.
inline void part_value_fields(FieldReader& in, PartValues& parts) {
  for (const PartRow& row : part_rows()) {
    if (!in.has(row.key)) continue;
    std::int64_t value = row.words.front().value;
    part_field(in, row, value);
    parts[row.part] = value;
  }
}
inline void part_value_fields(FieldWriter& out, const PartValues& parts) {
  for (const auto& [part, value] : parts) {
    std::int64_t written = value;
    part_field(out, row_of(part), written);
  }
}

// Adds all parts to the schema, as optional keys.
inline void part_value_fields(FieldSchema& schema, const PartValues&) {
  for (const PartRow& row : part_rows()) {
    std::int64_t value = row.words.front().value;
    part_field(schema, row, value);
  }
}

}  // namespace tpsim
