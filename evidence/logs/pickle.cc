#include "evidence/logs/pickle.h"

#include <cstdint>
#include <map>

#include "core/base/check.h"

namespace tpsim {
namespace {

class PickleWriter {
 public:
  void put(const JsonValue& value) {
    if (const auto* object = value.as<JsonValue::Object>()) {
      bytes_ += "}(";  // EMPTY_DICT, MARK
      for (const JsonMember& member : *object) {
        put(member.key);
        put(member.value);
      }
      bytes_ += 'u';  // SETITEMS
    } else if (const auto* array = value.as<JsonValue::Array>()) {
      bytes_ += "](";  // EMPTY_LIST, MARK
      for (const JsonValue& one : *array) put(one);
      bytes_ += 'e';  // APPENDS
    } else if (const auto* text = value.as<std::string>()) {
      put(*text);
    } else {
      const auto* number = value.as<std::int64_t>();
      TPSIM_CHECK(number != nullptr, "only whole numbers are pickled");
      bytes_ += "\x8a\x08";  // LONG1 of 8 bytes
      put_bytes(static_cast<std::uint64_t>(*number), 8);
    }
  }

  std::string take() { return "\x80\x02" + bytes_ + "."; }  // PROTO 2, STOP

 private:
  void put_bytes(std::uint64_t number, int count) {
    for (; count > 0; --count, number >>= 8) bytes_ += static_cast<char>(number & 0xff);
  }

  void put(const std::string& text) {
    const auto [known, is_new] = texts_.emplace(text, texts_.size());
    bytes_ += is_new ? 'X' : 'j';  // BINUNICODE, LONG_BINGET
    put_bytes(is_new ? text.size() : known->second, 4);
    if (!is_new) return;
    bytes_ += text;
    bytes_ += 'r';  // LONG_BINPUT
    put_bytes(known->second, 4);
  }

  std::string bytes_;
  std::map<std::string, std::size_t> texts_;
};

}  // namespace

std::string to_pickle(const JsonValue& value) {
  PickleWriter writer;
  writer.put(value);
  return writer.take();
}

}  // namespace tpsim
