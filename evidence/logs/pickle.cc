#include "evidence/logs/pickle.h"

#include <fmt/format.h>

#include <bit>
#include <optional>

#include "core/base/check.h"

namespace tpsim {
namespace {

// Opcodes with their names in Lib/pickletools.py.
enum Opcode : unsigned char {
  kProto = 0x80,
  kFrame = 0x95,
  kStop = '.',
  kPushMark = '(',
  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kBinFloat = 'G',
  kShortBinUnicode = 0x8c,
  kBinUnicode = 'X',
  kBinUnicode8 = 0x8d,
  kShortBinBytes = 'C',
  kBinBytes = 'B',
  kBinBytes8 = 0x8e,
  kEmptyList = ']',
  kEmptyDict = '}',
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kAppend = 'a',
  kAppends = 'e',
  kSetItem = 's',
  kSetItems = 'u',
  kMemoize = 0x94,
  kBinPut = 'q',
  kLongBinPut = 'r',
  kBinGet = 'h',
  kLongBinGet = 'j',
};

constexpr int kOldestProtocol = 2, kNewestProtocol = 5;

// Little-endian bytes as a number.
std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return number;
}

// Big-endian bytes of a double.
double big_endian_double(std::string_view bytes) {
  std::uint64_t bits = 0;
  for (const char byte : bytes) bits = bits << 8 | static_cast<unsigned char>(byte);
  return std::bit_cast<double>(bits);
}

std::string bytes_with(std::uint64_t number, std::size_t count) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(number & 0xff);
    number >>= 8;
  }
  return bytes;
}

class PickleReader {
 public:
  PickleReader(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  Result<Pickle> read() {
    while (!failed_ && pickle_.root == nullptr) step();
    if (failed_) return *failed_;
    return std::move(pickle_);
  }

 private:
  void fail(std::string message) {
    if (failed_) return;
    failed_ = bad_input(fmt::format("{} at byte {}", message, at_), file_,
                        "give a file written by pickle.dump()");
  }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) {
      fail("the pickle is truncated");
      return {};
    }
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  std::uint64_t take_number(std::size_t count) { return little_endian(take(count)); }

  template <class Value>
  void push(Value value) {
    stack_.push_back(&pickle_.values.emplace_back(PickleValue{std::move(value)}));
  }
  PickleValue* pop() {
    if (stack_.empty()) {
      fail("the pickle is damaged");
      return nullptr;
    }
    PickleValue* value = stack_.back();
    stack_.pop_back();
    return value;
  }
  // Removes the values above the last mark.
  PickleValue::List pop_to_mark() {
    if (marks_.empty() || marks_.back() > stack_.size()) {
      fail("the pickle is damaged");
      return {};
    }
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    PickleValue::List values(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return values;
  }
  template <class Container>
  Container* top() {
    auto* container = stack_.empty() ? nullptr : std::get_if<Container>(&stack_.back()->value);
    if (container == nullptr) fail("the pickle is damaged");
    return container;
  }

  void push_tuple(std::size_t count) {
    PickleValue::List values(count);
    for (std::size_t i = count; i-- > 0;) values[i] = pop();
    push(std::move(values));
  }
  void append(const PickleValue::List& values) {
    auto* list = top<PickleValue::List>();
    if (list != nullptr) list->insert(list->end(), values.begin(), values.end());
  }
  void set_items(const PickleValue::List& values) {
    auto* dict = top<PickleValue::Dict>();
    if (dict == nullptr) return;
    if (values.size() % 2 != 0) return fail("the pickle is damaged");
    for (std::size_t i = 0; i < values.size(); i += 2) dict->emplace_back(values[i], values[i + 1]);
  }
  void push_long(std::string_view bytes) {
    if (bytes.size() > sizeof(std::int64_t)) {
      // A 64-bit address has a ninth byte for its sign.
      const bool is_address = bytes.size() == 9 && bytes.back() == '\0';
      if (!is_address) return fail("an integer has more than 64 bits");
      bytes.remove_suffix(1);
    }
    const std::size_t bits = 8 * bytes.size();
    std::uint64_t number = little_endian(bytes);
    const bool is_negative = bits > 0 && bits < 64 && (number >> (bits - 1) & 1) != 0;
    if (is_negative) number |= ~std::uint64_t{0} << bits;
    push(static_cast<std::int64_t>(number));
  }

  void remember(std::uint64_t number) {
    if (stack_.empty()) return fail("the pickle is damaged");
    if (number > bytes_.size()) return fail("the pickle is damaged");
    if (memo_.size() <= number) memo_.resize(number + 1);
    memo_[number] = stack_.back();
  }
  void recall(std::uint64_t number) {
    if (number >= memo_.size() || memo_[number] == nullptr) return fail("the pickle is damaged");
    stack_.push_back(memo_[number]);
  }

  void step() {
    const std::string_view opcode = take(1);
    if (opcode.empty()) return;
    const auto code = static_cast<unsigned char>(opcode.front());
    if (read_scalar(code) || read_container(code) || read_memo(code)) return;
    fail(fmt::format(
        "opcode 0x{:02x} makes a Python object other than a number, text, list or dict", code));
  }

  bool read_scalar(unsigned char code) {
    switch (code) {
      case kNone: return push(std::monostate()), true;
      case kNewTrue: return push(true), true;
      case kNewFalse: return push(false), true;
      case kBinInt1: return push(static_cast<std::int64_t>(take_number(1))), true;
      case kBinInt2: return push(static_cast<std::int64_t>(take_number(2))), true;
      case kBinInt: return push_long(take(4)), true;
      case kLong1: return push_long(take(take_number(1))), true;
      case kBinFloat: return push(big_endian_double(take(8))), true;
      case kShortBinUnicode:
      case kShortBinBytes: return push(std::string(take(take_number(1)))), true;
      case kBinUnicode:
      case kBinBytes: return push(std::string(take(take_number(4)))), true;
      case kBinUnicode8:
      case kBinBytes8: return push(std::string(take(take_number(8)))), true;
      default: return false;
    }
  }

  bool read_container(unsigned char code) {
    switch (code) {
      case kPushMark: return marks_.push_back(stack_.size()), true;
      case kEmptyList:
      case kEmptyTuple: return push(PickleValue::List()), true;
      case kEmptyDict: return push(PickleValue::Dict()), true;
      case kTuple1: return push_tuple(1), true;
      case kTuple2: return push_tuple(2), true;
      case kTuple3: return push_tuple(3), true;
      case kTuple: return push(pop_to_mark()), true;
      case kAppend: return append({pop()}), true;
      case kAppends: return append(pop_to_mark()), true;
      case kSetItem: {
        const PickleValue* value = pop();
        return set_items({pop(), value}), true;
      }
      case kSetItems: return set_items(pop_to_mark()), true;
      default: return false;
    }
  }

  bool read_memo(unsigned char code) {
    switch (code) {
      case kProto: {
        const auto protocol = static_cast<int>(take_number(1));
        if (protocol < kOldestProtocol || protocol > kNewestProtocol) {
          fail(fmt::format("the protocol is {} instead of {} to {}", protocol, kOldestProtocol,
                           kNewestProtocol));
        }
        return true;
      }
      case kFrame: return take(8), true;
      case kMemoize: return remember(memo_.size()), true;
      case kBinPut: return remember(take_number(1)), true;
      case kLongBinPut: return remember(take_number(4)), true;
      case kBinGet: return recall(take_number(1)), true;
      case kLongBinGet: return recall(take_number(4)), true;
      case kStop: {
        pickle_.root = pop();
        return true;
      }
      default: return false;
    }
  }

  std::string_view bytes_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::vector<PickleValue*> stack_, memo_;
  std::vector<std::size_t> marks_;
  Pickle pickle_;
  std::optional<Error> failed_;
};

}  // namespace

