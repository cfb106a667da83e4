#include "core/json/json_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/check.h"
#include "core/base/files.h"

namespace tpsim {
namespace {

// Returns the length of the UTF-8 sequence at the front of `text`; 0 if it is invalid (RFC 3629).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return first == 0 ? 0 : 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) > 0x9F;
  const bool too_large = first == 0xF4 && byte(1) > 0x8F;
  return overlong || surrogate || too_large ? 0 : length;
}

std::optional<std::size_t> first_byte_not_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

// Line of the last character passed to the parser. A newline increases the line only with the next
// character: the parser reads one character past a number, and the number must keep its line.
struct LineCounter {
  int line = 1;
  bool newline_pending = false;

  void pass(char c) {
    if (newline_pending) ++line;
    newline_pending = c == '\n';
  }
};

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, LineCounter* counter) : at_(at), counter_(counter) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    counter_->pass(*at_++);
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  LineCounter* counter_;
};

// Makes the offending token printable on one line of a terminal.
std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string shown(text.substr(0, kMost));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > kMost ? shown + "..." : shown;
}

// Builds the tree from the parser's events. Stops at the first violation of a limit.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(std::size_t text_size, const LineCounter& counter, const std::string& file)
      : text_size_(text_size), counter_(counter), file_(file) {}

  bool null() override { return add(JsonValue()); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return stop(fmt::format("the number {} does not fit 64 bits", value));
    }
    return add(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (!std::isfinite(value)) return stop(too_large(text));
    return add(value);
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return stop("JSON has no binary values"); }

  bool start_object(std::size_t) override { return open(JsonValue::Object{}); }
  bool start_array(std::size_t) override { return open(JsonValue::Array{}); }
  bool end_array() override { return close(); }
  bool end_object() override {
    return check_keys(*open_.back()->as<JsonValue::Object>()) && close();
  }
  bool key(string_t& name) override {
    open_.back()->as<JsonValue::Object>()->push_back({std::move(name), JsonValue(), counter_.line});
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::json::exception& reason) override {
    constexpr int kNumberOverflow = 406;  // nlohmann's out_of_range for numbers
    if (reason.id == kNumberOverflow) return stop(too_large(token));
    if (position > text_size_) return stop("the JSON ends in the middle of a value");
    return stop(fmt::format("invalid JSON: unexpected '{}'", printable(token)));
  }

  Result<JsonValue> result() && {
    if (error_) return *std::move(error_);
    return std::move(root_);
  }

 private:
  static std::string too_large(std::string_view text) {
    return fmt::format("the number {} is too large", printable(text));
  }

  bool stop(std::string message) { return stop_at(counter_.line, std::move(message)); }
  bool stop_at(int line, std::string message) {
    error_ = bad_input(std::move(message), fmt::format("{}:{}", file_, line));
    return false;
  }

  bool add(JsonValue value) { return place(std::move(value)) != nullptr; }

  bool open(JsonValue container) {
    if (open_.size() == static_cast<std::size_t>(kMostJsonDepth)) {
      return stop(fmt::format("values are nested deeper than {} levels", kMostJsonDepth));
    }
    JsonValue* placed = place(std::move(container));
    if (placed != nullptr) open_.push_back(placed);
    return placed != nullptr;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  // Adds a value to the innermost open container and returns its address; null after an error.
  // Outer containers do not grow meanwhile, so that the pointers in open_ stay valid.
  JsonValue* place(JsonValue value) {
    if (++values_ > kMostJsonValues) {
      stop(fmt::format("there are more than {} values", kMostJsonValues));
      return nullptr;
    }
    value.set_line(counter_.line);
    if (open_.empty()) return &(root_ = std::move(value));
    if (auto* array = open_.back()->as<JsonValue::Array>()) {
      return &array->emplace_back(std::move(value));
    }
    JsonMember& member = open_.back()->as<JsonValue::Object>()->back();
    return &(member.value = std::move(value));
  }

  bool check_keys(const JsonValue::Object& object) {
    std::vector<const JsonMember*> sorted;
    for (const JsonMember& member : object) sorted.push_back(&member);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const JsonMember* a, const JsonMember* b) { return a->key < b->key; });
    const auto twice = std::adjacent_find(
        sorted.begin(), sorted.end(),
        [](const JsonMember* a, const JsonMember* b) { return a->key == b->key; });
    if (twice == sorted.end()) return true;
    return stop_at((*std::next(twice))->line,
                   fmt::format("the key '{}' is repeated in one object, first on line {}",
                               printable((*twice)->key), (*twice)->line));
  }

  std::size_t text_size_;
  const LineCounter& counter_;
  const std::string& file_;
  JsonValue root_;
  std::vector<JsonValue*> open_;
  std::size_t values_ = 0;
  std::optional<Error> error_;
};

bool is_plain(const JsonValue& value) {
  return value.as<JsonValue::Array>() == nullptr && value.as<JsonValue::Object>() == nullptr;
}

// Appends the text of a value. `indent` is the indentation of the line on which the value starts.
class TextWriter {
 public:
  enum class Lines { kIndented, kOne };
  explicit TextWriter(Lines lines = Lines::kIndented) : is_one_line_(lines == Lines::kOne) {}

  std::string text;

