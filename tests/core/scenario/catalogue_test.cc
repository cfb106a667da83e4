// Shipped data is complete: every file loads, has its name and a source, and references between
// files resolve.
#include "core/scenario/catalogue.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>

#include "core/json/json_document.h"
#include "core/machine/cluster_json.h"
#include "core/machine/profile_json.h"

namespace tpsim {
namespace {

const Catalogue kShipped{std::filesystem::path(TPSIM_SOURCE_DIR) / "data"};

template <class Load>
void check_all(CatalogueKind kind, Load load) {
  const std::vector<std::string> names = kShipped.list(kind);
  REQUIRE_FALSE(names.empty());
  for (const std::string& name : names) {
    const auto loaded = load(name);
    if (!loaded.ok()) FAIL(to_string(loaded.error()));
    INFO(name);
    CHECK(loaded->name == name);
    CHECK(loaded->source.size() > 10);
  }
}

TEST_CASE("every shipped file loads, is named as its file and has a source") {
  check_all(CatalogueKind::kModels, [](auto& name) { return kShipped.load_model(name); });
  check_all(CatalogueKind::kClusters, [](auto& name) { return kShipped.load_cluster(name); });
  check_all(CatalogueKind::kProfiles, [](auto& name) { return kShipped.load_profile(name); });
  check_all(CatalogueKind::kStacks, [](auto& name) { return kShipped.load_stack(name); });
}

TEST_CASE("every cluster names a profile and a stack that ship") {
  for (const std::string& name : kShipped.list(CatalogueKind::kClusters)) {
    INFO(name);
    const ClusterSpec cluster = *kShipped.load_cluster(name);
    CHECK(kShipped.load_profile(cluster.profile).ok());
    CHECK(kShipped.load_stack(cluster.stack).ok());
  }
}

TEST_CASE("every profile has matrix products, collectives and sources of its constants") {
  for (const std::string& name : kShipped.list(CatalogueKind::kProfiles)) {
    INFO(name);
    const Profile profile = *kShipped.load_profile(name);
    CHECK(profile.device.source.size() > 10);
    CHECK(profile.model.source.size() > 10);
    // A GPU that was not timed has only the constants of its datasheet.
    if (profile.provenance == Provenance::kDatasheet) continue;
    std::map<OpKind, int> ops;
    for (const OpSample& sample : profile.ops) ++ops[sample.key.kind];
    // Profiles measured here have the GEMMs of a few plans.
    const bool is_measured = profile.provenance == Provenance::kMeasuredHere;
    CHECK((is_measured || profile.provenance == Provenance::kPublished));
    CHECK(ops[OpKind::kMatmul] > (is_measured ? 40 : 150));
    CHECK(ops[OpKind::kMatmul] <= 2500);
    if (profile.collectives.empty()) continue;  // a host without peer access
    std::map<CollectiveKind, int> collectives;
    for (const CollectiveSample& sample : profile.collectives) ++collectives[sample.kind];
    CHECK(collectives[CollectiveKind::kAllReduce] > 20);
    CHECK(collectives[CollectiveKind::kAllGather] > 20);
    CHECK(collectives[CollectiveKind::kReduceScatter] > 20);
  }
}

TEST_CASE("copied samples that beat an edited peak are refused by name") {
  Profile profile = *kShipped.load_profile("h100-sxm");
  profile.device.matmul_peak = FlopsPerSecond(400e12);
  const Result<Profile> read = parse_profile(to_json(profile), "mine.json");
  REQUIRE_FALSE(read.ok());
  CHECK_THAT(read.error().message, Catch::Contains("above the stated peak of 400 TFLOP/s"));
  CHECK(read.error().where == "mine.json");
}

TEST_CASE("a profile needs only its device, and all missing keys are named at once") {
  const std::string text = R"({"format": "tpsim-profile/1", "name": "mine", "source": "datasheet",
    "date": "2026", "provenance": "datasheet", "device": {"name": "GPU", "source": "datasheet",
    "memory": "80 GB", "processors": 100, "matmul_peak": "900 TFLOP/s", "matmul_dtype": "bf16",
    "vector_peak": "60 TFLOP/s", "memory_bandwidth": "3 TB/s", "asynchronous": true},
    "model": {"provenance": "datasheet"}, "burst_clocks": false})";
  const Result<Profile> read = parse_profile(text, "mine.json");
  REQUIRE(read.ok());
  CHECK(read->model.matmul_efficiency == usual_model().matmul_efficiency);
  std::string less = text;
  for (const char* key :
       {"\"date\": \"2026\", ", "\"processors\": 100, ", "\"burst_clocks\": false"}) {
    less.erase(less.find(key), std::string(key).size());
  }
  less.erase(less.rfind(','), 1);
  const Result<Profile> lacking = parse_profile(less, "mine.json");
  REQUIRE_FALSE(lacking.ok());
  CHECK(lacking.error().message ==
        "the keys 'date', 'device.processors', 'burst_clocks' are missing");
}

