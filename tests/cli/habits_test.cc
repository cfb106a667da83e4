// Conventions of command lines: option names of other programs, help, completion, catalogue entries
// as files, comparison of plans, and series of sizes.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "app/answers/campaign_answer.h"
#include "app/documents/formats_page.h"
#include "cli/commands/manual.h"
#include "cli/commands/program.h"
#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "cli/views/plan_view.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/json/json_document.h"
#include "core/machine/cluster_json.h"
#include "core/model/model_json.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/plan_contents.h"
#include "core/scenario/plan_json.h"
#include "sim/step/simulate.h"
#include "tests/cli/typed_answers.h"
#include "tests/temporary_folder.h"

namespace tpsim::cli {
namespace {

void add_keys(const JsonValue& schema, const std::string& path,
              std::map<std::string, std::string>& keys) {
  if (const JsonValue* items = schema.find("items")) return add_keys(*items, path, keys);
  const JsonValue* properties = schema.find("properties");
  if (properties == nullptr) return;
  for (const JsonMember& member : *properties->as<JsonValue::Object>()) {
    const std::string key = path + "." + member.key;
    const JsonValue* meaning = member.value.find("description");
    keys[key] = meaning == nullptr ? "" : *meaning->as<std::string>();
    add_keys(member.value, key, keys);
  }
}

// Returns the meanings of all keys of all formats by path, from the JSON schemas.
std::map<std::string, std::string> described_keys() {
  std::map<std::string, std::string> keys;
  for (const FileFormat& format : file_formats()) {
    add_keys(json_schema(format), std::string(format.kind), keys);
  }
  return keys;
}

Result<CommandLine> parsed(std::vector<const char*> words) {
  words.insert(words.begin(), "tpsim");
  return parse_command_line(static_cast<int>(words.size()), words.data());
}

Arguments arguments_of(const std::vector<const char*>& words) {
  return std::get<Arguments>(parsed(words).value());
}

std::string printed(const std::vector<const char*>& words) {
  return std::get<Answer>(parsed(words).value()).text;
}

}  // namespace

TEST_CASE("option names of other programs are accepted") {
  const Arguments arguments =
      arguments_of({"simulate", "--tensor-model-parallel-size", "4", "--mbs=2", "--gbs", "64",
                    "--seq-len", "4096", "--vpp", "2", "--zero-stage", "1"});
  CHECK(arguments[opt_of(Setting::kTp)] == "4");
  CHECK(arguments[opt_of(Setting::kMicroBatch)] == "2");
  CHECK(arguments[opt_of(Setting::kGlobalBatch)] == "64");
  CHECK(arguments[Opt("--seq")] == "4096");
  CHECK(arguments[opt_of(Setting::kVirtualStages)] == "2");
  CHECK(arguments[opt_of(Setting::kZero)] == "1");
  const auto twice = parsed({"simulate", "--tp", "4", "--tp-size", "2"});
  REQUIRE_FALSE(twice.ok());
  CHECK(twice.error().message == "is given 2 times");
}

TEST_CASE("unsupported options of other programs get a hint") {
  const auto hint = [](const std::vector<const char*>& words) {
    const auto line = parsed(words);
    return line.ok() ? std::string() : line.error().hint;
  };
  CHECK(hint({"plan", "--nnodes", "4"}) ==
        "write --gpus with the number of nodes times the GPUs per node");
  CHECK(hint({"plan", "--bf16"}) == "write --dtype bf16");
  CHECK(hint({"simulate", "--gpus", "8"}) ==
        "give --dp instead: the number of GPUs is tp x pp x dp x cp");
  CHECK_THAT(hint({"plan", "--muon"}), Catch::Contains("--optimizer muon"));
  CHECK_THAT(hint({"plan", "--optimizer-kind", "muon"}), Catch::Contains("--optimizer adamw"));
  CHECK_THAT(hint({"plan", "--zero-bubble"}), Catch::Contains("--schedule zb-h1"));
  CHECK_THAT(std::string(possible_instead("--schedule", "dualpipe")),
             Catch::Contains("not modelled"));
  CHECK_THAT(std::string(possible_instead("--offload", "activations")),
             Catch::Contains("--offload-layers"));
  CHECK(nearest("h100", std::vector<std::string>{"h200", "a100-sxm4-80gb", "h100-sxm"}) ==
        "h100-sxm");
}

TEST_CASE("help is a command, and -V the version") {
  CHECK(printed({"help", "plan"}) == printed({"plan", "--help"}));
  CHECK(printed({"help"}) == printed({"--help"}));
  CHECK(printed({"-V"}) == printed({"--version"}));
  CHECK_THAT(printed({"--version"}), Catch::Contains("data:"));
  CHECK_FALSE(parsed({"help", "plna"}).ok());
  const std::string manual = printed({"help", "man"});
  for (const CommandRow& row : command_rows()) {
    CHECK_THAT(manual, Catch::Contains(std::string(".SS ") + row.name));
  }
}

TEST_CASE("completions list every command, option and word") {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    CAPTURE(shell);
    const std::string script = completion_script(shell).value();
    for (const CommandRow& row : command_rows()) CHECK_THAT(script, Catch::Contains(row.name));
    CHECK_THAT(script, Catch::Contains("none selective full blocks"));
    CHECK_THAT(script, Catch::Contains("megatron-deepspeed"));
  }
  for (const OptionRow& row : option_rows()) {
    if (row.commands.bits == 0) continue;
    CHECK_THAT(completion_script("bash").value(), Catch::Contains(row.name));
  }
  CHECK(completion_script("fishe").error().hint == "did you mean fish?");
}