  void write(const JsonValue& value, std::size_t indent) {
    if (const auto* array = value.as<JsonValue::Array>()) return write_array(*array, indent);
    if (const auto* object = value.as<JsonValue::Object>()) return write_object(*object, indent);
    write_plain(value);
  }

  void write_member(std::string_view key, const JsonValue& value, std::size_t indent) {
    write_string(std::string(key));
    text += ": ";
    write(value, indent);
  }

  void new_line(std::size_t indent) { text += '\n', text.append(indent, ' '); }

 private:
  static constexpr std::size_t kColumns = 100;

  void write_plain(const JsonValue& value) {
    if (const bool* flag = value.as<bool>()) {
      text += *flag ? "true" : "false";
    } else if (const std::int64_t* whole = value.as<std::int64_t>()) {
      fmt::format_to(std::back_inserter(text), "{}", *whole);
    } else if (const double* number = value.as<double>()) {
      TPSIM_CHECK(std::isfinite(*number), "JSON has no infinite numbers");
      fmt::format_to(std::back_inserter(text), "{}", *number);
      if (*number == 0 && std::signbit(*number)) text += ".0";  // "-0" is the whole number 0
    } else if (const std::string* string = value.as<std::string>()) {
      write_string(*string);
    } else {
      text += "null";
    }
  }

  void write_string(const std::string& string) {
    text += nlohmann::json(string).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  void write_array(const JsonValue::Array& array, std::size_t indent) {
    const bool one_line = is_one_line_ || std::all_of(array.begin(), array.end(), is_plain);
    text += '[';
    for (std::size_t i = 0; i < array.size(); ++i) {
      if (i > 0) text += one_line ? ", " : ",";
      if (!one_line) new_line(indent + 2);
      write(array[i], indent + 2);
    }
    if (!one_line) new_line(indent);
    text += ']';
  }

  void write_object(const JsonValue::Object& object, std::size_t indent) {
    if (is_one_line_) return write_members(object, indent, true);
    const bool plain = std::all_of(object.begin(), object.end(),
                                   [](const JsonMember& member) { return is_plain(member.value); });
    const std::size_t start = text.size();
    if (plain && (indent > 0 || object.empty())) {
      write_members(object, indent, true);
      if (text.size() - start + indent <= kColumns) return;
      text.resize(start);
    }
    write_members(object, indent, false);
  }

  void write_members(const JsonValue::Object& object, std::size_t indent, bool one_line) {
    text += '{';
    for (std::size_t i = 0; i < object.size(); ++i) {
      if (i > 0) text += one_line ? ", " : ",";
      if (!one_line) new_line(indent + 2);
      write_member(object[i].key, object[i].value, indent + 2);
    }
    if (!one_line) new_line(indent);
    text += '}';
  }

  bool is_one_line_;
};

}  // namespace

Result<JsonValue> parse_json(std::string_view text, const std::string& file) {
  const auto error_at = [&](std::size_t position, std::string message) {
    const auto line = 1 + std::count(text.begin(), text.begin() + position, '\n');
    return bad_input(std::move(message), fmt::format("{}:{}", file, line));
  };
  if (text.size() > kMostJsonBytes) {
    return error_at(0, fmt::format("the text is larger than {} MiB", kMostJsonBytes >> 20));
  }
  if (const auto position = first_byte_not_utf8(text)) {
    return error_at(*position, "the text is not UTF-8");
  }
  LineCounter counter;
  TreeBuilder builder(text.size(), counter, file);
  nlohmann::json::sax_parse(CountingIterator(text.data(), &counter),
                            CountingIterator(text.data() + text.size(), &counter), &builder);
  return std::move(builder).result();
}

Result<JsonValue> read_json_file(const std::filesystem::path& path) {
  TPSIM_TRY(const std::string text, read_file(path, kMostJsonBytes));
  return parse_json(text, path.string());
}

std::string to_text(const JsonValue& value) {
  TextWriter writer;
  writer.write(value, 0);
  return std::move(writer.text) + "\n";
}

std::string to_line(const JsonValue& value) {
  TextWriter writer(TextWriter::Lines::kOne);
  writer.write(value, 0);
  return std::move(writer.text);
}

std::string GrowingJson::begin(const JsonValue::Object& members, std::string_view array) {
  TextWriter writer;
  writer.text = "{";
  for (const JsonMember& member : members) {
    writer.new_line(2);
    writer.write_member(member.key, member.value, 2);
    writer.text += ",";
  }
  writer.new_line(2);
  writer.write_member(array, JsonValue::Array(), 2);
  writer.text.pop_back();  // end() writes its "]"
  return std::move(writer.text);
}

std::string GrowingJson::item(const JsonValue::Object& value) {
  TextWriter writer;
  writer.text = has_items_ ? "," : "";
  has_items_ = true;
  writer.new_line(4);
  writer.write(value, 4);
  return std::move(writer.text);
}

std::string GrowingJson::end(const JsonValue::Object& members) {
  TextWriter writer;
  if (has_items_) writer.new_line(2);
  writer.text += "]";
  for (const JsonMember& member : members) {
    writer.text += ",";
    writer.new_line(2);
    writer.write_member(member.key, member.value, 2);
  }
  return std::move(writer.text) + "\n}\n";
}

}  // namespace tpsim