TEST_CASE("BLOOM's, Llama's and Mixtral's parameter counts are exact") {
  const std::map<std::string, std::int64_t> published = {
      {"bloom-560m", 559'214'592},      {"bloom-1b1", 1'065'314'304},
      {"bloom-1b7", 1'722'408'960},     {"bloom-3b", 3'002'557'440},
      {"bloom-7b1", 7'069'016'064},     {"bloom-176b", 176'247'271'424},
      {"llama-2-7b", 6'738'415'616},    {"llama-2-13b", 13'015'864'320},
      {"llama-2-70b", 68'976'648'192},  {"llama-3-8b", 8'030'261'248},
      {"llama-3-70b", 70'553'706'496},  {"llama-3-405b", 405'853'388'800},
      {"mixtral-8x7b", 46'702'792'704}, {"mixtral-8x22b", 140'620'634'112}};
  for (const auto& [name, count] : published) {
    INFO(name);
    CHECK(parameter_count(*kShipped.load_model(name)) == count);
  }
}

TEST_CASE("Megatron's models have the parameters of their papers' tables") {
  const std::map<std::string, double> billions = {
      {"gpt-1.7b", 1.7},   {"gpt-3.6b", 3.6},  {"gpt-7.5b", 7.5},   {"gpt-18b", 18.4},
      {"gpt-39b", 39.1},   {"gpt-76b", 76.1},  {"gpt-145b", 145.6}, {"gpt-310b", 310.1},
      {"gpt-530b", 529.6}, {"gpt-1t", 1008.0}, {"gpt-22b", 22.0},   {"gpt-3-175b", 174.6}};
  for (const auto& [name, published] : billions) {
    INFO(name);
    const double count = static_cast<double>(parameter_count(*kShipped.load_model(name))) / 1e9;
    CHECK(count == Approx(published).margin(0.08));
  }
}

TEST_CASE("an unknown name offers the nearest, a path is taken as it is") {
  const auto near = kShipped.load_model("bloom-176");
  REQUIRE_FALSE(near.ok());
  CHECK_THAT(to_string(near.error()),
             Catch::Contains("unknown model 'bloom-176'") && Catch::Contains("bloom-176b"));
  CHECK_FALSE(kShipped.load_cluster("bloom-176b").ok());
  const std::string path = (kShipped.directory() / "models" / "bloom-3b.json").string();
  REQUIRE(kShipped.load_model(path).ok());
  CHECK(kShipped.load_model(path)->name == "bloom-3b");
  const auto missing = kShipped.load_model("missing.json");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().where == "missing.json");
}