TEST_CASE("the page of all formats is up to date") {
  const std::string page = formats_page();
  const auto path = std::filesystem::path(TPSIM_SOURCE_DIR) / "docs/files.md";
  // To update: tpsim show formats > docs/files.md
  CHECK(page == read_file(path, 1 << 20).value());
}

TEST_CASE("the page of all families of models is up to date") {
  const std::string page = models_page(Catalogue::open().value()).value();
  const auto path = std::filesystem::path(TPSIM_SOURCE_DIR) / "docs/models.md";
  // To update: tpsim show families > docs/models.md
  CHECK(page == read_file(path, 1 << 20).value());
}

TEST_CASE("every key of every file has a meaning") {
  const std::map<std::string, std::string> keys = described_keys();
  CHECK(keys.size() > 900);
  for (const auto& [path, meaning] : keys) {
    CAPTURE(path, meaning);
    CHECK(!meaning.empty());
    CHECK_THAT(meaning, !Catch::Contains("|"));  // it would end the cell of the page's table
  }
  CHECK(keys.at("plan.model.blocks.others.mixer") == keys.at("model.extras.mixer"));
}

TEST_CASE("a schema names all that its kind of file must have, and a written file has it") {
  const Catalogue catalogue = Catalogue::open().value();
  const ClusterSpec cluster = catalogue.load_cluster("dgx-h100").value();
  const JsonValue written = parse_json(to_json(cluster), "it.json").value();
  const JsonValue schema = cluster_schema();
  const auto& properties = *schema.find("properties");
  for (const JsonValue& key : *schema.find("required")->as<JsonValue::Array>()) {
    CHECK(written.find(*key.as<std::string>()) != nullptr);
  }
  for (const JsonMember& member : *written.as<JsonValue::Object>()) {
    CHECK(properties.find(member.key) != nullptr);
  }
  CHECK(plan_schema().find("properties")->find("parts") != nullptr);  // present in few files
}

TEST_CASE("a series of sizes continues by its first factor or step") {
  const auto counts = [](const char* text) {
    Arguments arguments;
    arguments.set(Opt("--gpus"), text);
    return gpu_counts(arguments);
  };
  using Counts = std::vector<std::int64_t>;
  CHECK(counts("64,128,...,1024").value() == Counts{64, 128, 256, 512, 1024});
  CHECK(counts("8,16,24,...,48").value() == Counts{8, 16, 24, 32, 40, 48});
  CHECK(counts("16,8").value() == Counts{8, 16});
  for (const char* wrong :
       {"64,...,128", "64,128,...", "64,128,...,1000", "8-16,32", "128,64,...,512"}) {
    CAPTURE(wrong);
    CHECK_FALSE(counts(wrong).ok());
  }
}

