// Reads and writes Python pickles of plain values: None, bool, int, float, str, bytes, list, tuple
// and dict. The format is documented in CPython's Lib/pickletools.py.
//
// The reader creates no Python objects: a pickle that names a class or a function is an error.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

// A value of a pickle. Values may be shared: equal addresses are the same Python object.
struct PickleValue {
  using List = std::vector<const PickleValue*>;  // list or tuple
  using Dict = std::vector<std::pair<const PickleValue*, const PickleValue*>>;
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Dict> value;

  // Returns the value of a text key of a dict; null if this is not a dict or lacks the key.
  const PickleValue* find(std::string_view key) const;
  // Return nothing if the value has another type.
  const std::string* text() const { return std::get_if<std::string>(&value); }
  const std::int64_t* whole() const { return std::get_if<std::int64_t>(&value); }
  const List* list() const { return std::get_if<List>(&value); }
  const Dict* dict() const { return std::get_if<Dict>(&value); }
};

// The root value with all values below it.
struct Pickle {
  std::deque<PickleValue> values;
  const PickleValue* root = nullptr;
};

// Reads a pickle of protocol 2 to 5. `file` is only used in error messages. Integers beyond 64 bits
// are errors.
Result<Pickle> read_pickle(std::string_view bytes, const std::string& file);

// Writes one value, piece by piece, in protocol 2. Lists and dicts nest; each key of a dict is a
// text, followed by its value. Texts that occur again are written once.
class PickleWriter {
 public:
  PickleWriter();
  void null() { put_value("N"); }
  void text(std::string_view text);
  void whole(std::int64_t number);
  void begin_list() { begin(']'); }
  void begin_dict() { begin('}'); }
  void key(std::string_view text) { put_text(text); }
  void end();  // of the list or dict
  // Returns the number of the list or dict that just began, for repeat().
  std::uint32_t number() { return put_number(); }
  // Writes the list or dict with this number again, as the same Python object.
  void repeat(std::uint32_t number);
  // Returns the bytes after the value is complete.
  std::string take();

 private:
  void begin(char opcode);
  void put_text(std::string_view text);
  void put_value(std::string_view bytes);
  void end_value();
  std::uint32_t put_number();

  std::string bytes_;
  std::vector<char> open_;  // opcodes of the lists and dicts around the next value
  std::map<std::string, std::uint32_t, std::less<>> texts_;
  std::uint32_t numbered_ = 0;
};

}  // namespace tpsim
