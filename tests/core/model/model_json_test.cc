// The strict reader of model files: every error names line, key and nearest valid choice.
#include "core/model/model_json.h"

#include <catch2/catch.hpp>

namespace tpsim {
namespace {

constexpr std::string_view kGood = R"({
  "format": "tpsim-model/1",
  "name": "small",
  "source": "a test",
  "layers": 4,
  "hidden": 64,
  "ffn_hidden": 256,
  "vocab": 1000,
  "seq": 128,
  "attention": {
    "heads": 4, "kv_heads": 2, "head_dim": 16,
    "position": "rotary"
  },
  "norm": "rms_norm",
  "mlp": "swiglu",
  "linear_bias": false,
  "fused_qkv": false,
  "tied_embedding": false
})";

std::string with(std::string_view text, std::string_view old_words, std::string_view new_words) {
  std::string changed(text);
  const std::size_t at = changed.find(old_words);
  REQUIRE(at != std::string::npos);
  return changed.replace(at, old_words.size(), new_words);
}

void check_refused(const std::string& text, const std::string& where, const std::string& words,
                   const std::string& hint = "") {
  INFO(text);
  const Result<ModelSpec> result = parse_model(text, "m.json");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().kind == ErrorKind::kBadInput);
  CHECK(result.error().where == where);
  CHECK_THAT(result.error().message, Catch::Contains(words));
  CHECK_THAT(result.error().hint, Catch::Contains(hint));
}

TEST_CASE("a model file is read, absent options keep their defaults") {
  const Result<ModelSpec> model = parse_model(kGood, "m.json");
  REQUIRE(model.ok());
  CHECK(model->layers == 4);
  CHECK(model->attention.kv_heads == 2);
  CHECK(model->attention.position == PositionKind::kRotary);
  CHECK(model->mlp == MlpKind::kSwiglu);
  CHECK_FALSE(model->tied_embedding);
  CHECK(model->norm_epsilon == ModelSpec().norm_epsilon);
}

TEST_CASE("a wrong kind of value names line, key and both kinds") {
  check_refused(with(kGood, "\"layers\": 4", "\"layers\": \"4\""), "m.json:5",
                "layers must be a whole number, not a text");
  check_refused(with(kGood, "\"layers\": 4", "\"layers\": 4.5"), "m.json:5",
                "layers must be a whole number, not a fraction");
  check_refused(with(kGood, "\"name\": \"small\"", "\"name\": null"), "m.json:3",
                "name must be a text, not null");
  check_refused(with(kGood, "\"linear_bias\": false", "\"linear_bias\": 0"), "m.json:16",
                "linear_bias must be true or false");
  check_refused(with(kGood, "\"heads\": 4", "\"heads\": []"), "m.json:11",
                "attention.heads must be a whole number, not an array");
  check_refused("[]", "m.json:1", "must be a JSON object, not an array");
}

TEST_CASE("numbers out of range are refused") {
  check_refused(with(kGood, "\"layers\": 4", "\"layers\": -4"), "m.json:5", "layers is -4");
  check_refused(with(kGood, "\"vocab\": 1000", "\"vocab\": 0"), "m.json:8", "vocab is 0");
  check_refused(with(kGood, "\"hidden\": 64", "\"hidden\": 9000000000000000000"), "m.json:6",
                "hidden is 9000000000000000000");
  check_refused(with(kGood, "\"mlp\"", "\"norm_epsilon\": -1e-5, \"mlp\""), "m.json:15",
                "norm_epsilon is -1e-05");
}

TEST_CASE("a missing key is named with the line of its object") {
  check_refused(with(kGood, "\"layers\": 4,", ""), "m.json:1", "the key 'layers' is missing");
  check_refused(with(kGood, "\"head_dim\": 16,", ""), "m.json:10",
                "the key 'attention.head_dim' is missing");
}

TEST_CASE("an unknown key is refused with the nearest known one") {
  check_refused(with(kGood, "\"mlp\"", "\"norm_epsilom\": 1e-5, \"mlp\""), "m.json:15",
                "unknown key 'norm_epsilom'", "norm_epsilon");
  check_refused(with(kGood, "\"heads\": 4", "\"heads\": 4, \"headdim\": 16"), "m.json:11",
                "unknown key 'attention.headdim'", "head_dim");
}

TEST_CASE("an unknown name is refused with the nearest known one") {
  check_refused(with(kGood, "rms_norm", "rmsnorm"), "m.json:14", "unknown norm 'rmsnorm'",
                "rms_norm");
}

TEST_CASE("another version or kind of file is refused") {
  check_refused(with(kGood, "tpsim-model/1", "tpsim-model/2"), "m.json:2", "tpsim-model/2",
                "tpsim-model/1");
  check_refused(with(kGood, "tpsim-model/1", "tpsim-plan/1"), "m.json:2", "tpsim-plan/1",
                "tpsim-model/1");
  check_refused(with(kGood, "\"format\": \"tpsim-model/1\",", ""), "m.json:1",
                "'format' is missing");
}

TEST_CASE("a model that breaks a rule of its own is refused") {
  check_refused(with(kGood, "\"kv_heads\": 2", "\"kv_heads\": 3"), "m.json", "4 heads");
  check_refused(with(kGood, "\"head_dim\": 16", "\"head_dim\": 15"), "m.json", "even head_dim");
  check_refused(with(kGood, "\"fused_qkv\": false", "\"fused_qkv\": true"), "m.json",
                "fused_qkv keeps q, k and v of each head together");
}

TEST_CASE("sizes whose products overflow 64 bits are refused") {
  std::string large(kGood);
  for (const char* key : {"layers", "hidden", "ffn_hidden", "vocab", "seq"}) {
    const std::string start = "\"" + std::string(key) + "\": ";
    const std::size_t at = large.find(start);
    REQUIRE(at != std::string::npos);
    const std::size_t number = at + start.size();
    large.replace(number, large.find_first_of(",}", number) - number, "16777216");
  }
  check_refused(large, "m.json", "parameters; the limit is");
}

}  // namespace
}  // namespace tpsim