TEST_CASE("a saved plan finds its cluster from wherever it is read") {
  const test::TemporaryFolder folder;
  const Catalogue catalogue = Catalogue::open().value();
  std::filesystem::create_directories(folder.path() / "plans");
  const auto cluster = folder.path() / "mine.json";
  REQUIRE(write_file_atomically(cluster, to_json(catalogue.load_cluster("dgx-h100").value())).ok());
  PlanFile file;
  file.model = catalogue.load_model("llama-2-7b").value();
  file.cluster = std::filesystem::relative(cluster).string();
  file.profile = "h100-sxm";
  file.stack = "megatron-lm";
  file.plan.stage_layers = {file.model.layers};
  REQUIRE(save_plan(folder.path() / "plans/a.json", file).ok());
  std::filesystem::rename(folder.path() / "plans", folder.path() / "moved");
  const PlanFile back = read_plan(folder.path() / "moved/a.json").value();
  CHECK(catalogue.load_cluster(back.cluster).ok());
  CHECK(back.profile == "h100-sxm");
  // If the cluster file is missing, the error names its expected path and the plan that needs it.
  std::filesystem::remove(cluster);
  const PlanFile lost = read_plan(folder.path() / "moved/a.json").value();
  Arguments arguments;
  arguments.command = Command::kSimulate;
  const auto scenario = load_scenario(arguments, lost);
  REQUIRE_FALSE(scenario.ok());
  CHECK(scenario.error().where == cluster.string());
  CHECK_THAT(
      scenario.error().hint,
      Catch::Contains(
          "the plan file refers to this file: restore it, or give another one with --cluster"));
}

TEST_CASE("a shipped table of runs is found by name, a file by path") {
  const Catalogue catalogue = Catalogue::open().value();
  CHECK(catalogue.find_runs("bloom_jean_zay").value().filename() == "bloom_jean_zay.csv");
  CHECK(catalogue.find_runs("lucie_jean_zay").value().filename() == "lucie_jean_zay.csv");
  CHECK(catalogue.find_runs("runs.csv").value() == "runs.csv");
  CHECK(catalogue.find_runs("bloom_jean_zai").error().hint == "did you mean bloom_jean_zay?");
}

TEST_CASE("a model may be a folder, and other folders are refused") {
  const test::TemporaryFolder folder;
  const Catalogue catalogue = Catalogue::open().value();
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  std::filesystem::create_directory("mine");
  const std::string model = to_json(catalogue.load_model("llama-3-8b").value());
  REQUIRE(write_file_atomically("mine/config.json", model).ok());
  CHECK(catalogue.load_model("mine").value().layers == 32);
  REQUIRE(write_file_atomically("config.json", R"({"hidden_size": 4096})").ok());
  const auto none = catalogue.load_model(".");
  std::filesystem::current_path(here);
  REQUIRE_FALSE(none.ok());
  CHECK_THAT(none.error().message, Catch::Contains("neither Hugging Face's key 'model_type'"));
  CHECK_THAT(catalogue.load_model("nothing-like-it").error().hint,
             Catch::StartsWith("tpsim list models shows all"));
}

TEST_CASE("a search for cost or energy shows the minimized quantity") {
  const Arguments asked = arguments_of({"plan", "--model", "llama-2-7b", "--cluster", "dgx-a100",
                                        "--gpus", "16", "--global-batch", "64"});
  const NamedScenario named = load_scenario(asked, std::nullopt).value();
  const double price = app::load_assumptions({}, named).value()[Assumption::kPrice];
  SearchSpace space = search_space(asked, named.scenario, std::nullopt).value();
  for (const Objective objective : {Objective::kCost, Objective::kEnergy}) {
    space.objective = objective;
    const SearchResult found = search(named.scenario, space, 5, {}).value();
    REQUIRE(found.scores.size() == found.plans.size());
    const UsedColumns used = used_columns(named, space, found);
    REQUIRE(used.columns.size() == 1);
    const bool by_cost = objective == Objective::kCost;
    CHECK(used.columns[0].title == (by_cost ? "USD/Gtoken" : "kWh/Gtoken"));
    const std::vector<std::string>& least = used.columns[0].cells;
    CHECK(std::is_sorted(least.begin(), least.end(),
                         [](const auto& a, const auto& b) { return std::stod(a) < std::stod(b); }));
    const PlannedRun& best = found.plans.front();
    const double hours =
        static_cast<double>(gpu_count(best.plan)) * 1e9 / best.predicted.tokens_per_s / 3600;
    if (by_cost) CHECK(std::stod(least.front()) == Approx(price * hours).margin(0.006));
    // Waiting GPUs draw less than working ones, which draw 400 W.
    if (!by_cost) CHECK(std::stod(least.front()) < 0.4 * hours);
    if (!by_cost) CHECK(std::stod(least.front()) > 0.3 * hours);
  }
  NamedScenario own = named;
  own.cluster = "mine.json";
  space.objective = Objective::kCost;
  const SearchResult found = search(own.scenario, space, 2, {}).value();
  CHECK(used_columns(own, space, found).note == fmt::format("; USD at {:g} a GPU-hour", price));
  CHECK(used_columns(own, space, found).columns.front().title == "USD/Gtoken");
}