const PickleValue* PickleValue::find(std::string_view key) const {
  const Dict* items = dict();
  if (items == nullptr) return nullptr;
  for (const auto& [name, item] : *items) {
    const std::string* text = name->text();
    if (text != nullptr && *text == key) return item;
  }
  return nullptr;
}

Result<Pickle> read_pickle(std::string_view bytes, const std::string& file) {
  return PickleReader(bytes, file).read();
}

PickleWriter::PickleWriter() : bytes_{static_cast<char>(kProto), kOldestProtocol} {}

void PickleWriter::text(std::string_view text) {
  put_text(text);
  end_value();
}

void PickleWriter::whole(std::int64_t number) {
  constexpr std::size_t kLong = sizeof number;
  if (number >= 0 && number <= 0xff)
    return put_value(static_cast<char>(kBinInt1) +
                     bytes_with(static_cast<std::uint64_t>(number), 1));
  put_value(std::string{static_cast<char>(kLong1), kLong} +
            bytes_with(static_cast<std::uint64_t>(number), kLong));
}

void PickleWriter::begin(char opcode) {
  bytes_ += opcode;
  open_.push_back(opcode);
}

void PickleWriter::end() {
  TPSIM_CHECK(!open_.empty(), "no list or dict is open");
  open_.pop_back();
  end_value();
}

void PickleWriter::repeat(std::uint32_t number) {
  put_value(static_cast<char>(kLongBinGet) + bytes_with(number, 4));
}

std::string PickleWriter::take() {
  TPSIM_CHECK(open_.empty(), "a list or dict is open");
  bytes_ += static_cast<char>(kStop);
  return std::move(bytes_);
}

void PickleWriter::put_text(std::string_view text) {
  const auto known = texts_.find(text);
  if (known != texts_.end()) {
    bytes_ += static_cast<char>(kLongBinGet);
    bytes_ += bytes_with(known->second, 4);
    return;
  }
  bytes_ += static_cast<char>(kBinUnicode);
  bytes_ += bytes_with(text.size(), 4);
  bytes_ += text;
  texts_.emplace(text, put_number());
}

void PickleWriter::put_value(std::string_view bytes) {
  bytes_ += bytes;
  end_value();
}

// Adds the value to the list or dict around it.
void PickleWriter::end_value() {
  if (open_.empty()) return;
  bytes_ += static_cast<char>(open_.back() == kEmptyList ? kAppend : kSetItem);
}

std::uint32_t PickleWriter::put_number() {
  bytes_ += static_cast<char>(kLongBinPut);
  bytes_ += bytes_with(numbered_, 4);
  return numbered_++;
}

}  // namespace tpsim
