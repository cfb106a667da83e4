// Pickles of Python 3.11 for each protocol, and those that PickleWriter writes.
#include "evidence/logs/pickle.h"

#include <catch2/catch.hpp>

namespace tpsim {
namespace {

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// shared = [1.5, True]
// pickle.dumps({"a": [0, -7, 300, 70000, -(2**40), 2**63 - 1], "b": (None, "é", b"x"),
//               "c": shared, "d": shared, "e": (), "f": {}, "g": (1,), "h": (1, 2, 3, 4)},
//              protocol=p).hex() for p = 2 to 5; protocol 2 has the text "x"
constexpr std::string_view kPickles[] = {
    "80027d71002858010000006171015d7102284b004af9ffffff4d2c014a701101008a060000000000ff8a08ff"
    "ffffffffffff7f6558010000006271034e5802000000c3a97104580100000078710587710658010000006371"
    "075d710828473ff8000000000000886558010000006471096808580100000065710a29580100000066710b7d"
    "710c580100000067710d4b0185710e580100000068710f284b014b024b034b04747110752e",
    "80037d71002858010000006171015d7102284b004af9ffffff4d2c014a701101008a060000000000ff8a08ff"
    "ffffffffffff7f6558010000006271034e5802000000c3a97104430178710587710658010000006371075d71"
    "0828473ff8000000000000886558010000006471096808580100000065710a29580100000066710b7d710c58"
    "0100000067710d4b0185710e580100000068710f284b014b024b034b04747110752e",
    "80049578000000000000007d94288c0161945d94284b004af9ffffff4d2c014a701101008a060000000000ff"
    "8a08ffffffffffffff7f658c0162944e8c02c3a9944301789487948c0163945d9428473ff800000000000088"
    "658c01649468088c016594298c0166947d948c0167944b0185948c016894284b014b024b034b047494752e",
    "80059578000000000000007d94288c0161945d94284b004af9ffffff4d2c014a701101008a060000000000ff"
    "8a08ffffffffffffff7f658c0162944e8c02c3a9944301789487948c0163945d9428473ff800000000000088"
    "658c01649468088c016594298c0166947d948c0167944b0185948c016894284b014b024b034b047494752e",
};

void check_contents(const Pickle& pickle) {
  const PickleValue& root = *pickle.root;
  const auto* numbers = root.find("a")->list();
  const std::vector<std::int64_t> wanted = {0, -7, 300, 70000, -(std::int64_t{1} << 40), INT64_MAX};
  REQUIRE(numbers->size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(*(*numbers)[i]->whole() == wanted[i]);
  const auto& mixed = *root.find("b")->list();
  REQUIRE(mixed.size() == 3);
  CHECK(std::holds_alternative<std::monostate>(mixed[0]->value));
  CHECK(*mixed[1]->text() == "é");
  CHECK(*mixed[2]->text() == "x");
  const auto& shared = *root.find("c")->list();
  CHECK(std::get<double>(shared[0]->value) == 1.5);
  CHECK(std::get<bool>(shared[1]->value));
  CHECK(root.find("c") == root.find("d"));
  CHECK(root.find("e")->list()->empty());
  CHECK(root.find("f")->dict()->empty());
  CHECK(root.find("g")->list()->size() == 1);
  CHECK(root.find("h")->list()->size() == 4);
  CHECK(root.find("i") == nullptr);
}

}  // namespace

TEST_CASE("pickles of Python are read in each protocol") {
  for (const std::string_view hex : kPickles) {
    const auto pickle = read_pickle(from_hex(hex), "x.pickle");
    REQUIRE(pickle.ok());
    check_contents(*pickle);
  }
}

TEST_CASE("a truncated pickle is an error") {
  for (const std::string_view hex : kPickles) {
    const std::string bytes = from_hex(hex);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const auto pickle = read_pickle(bytes.substr(0, size), "x.pickle");
      REQUIRE(!pickle.ok());
      CHECK(pickle.error().where == "x.pickle");
    }
  }
}

TEST_CASE("a pickle with a damaged byte is read or refused") {
  for (const std::string_view hex : kPickles) {
    const std::string bytes = from_hex(hex);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      for (const int change : {1, 0x20, 0x80, 0xff}) {
        std::string damaged = bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ change);
        const auto pickle = read_pickle(damaged, "x.pickle");
        if (pickle.ok()) CHECK(pickle->root != nullptr);
      }
    }
  }
}

TEST_CASE("a pickle that calls a function is refused") {
  // pickle.dumps(os.system, protocol=2) names the function: GLOBAL 'posix system'.
  const auto pickle = read_pickle(from_hex("800263706f7369780a73797374656d0a71002e"), "x.pickle");
  REQUIRE(!pickle.ok());
  CHECK(pickle.error().message.find("Python object") != std::string::npos);
}

TEST_CASE("written pickles are read back") {
  PickleWriter out;
  out.begin_dict();
  out.key("numbers");
  out.begin_list();
  const std::uint32_t list = out.number();
  for (const std::int64_t number : {std::int64_t{0}, std::int64_t{255}, std::int64_t{256},
                                    std::int64_t{-1}, INT64_MIN, INT64_MAX}) {
    out.whole(number);
  }
  out.end();
  out.key("again");
  out.repeat(list);
  out.key("text");
  out.text("numbers");
  out.key("nothing");
  out.null();
  out.end();
  const auto pickle = read_pickle(out.take(), "x.pickle");
  REQUIRE(pickle.ok());
  const PickleValue& root = *pickle->root;
  CHECK(root.find("numbers") == root.find("again"));
  const auto& numbers = *root.find("numbers")->list();
  CHECK(*numbers[2]->whole() == 256);
  CHECK(*numbers[3]->whole() == -1);
  CHECK(*numbers[4]->whole() == INT64_MIN);
  CHECK(*numbers[5]->whole() == INT64_MAX);
  CHECK(*root.find("text")->text() == "numbers");
  CHECK(std::holds_alternative<std::monostate>(root.find("nothing")->value));
}

}  // namespace tpsim
