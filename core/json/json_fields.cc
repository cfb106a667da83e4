#include "core/json/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"

namespace tpsim {

FieldReader::FieldReader(const JsonValue& value, std::string file, std::string path)
    : value_(&value), file_(std::move(file)), path_(std::move(path)) {
  if (value.as<JsonValue::Object>() == nullptr) {
    const std::string name = path_.empty() ? "the file" : path_.substr(0, path_.size() - 1);
    fail(value.line(), fmt::format("{} must be a JSON object, not {}", name, kind_of(value)));
  }
}

void FieldReader::fail(int line, std::string message, std::string hint) {
  // Keeps the first error; later errors are often its consequences.
  if (failed()) return;
  error_ = bad_input(std::move(message), fmt::format("{}:{}", file_, line), std::move(hint));
}

void FieldReader::reject(std::string_view key, std::string message, std::string hint) {
  const JsonValue* value = member(key);
  fail(value == nullptr ? value_->line() : value->line(),
       fmt::format("{}{}: {}", path_, key, message), std::move(hint));
}

void FieldReader::adopt(FieldReader& inner) {
  if (failed() && inner.missing_.empty()) return;
  if (inner.missing_.empty()) {
    const Status status = inner.finish();
    if (!status.ok()) error_ = status.error();
    return;
  }
  if (missing_.empty()) missing_line_ = inner.missing_line_;
  missing_.insert(missing_.end(), inner.missing_.begin(), inner.missing_.end());
}

namespace {

// Returns a short value for messages, with a leading space; empty for long or compound values.
std::string shown(const JsonValue& value) {
  constexpr std::size_t kMost = 24;
  if (const std::string* text = value.as<std::string>()) {
    return text->size() > kMost ? "" : fmt::format(" '{}'", *text);
  }
  if (const std::int64_t* whole = value.as<std::int64_t>()) return fmt::format(" {}", *whole);
  if (const double* real = value.as<double>()) return fmt::format(" {}", *real);
  return "";
}

}  // namespace

void FieldReader::wrong_kind(std::string_view key, const JsonValue& value,
                             std::string_view wanted) {
  fail(value.line(),
       fmt::format("{}{} must be {}, not {}{}", path_, key, wanted, kind_of(value), shown(value)));
}

void FieldReader::renamed(std::string_view former, std::string_view key) {
  if (error_ || value_->find(former) == nullptr || value_->find(key) != nullptr) return;
  asked_.push_back(former);
  renamed_.emplace_back(key, former);
}

const JsonValue* FieldReader::member(std::string_view key) const {
  for (const auto& [name, former] : renamed_) {
    if (name == key) return value_->find(former);
  }
  return value_->find(key);
}

const JsonValue* FieldReader::find(std::string_view key, Presence presence) {
  if (error_) return nullptr;
  // Records absent keys too: they are suggested if an unknown key may be a misspelling of one.
  asked_.push_back(key);
  const JsonValue* value = member(key);
  // In Hugging Face's files, null means that the default of the code applies.
  if (value != nullptr && foreign_keys_ && value->is_null()) value = nullptr;
  if (value == nullptr && presence == kRequired) {
    if (missing_.empty()) missing_line_ = value_->line();
    missing_.push_back(path_ + std::string(key));
  }
  return value;
}

bool FieldReader::has(std::string_view key) { return find(key, kOptional) != nullptr; }

bool FieldReader::is_null(std::string_view key) {
  if (error_) return false;
  asked_.push_back(key);
  const JsonValue* value = member(key);
  return value != nullptr && value->is_null();
}

bool FieldReader::is_list(std::string_view key) {
  const JsonValue* value = find(key, kOptional);
  return value != nullptr && value->as<JsonValue::Array>() != nullptr;
}

std::vector<const JsonMember*> FieldReader::unread() const {
  std::vector<const JsonMember*> members;
  if (error_) return members;
  for (const JsonMember& member : *value_->as<JsonValue::Object>()) {
    const bool asked = std::find(asked_.begin(), asked_.end(), member.key) != asked_.end();
    if (!asked) members.push_back(&member);
  }
  return members;
}

void FieldReader::texts(KeyName key, std::vector<std::string>& out) {
  if (!has(key)) return;
  std::vector<std::string> found;
  for (const JsonValue& item : read_array(key)) {
    const std::string* text = item.as<std::string>();
    if (text == nullptr) return wrong_kind(key, item, "a list of texts");
    found.push_back(*text);
  }
  out = std::move(found);
}

Status FieldReader::finish() {
  if (error_) return *error_;
  if (!missing_.empty()) {
    const bool several = missing_.size() > 1;
    return bad_input(fmt::format("the key{} '{}' {} missing", several ? "s" : "",
                                 fmt::join(missing_, "', '"), several ? "are" : "is"),
                     fmt::format("{}:{}", file_, missing_line_));
  }
  // Files of other programs may have further keys.
  if (foreign_keys_) return Ok{};
  for (const JsonMember& member : *value_->as<JsonValue::Object>()) {
    if (std::find(asked_.begin(), asked_.end(), member.key) != asked_.end()) continue;
    fail(member.line, fmt::format("unknown key '{}{}'", path_, member.key),
         meant(nearest(member.key, asked_)));
    return *error_;
  }
  return Ok{};
}

void FieldReader::format(std::string_view expected) {
  std::string found;
  text("format", found);
  if (error_ || found == expected) return;
  reject("format", fmt::format("this file has the format '{}'", found),
         fmt::format("this version of tpsim reads {}", expected));
}

void FieldReader::text(KeyName key, std::string& out, Presence presence) {
  const JsonValue* value = find(key, presence);
  if (value == nullptr) return;
  const std::string* found = value->as<std::string>();
  if (found == nullptr) return wrong_kind(key, *value, "a text");
  out = *found;
}

void FieldReader::flag(KeyName key, bool& out, Presence presence) {
  const JsonValue* value = find(key, presence);
  if (value == nullptr) return;
  const bool* found = value->as<bool>();
  if (found == nullptr) return wrong_kind(key, *value, "true or false");
  out = *found;
}

void FieldReader::number(KeyName key, double& out, NumberRange range, Presence presence) {
  const JsonValue* value = find(key, presence);
  if (value == nullptr) return;
  if (const auto found = real_number(key, *value, range)) out = *found;
}

std::optional<double> FieldReader::real_number(std::string_view key, const JsonValue& value,
                                               NumberRange range) {
  const std::int64_t* whole = value.as<std::int64_t>();
  const double* real = value.as<double>();
  if (whole == nullptr && real == nullptr) {
    wrong_kind(key, value, "a number");
    return std::nullopt;
  }
  const double found = whole != nullptr ? static_cast<double>(*whole) : *real;
  if (found >= range.least && found <= range.most) return found;
  fail(value.line(), fmt::format("{}{} is {}; it must be between {} and {}", path_, key, found,
                                 range.least, range.most));
  return std::nullopt;
}

std::optional<std::int64_t> FieldReader::whole_number(std::string_view key, const JsonValue& value,
                                                      IntRange range) {
  const std::int64_t* found = value.as<std::int64_t>();
  if (found == nullptr) {
    wrong_kind(key, value, "a whole number");
    return std::nullopt;
  }
  if (*found >= range.least && *found <= range.most) return *found;
  fail(value.line(), fmt::format("{}{} is {}; it must be between {} and {}", path_, key, *found,
                                 range.least, range.most));
  return std::nullopt;
}

std::optional<std::int64_t> FieldReader::read_integer(std::string_view key, IntRange range,
                                                      Presence presence) {
  const JsonValue* value = find(key, presence);
  if (value == nullptr) return std::nullopt;
  return whole_number(key, *value, range);
}

const JsonValue::Array& FieldReader::read_array(std::string_view key) {
  static const JsonValue::Array kNone;
  const JsonValue* value = find(key, kRequired);
  if (value == nullptr) return kNone;
  if (const auto* array = value->as<JsonValue::Array>()) return *array;
  wrong_kind(key, *value, "an array");
  return kNone;
}

void FieldReader::integers(KeyName key, std::vector<std::int64_t>& out, IntRange range,
                           Presence presence) {
  if (presence == kOptional && !has(key)) return;
  std::vector<std::int64_t> found;
  for (const JsonValue& item : read_array(key)) {
    const auto whole = whole_number(fmt::format("{}[{}]", key, found.size()), item, range);
    if (!whole) return;
    found.push_back(*whole);
  }
  out = std::move(found);
}

void FieldReader::numbers(KeyName key, std::vector<double>& out, NumberRange range) {
  if (!has(key)) return;
  std::vector<double> found;
  for (const JsonValue& item : read_array(key)) {
    const auto number = real_number(fmt::format("{}[{}]", key, found.size()), item, range);
    if (!number) return;
    found.push_back(*number);
  }
  out = std::move(found);
}

const std::string* FieldReader::read_quantity_text(std::string_view key, Presence presence) {
  const JsonValue* value = find(key, presence);
  if (value == nullptr) return nullptr;
  const std::string* written = value->as<std::string>();
  if (written == nullptr) wrong_kind(key, *value, "a text with a unit, such as \"80 GiB\"");
  return written;
}

std::optional<std::size_t> FieldReader::read_choice(std::string_view key,
                                                    const std::vector<std::string_view>& names,
                                                    Presence presence) {
  std::string name;
  if (!has(key) && presence == kOptional) return std::nullopt;
  text(key, name);
  if (error_ || member(key) == nullptr) return std::nullopt;
  const auto index = choose(key, name, names);
  if (index.ok()) return *index;
  fail(member(key)->line(), index.error().message, index.error().hint);
  return std::nullopt;
}

std::optional<std::vector<std::size_t>> FieldReader::read_choices(
    std::string_view key, const std::vector<std::string_view>& names) {
  std::vector<std::size_t> indices;
  for (const JsonValue& item : read_array(key)) {
    const std::string* name = item.as<std::string>();
    if (name == nullptr) {
      wrong_kind(key, item, "a name");
      return std::nullopt;
    }
    const auto index = choose(key, *name, names);
    if (!index.ok()) {
      fail(item.line(), index.error().message, index.error().hint);
      return std::nullopt;
    }
    if (std::find(indices.begin(), indices.end(), *index) != indices.end()) {
      fail(item.line(), fmt::format("'{}' is repeated in {}", *name, key));
      return std::nullopt;
    }
    indices.push_back(*index);
  }
  if (error_) return std::nullopt;
  return indices;
}

void FieldReader::table(KeyName key, TableRows& out, const std::vector<TableColumn>& columns,
                        std::size_t needed) {
  const JsonValue::Array& rows = read_array(key);
  out.reserve(rows.size());
  for (const JsonValue& row : rows) {
    const std::string name = fmt::format("{}[{}]", key, out.size());
    out.push_back(table_row(name, row, columns, needed));
    if (error_) return;
  }
}

std::vector<double> FieldReader::table_row(const std::string& name, const JsonValue& value,
                                           const std::vector<TableColumn>& columns,
                                           std::size_t needed) {
  std::vector<double> row;
  const auto* cells = value.as<JsonValue::Array>();
  if (cells == nullptr || (cells->size() != needed && cells->size() != columns.size())) {
    fail(value.line(), fmt::format("{}{} must be a row of {} or {} numbers", path_, name, needed,
                                   columns.size()));
    return row;
  }
  row.reserve(cells->size());
  for (std::size_t i = 0; i < cells->size() && !error_; ++i) {
    const TableColumn& column = columns[i];
    const auto number = real_number(name, (*cells)[i], column.range);
    if (!number) break;
    if (column.is_whole && *number != std::floor(*number)) {
      fail(value.line(), fmt::format("{}{}: {} must be a whole number", path_, name, column.name));
    }
    row.push_back(*number);
  }
  return row;
}

Status at_file(Status status, const std::string& file) {
  if (status.ok() || !status.error().where.empty()) return status;
  Error error = status.error();
  error.where = file;
  return error;
}

std::int64_t FieldWriter::in_range(std::string_view key, std::int64_t value, IntRange range) {
  TPSIM_CHECK(value >= range.least && value <= range.most,
              fmt::format("{} = {} could not be read back", key, value));
  return value;
}

void FieldWriter::require(bool holds, std::string_view key, std::string_view rule) {
  TPSIM_CHECK(holds, fmt::format("{} could not be read back: {}", key, rule));
}

void FieldWriter::number(KeyName key, double value, NumberRange range, Presence) {
  TPSIM_CHECK(value >= range.least && value <= range.most,
              fmt::format("{} = {} could not be read back", key, value));
  set(key, value);
}

void FieldWriter::integers(KeyName key, const std::vector<std::int64_t>& values, IntRange range,
                           Presence presence) {
  if (presence == kOptional && values.empty()) return;
  set(key, json_array(values, [&](std::int64_t value) -> JsonValue {
        return in_range(key, value, range);
      }));
}

void FieldWriter::numbers(KeyName key, const std::vector<double>& values, NumberRange range) {
  if (values.empty()) return;
  set(key, json_array(values, [&](double value) -> JsonValue {
        TPSIM_CHECK(value >= range.least && value <= range.most,
                    fmt::format("{} = {} could not be read back", key, value));
        return value;
      }));
}

void FieldWriter::texts(KeyName key, const std::vector<std::string>& values) {
  if (values.empty()) return;
  set(key, json_array(values, [](const std::string& text) -> JsonValue { return text; }));
}

void FieldWriter::table(KeyName key, const TableRows& rows, const std::vector<TableColumn>& columns,
                        std::size_t needed) {
  const auto cell = [](double number) -> JsonValue {
    // Doubles are exact for whole numbers up to 2^53; 1e15 is below that.
    const bool is_whole = number == std::floor(number) && std::abs(number) < 1e15;
    return is_whole ? JsonValue(static_cast<std::int64_t>(number)) : JsonValue(number);
  };
  set(key, json_array(rows, [&](const std::vector<double>& row) -> JsonValue {
        TPSIM_CHECK(row.size() == needed || row.size() == columns.size(),
                    fmt::format("a row of '{}' has {} cells", key, row.size()));
        return json_array(row, cell);
      }));
}

}  // namespace tpsim