TEST_CASE("files that changed since a plan was saved are named") {
  const test::TemporaryFolder folder;
  const Catalogue catalogue = Catalogue::open().value();
  ClusterSpec cluster = catalogue.load_cluster("dgx-h100").value();
  const auto mine = (folder / "mine.json").string();
  REQUIRE(write_file_atomically(mine, to_json(cluster)).ok());
  PlanFile file;
  file.model = catalogue.load_model("llama-2-7b").value();
  file.cluster = mine;
  file.profile = "h100-sxm";
  file.stack = "megatron-core";
  file.plan.stage_layers = {file.model.layers};
  REQUIRE(save_with_contents(folder / "plan.json", file).ok());
  const PlanFile saved = read_plan(folder / "plan.json").value();
  CHECK(saved.contents.profile.starts_with("fnv1a:"));
  CHECK(changed_contents({.file = saved}, catalogue).empty());
  // A different layout of the same JSON does not count as a change.
  std::string text = read_file(mine, 1 << 20).value();
  std::replace(text.begin(), text.end(), '\n', ' ');
  REQUIRE(write_file_atomically(mine, text).ok());
  CHECK(changed_contents({.file = saved}, catalogue).empty());
  cluster.inter_node.bandwidth *= 0.5;
  REQUIRE(write_file_atomically(mine, to_json(cluster)).ok());
  CHECK(changed_contents({.file = saved}, catalogue) ==
        std::vector<std::string>{"cluster " + mine});
  PlanFile silent = saved;
  silent.contents = {};
  CHECK(changed_contents({.file = silent}, catalogue).empty());
}

TEST_CASE("a step with one change is explained by this change first") {
  Scenario scenario;
  const Catalogue catalogue = Catalogue::open().value();
  scenario.model = catalogue.load_model("llama-3-8b").value();
  scenario.cluster = catalogue.load_cluster("dgx-h100").value();
  scenario.profile = catalogue.load_profile("h100-sxm").value();
  scenario.stack = catalogue.load_stack("megatron-core").value();
  Plan plan;
  plan.degrees = {.tp = 4, .pp = 1, .dp = 4};
  plan.global_batch = 32;
  plan.attention = AttentionKind::kFlash;
  plan.recompute = Recompute::kNone;
  plan.stage_layers = {32};
  const Seconds predicted = simulate(scenario, plan)->step;
  const auto first = [&](const Scenario& changed) {
    const Seconds step = simulate(changed, plan)->step;
    return likely_causes(scenario, scenario.stack, plan, predicted, step, CauseClass::kAny)
        .value()
        .front()
        .what;
  };
  struct Change {
    StackPart part;
    std::int64_t value;
    const char* word;
  };
  for (const Change& change :
       {Change{StackPart::kActivationKernel, static_cast<std::int64_t>(ActivationKernel::kTorch),
               "activation_kernel=torch"},
        Change{StackPart::kRotaryKernel, static_cast<std::int64_t>(RotaryKernel::kTorch),
               "rotary_kernel=torch"},
        Change{StackPart::kBlockingLaunches, 1, "blocking_launches=on"}}) {
    Scenario changed = scenario;
    changed.stack = with_parts(scenario.stack, {{change.part, change.value}});
    CHECK(first(changed) == change.word);
  }
  Scenario slow = scenario;
  slow.cluster.inter_node.bandwidth *= 0.25;
  CHECK(first(slow) == "links between nodes at a quarter of their bandwidth");
}

TEST_CASE("logs are read from compressed files") {
  const test::TemporaryFolder folder;
  const std::string text(100000, 'x');
  REQUIRE(write_file_atomically(folder / "it.log", text).ok());
  REQUIRE(std::system(fmt::format("gzip -k '{}'", (folder / "it.log").string()).c_str()) == 0);
  CHECK(read_log_text((folder / "it.log").string()).value() == text);
  CHECK(read_log_text((folder / "it.log.gz").string()).value() == text);
  REQUIRE(write_file_atomically(folder / "bad.gz", "\x1f\x8b garbage that is not gzip").ok());
  CHECK_FALSE(read_log_text((folder / "bad.gz").string()).ok());
}

}  // namespace tpsim::cli