TEST_CASE("models are found by public names, tuned or not, and by unique prefixes") {
  for (const auto& [called, entry] :
       {std::pair{"Qwen/Qwen3-8B-Base", "qwen3-8b"}, std::pair{"qwen3-235b", "qwen3-235b-a22b"},
        std::pair{"meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"},
        std::pair{"google/gemma-3-27b-it", "gemma-3-27b"}, std::pair{"mistral-7b", "mistral-7b"},
        std::pair{"mistralai/Mistral-7B-v0.1", "mistral-7b-v0.1"},
        std::pair{"mistralai/Mixtral-8x22B-Instruct-v0.1", "mixtral-8x22b"},
        std::pair{"deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "llama-3.1-70b"},
        std::pair{"Qwen/Qwen2.5-Coder-32B-Instruct", "qwen2.5-32b"},
        std::pair{"moonshotai/Kimi-K2-Instruct-0905", "kimi-k2"},
        std::pair{"deepseek-ai/DeepSeek-V3-0324", "deepseek-v3"},
        std::pair{"Qwen/Qwen3-235B-A22B-Thinking-2507-FP8", "qwen3-235b-a22b"},
        std::pair{"nvidia/Llama-3.1-70B-Instruct-FP8", "llama-3.1-70b"},
        std::pair{"meta-llama/Meta-Llama-3-8B", "llama-3-8b"},
        std::pair{"meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"}}) {
    CAPTURE(called);
    const auto model = kShipped.load_model(called);
    REQUIRE(model.ok());
    CHECK(model->name == entry);
  }
  CHECK_FALSE(kShipped.load_model("qwen3").ok());  // ambiguous prefix
}

TEST_CASE("a model with the shape of another has a note, and one under its own name does not") {
  const auto distilled = kShipped.load_model("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B");
  REQUIRE(distilled.ok());
  REQUIRE(distilled->notes.size() == 1);
  CHECK(distilled->notes[0] == "DeepSeek-R1-Distill-Qwen-7B has the shape of qwen2.5-7b");
  for (const char* own : {"qwen2.5-7b", "Qwen/Qwen2.5-7B", "Llama3-8B"}) {
    CAPTURE(own);
    CHECK(kShipped.load_model(own)->notes.empty());
  }
}

TEST_CASE("an unknown public name is refused with the nearest ones, not as a missing file") {
  const auto model = kShipped.load_model("Qwen/Qwen3-9B");
  REQUIRE_FALSE(model.ok());
  CHECK_THAT(to_string(model.error()), Catch::Contains("qwen3-"));
  CHECK(kShipped.load_model("no/such/folder").error().where == "no/such/folder");
}

TEST_CASE("an unknown public name is answered by the nearest entry or family, and config.json") {
  for (const auto& [called, nearest] :
       {std::pair{"google/gemma-3-4b-it", "gemma-3-27b and models of the family gemma3_text"},
        std::pair{"EleutherAI/pythia-6.9b", "models of the family gpt_neox"},
        std::pair{"allenai/OLMo-2-1124-7B", "models of the family olmo2"},
        std::pair{"mosaicml/mpt-7b", "models of the family mpt"},
        std::pair{"google/flan-t5-xl", "the family t5, not supported: it has an encoder"}}) {
    CAPTURE(called);
    const Error error = kShipped.load_model(called).error();
    CHECK(error.message == std::string("unknown model '") + called + "'");
    CHECK_THAT(error.hint, Catch::StartsWith(std::string("nearest: ") + nearest) &&
                               Catch::Contains(std::string(called) + "/raw/main/config.json"));
  }
  const Error error = kShipped.load_model("some/thing").error();
  CHECK_THAT(error.hint, Catch::StartsWith("tpsim show families"));
}

TEST_CASE("every shape that the names of the hub refer to is in the catalogue") {
  const auto root = read_json_file(kShipped.directory() / "hub" / "names.json");
  REQUIRE(root.ok());
  const auto rules = hub_names_from_json(*root, "names.json");
  REQUIRE(rules.ok());
  const std::vector<std::string> entries = kShipped.list(CatalogueKind::kModels);
  for (const HubShape& one : rules->shapes) {
    CAPTURE(one.name);
    CHECK(entry_with_shape(*rules, one.name, entries) == one.shape);
  }
}

TEST_CASE("a program in its build tree reads the source tree's data, or TPSIM_DATA") {
  ::unsetenv("TPSIM_DATA");
  REQUIRE(Catalogue::open().ok());
  CHECK(Catalogue::open()->directory() == kShipped.directory());
  ::setenv("TPSIM_DATA", "/nowhere", 1);
  const auto wrong = Catalogue::open();
  REQUIRE_FALSE(wrong.ok());
  CHECK(wrong.error().where == "$TPSIM_DATA");
  ::setenv("TPSIM_DATA", kShipped.directory().c_str(), 1);
  CHECK(Catalogue::open()->directory() == kShipped.directory());
  ::unsetenv("TPSIM_DATA");
}

}  // namespace
}  // namespace tpsim
