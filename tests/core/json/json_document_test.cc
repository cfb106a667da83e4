// Errors of the JSON parser with their line, and round trips of text.
#include "core/json/json_document.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

namespace tpsim {
namespace {

Error error_of(std::string_view text) {
  const Result<JsonValue> result = parse_json(text, "file.json");
  REQUIRE_FALSE(result.ok());
  return result.error();
}

void check_refused(std::string_view text, const std::string& where, const std::string& words) {
  INFO(text.substr(0, 100));
  const Error error = error_of(text);
  CHECK(error.kind == ErrorKind::kBadInput);
  CHECK(error.where == where);
  CHECK_THAT(error.message, Catch::Contains(words));
}

std::string nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST_CASE("text that ends early is refused on its last line") {
  check_refused("", "file.json:1", "ends in the middle");
  check_refused("{\n  \"a\": 1,\n", "file.json:2", "ends in the middle");
  check_refused("{\"a\": [1, 2", "file.json:1", "ends in the middle");
  check_refused("\n\n\"abc", "file.json:3", "ends in the middle");
}

TEST_CASE("every cut of a good document is refused") {
  const std::string good = R"({"a": [1, -2.5e3, true, null], "b": {"c": "é\u00e9\n"}})";
  REQUIRE(parse_json(good, "f").ok());
  for (std::size_t size = 0; size < good.size(); ++size) {
    INFO(good.substr(0, size));
    CHECK_FALSE(parse_json(good.substr(0, size), "f").ok());
  }
}

TEST_CASE("garbage is refused and named") {
  check_refused("{\"a\": 1,}", "file.json:1", "unexpected");
  check_refused("{'a': 1}", "file.json:1", "unexpected");
  check_refused("{} {}", "file.json:1", "unexpected");
  check_refused("nul", "file.json:1", "");
  check_refused("NaN", "file.json:1", "unexpected");
  check_refused("{\n\"a\": \"tab\there\"}", "file.json:2", "unexpected");
}

TEST_CASE("numbers that no double or 64-bit integer holds are refused") {
  check_refused("[1,\n1e999]", "file.json:2", "too large");
  check_refused("1e309", "file.json:1", "too large");
  check_refused("[-1e400]", "file.json:1", "too large");
  check_refused("[18446744073709551615]", "file.json:1", "64 bits");
  check_refused(std::string(400, '9'), "file.json:1", "too large");
}

TEST_CASE("the largest numbers are read exactly") {
  const auto whole = parse_json("9223372036854775807", "f");
  REQUIRE(whole.ok());
  REQUIRE(whole->as<std::int64_t>() != nullptr);
  CHECK(*whole->as<std::int64_t>() == std::numeric_limits<std::int64_t>::max());
  const auto real = parse_json("1e308", "f");
  REQUIRE(real.ok());
  CHECK(*real->as<double>() == 1e308);
}

TEST_CASE("nesting is limited") {
  CHECK(parse_json(nested(kMostJsonDepth), "f").ok());
  check_refused(nested(kMostJsonDepth + 1), "file.json:1", "nested deeper");
  check_refused(std::string(1'000'000, '['), "file.json:1", "nested deeper");
}

TEST_CASE("the number of values is limited") {
  std::string many = "[0";
  for (std::size_t i = 0; i < kMostJsonValues; ++i) many += ",0";
  check_refused(many + "]", "file.json:1", "more than");
}

TEST_CASE("text larger than the limit is refused before it is parsed") {
  check_refused(std::string(kMostJsonBytes + 1, ' '), "file.json:1", "larger than 64 MiB");
}

TEST_CASE("text that is not UTF-8 is refused") {
  check_refused("[\"a\",\n\"\xff\"]", "file.json:2", "not UTF-8");
  check_refused("\"\xc3\"", "file.json:1", "not UTF-8");              // cut sequence
  check_refused("\"\xc0\xaf\"", "file.json:1", "not UTF-8");          // overlong
  check_refused("\"\xed\xa0\x80\"", "file.json:1", "not UTF-8");      // surrogate
  check_refused("\"\xf4\x90\x80\x80\"", "file.json:1", "not UTF-8");  // beyond Unicode
  check_refused(std::string_view("{}\0", 3), "file.json:1", "not UTF-8");
}

TEST_CASE("a key that is repeated in one object is refused at the second") {
  check_refused("{\"a\": 1,\n \"b\": 2,\n \"a\": 3}", "file.json:3", "first on line 1");
  CHECK(parse_json(R"({"a": {"b": 1}, "c": {"b": 1}})", "f").ok());
}

TEST_CASE("an object of very many keys is checked without comparing all pairs") {
  std::string text = "{";
  for (int i = 0; i < 300'000; ++i) text += "\"k" + std::to_string(i) + "\":0,";
  check_refused(text + "\"k7\":0}", "file.json:1", "'k7' is repeated");
}

TEST_CASE("every value has its line") {
  const auto root = parse_json("{\n  \"a\": 1,\n  \"b\": [\n    2.5,\n    \"x\"\n  ]\n}\n", "f");
  REQUIRE(root.ok());
  CHECK(root->line() == 1);
  CHECK(root->find("a")->line() == 2);
  CHECK(root->find("b")->line() == 3);
  const JsonValue::Array& array = *root->find("b")->as<JsonValue::Array>();
  CHECK(array[0].line() == 4);
  CHECK(array[1].line() == 5);
}

TEST_CASE("text written is read back to the same values") {
  JsonValue inner = json_object({{"name", "quote \" slash \\ line\n é"}, {"flag", true}});
  JsonValue root = json_object({{"list", json_array(std::vector<double>{0.1, 1e-300, 3, 1e308})},
                                {"inner", inner},
                                {"nothing", JsonValue()},
                                {"empty", json_object()},
                                {"rows", JsonValue::Array{JsonValue::Array{1, 2}, 3}}});
  const std::string text = to_text(root);
  const auto read = parse_json(text, "f");
  REQUIRE(read.ok());
  CHECK(to_text(*read) == text);
  CHECK(*read->find("inner")->find("name")->as<std::string>() == "quote \" slash \\ line\n é");
  CHECK(text.back() == '\n');
}

TEST_CASE("an object written in pieces is the text of the whole") {
  const int steps = GENERATE(0, 1, 3);
  const auto members = [](const JsonValue& object) { return *object.as<JsonValue::Object>(); };
  const JsonValue before =
      json_object({{"version", "v/1"}, {"sizes", json_array(std::array{1, 2})}});
  const JsonValue after = json_object({{"completed", true}, {"ops", json_object({{"a", 1.5}})}});
  GrowingJson growing;
  JsonValue whole = before;
  JsonValue::Array all;
  std::string text = growing.begin(members(before), "steps");
  for (int i = 0; i < steps; ++i) {
    JsonValue step = json_object({{"step", i}, {"loss", 0.25 * i}});
    if (i == 1) step.set("note", std::string(100, 'x'));  // too long for one line
    text += growing.item(members(step));
    all.push_back(std::move(step));
  }
  whole.set("steps", std::move(all));
  for (const JsonMember& member : members(after)) whole.set(member.key, member.value);
  CHECK(text + growing.end(members(after)) == to_text(whole));
}

TEST_CASE("a document on one line reads back as the same") {
  JsonValue document =
      json_object({{"text", "two\nlines"}, {"number", 0.1}, {"nothing", JsonValue()}});
  document.set("inner",
               json_object({{"list", JsonValue(JsonValue::Array{1, JsonValue::Object{}})}}));
  document.set("long", std::string(200, 'x'));
  const std::string line = to_line(document);
  CHECK(line.find('\n') == std::string::npos);
  CHECK(to_text(*parse_json(line, "f")) == to_text(document));
}

TEST_CASE("every double is written so that it reads back exactly") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const double number = std::bit_cast<double>(random());
    if (!std::isfinite(number)) continue;
    const auto read = parse_json(to_text(JsonValue(number)), "f");
    REQUIRE(read.ok());
    const std::int64_t* whole = read->as<std::int64_t>();
    const double found = whole != nullptr ? static_cast<double>(*whole) : *read->as<double>();
    CHECK(found == number);
  }
}

TEST_CASE("text that is not UTF-8 is written with replacements, an infinity not at all") {
  CHECK(parse_json(to_text(JsonValue("bad \xff byte")), "f").ok());
  CHECK_THROWS_AS(to_text(JsonValue(std::numeric_limits<double>::infinity())), BugError);
}

TEST_CASE("an unreadable file is an error with its reason") {
  const auto missing = read_json_file("/nowhere/model.json");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().where == "/nowhere/model.json");
  CHECK_THAT(missing.error().message, Catch::Contains("No such file"));
  const auto folder = read_json_file("/");
  REQUIRE_FALSE(folder.ok());
  CHECK_THAT(folder.error().message, Catch::Contains("directory"));
}

TEST_CASE("a negative zero reads back as a negative zero") {
  const std::string text = to_text(*parse_json("[-0e24, 0e1, -0.0]", "input"));
  CHECK(text == "[-0.0, 0, -0.0]\n");
  CHECK(to_text(*parse_json(text, "input")) == text);
}

}  // namespace
}  // namespace tpsim
