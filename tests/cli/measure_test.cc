// Profile, plan, validate and a single rank, end to end on a tiny model.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/json/json_document.h"
#include "core/machine/profile_json.h"

namespace tpsim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModel = R"({
  "format": "tpsim-model/1", "name": "tiny", "source": "a test", "layers": 2, "hidden": 64,
  "ffn_hidden": 256, "vocab": 128, "seq": 32,
  "attention": {"heads": 4, "kv_heads": 4, "head_dim": 16, "position": "alibi"},
  "norm": "layer_norm", "mlp": "gelu", "linear_bias": true, "fused_qkv": true,
  "tied_embedding": true, "embedding_norm": true, "residual_from_after_norm": false,
  "norm_epsilon": 1e-05, "initializer_range": 0.02})";

class Workplace {
 public:
  Workplace() : folder_(fs::temp_directory_path() / ("tpsim_measure_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    std::ofstream(folder_ / "model.json") << kModel;
  }
  ~Workplace() { fs::remove_all(folder_); }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  fs::path path(const char* name) const { return folder_ / name; }
  // Runs `tpsim arguments` with the output in a file; returns the exit code.
  int tpsim(const std::string& arguments, const char* output) const {
    return run(TPSIM_BINARY_DIR "/tpsim " + arguments, output);
  }
  // All ranks on one core.
  int tpsim_on_a_core(const std::string& arguments, const char* output) const {
    return run("taskset -c 0 " TPSIM_BINARY_DIR "/tpsim " + arguments, output);
  }
  int mpirun(int ranks, const std::string& arguments, const char* output) const {
    return run("mpirun -q --oversubscribe --allow-run-as-root -n " + std::to_string(ranks) +
                   " " TPSIM_BINARY_DIR "/tpsim " + arguments,
               output);
  }
  // Returns the exit code of any command, with its output in a file.
  int shell(const std::string& command, const char* output) const { return run(command, output); }
  // Lines of an output that hold `text`.
  int lines(const char* output, const std::string& text) const {
    std::ifstream file(path(output));
    int count = 0;
    for (std::string line; std::getline(file, line);) {
      if (line.find(text) != std::string::npos) ++count;
    }
    return count;
  }
  double number(const char* report, const char* key) const {
    const auto json = read_json_file(path(report));
    REQUIRE(json.ok());
    const JsonValue* value = json->find(key);
    REQUIRE(value != nullptr);
    if (const auto* whole = value->as<std::int64_t>()) return static_cast<double>(*whole);
    return *value->as<double>();
  }

 private:
  // JSON files get standard output only: launchers print warnings on standard error.
  int run(const std::string& command, const char* output) const {
    const bool is_json = fs::path(output).extension() == ".json";
    const std::string line = "cd " + folder_.string() + " && " + command + " > " + output +
                             (is_json ? " 2> errors.txt" : " 2>&1");
    return WEXITSTATUS(std::system(line.c_str()));
  }

  fs::path folder_;
};

}  // namespace

TEST_CASE("a plan is profiled, predicted, run and compared on this machine") {
  const Workplace here;
  constexpr const char* kLayout =
      "--model model.json --global-batch 4 --tp 2 --dtype fp32 --recompute none";
  REQUIRE(here.tpsim(std::string("profile --gpus 2 --micro-batch 1 --quick --attention unfused "
                                 "--sequence-parallel off -o profile.json ") +
                         kLayout,
                     "profile.txt") == 0);
  const auto profile = read_profile(here.path("profile.json"));
  REQUIRE(profile.ok());
  CHECK(profile->provenance == Provenance::kMeasuredHere);
  CHECK(profile->machine.devices >= 1);
  CHECK(profile->ops.size() > 30);
  if (profile->machine.devices < 2) {
    WARN("skipped: one core has no two ranks");
    return;
  }

  REQUIRE(here.tpsim(std::string("simulate --profile profile.json --save plan.json ") + kLayout,
                     "simulate.txt") == 0);
  REQUIRE(here.tpsim("validate plan.json --steps 6 --json", "validate.json") == 0);
  CHECK(here.number("validate.json", "measured_step_s") > 0);
  CHECK(here.number("validate.json", "warm_up_steps") == 2);
  CHECK(here.number("validate.json", "least_step_s") <=
        here.number("validate.json", "measured_step_s"));
  // Two ranks that share a core slow the step, and the report states it.
  REQUIRE(here.tpsim_on_a_core("validate plan.json --steps 6", "busy.txt") == 0);
  CHECK(here.lines("busy.txt", "cores   2 ranks share 1 core") == 1);
  CHECK(here.lines("busy.txt", "median of 4 steps, the shortest") == 1);
  CHECK(here.lines("busy.txt", "excludes 2 warm-up steps") == 1);
  CHECK(here.number("validate.json", "accounted_pct") > 0);  // depends on the load
  CHECK(here.number("validate.json", "accounted_pct") <= 100);

  // A plan that exceeds the machine's memory is refused before it starts.
  REQUIRE(here.tpsim("simulate --model bloom-176b --tp 4 --pp 12 --dp 8 --recompute full "
                     "--save big.json",
                     "a.txt") == 0);
  for (const char* command : {"validate big.json", "run big.json --steps 1"}) {
    CHECK(here.tpsim(command, "refused.txt") == 3);
    CHECK(here.lines("refused.txt", "error: 384 ranks of tp4 pp12 dp8") == 1);
    CHECK(here.lines("refused.txt", "--rank R runs one rank alone") == 1);
  }
  // A single rank is refused too: for its weights, and for its activations.
  for (const char* plan : {"--tp 1 --pp 1 --micro-batch 1", "--tp 8 --pp 12 --micro-batch 65536"}) {
    CHECK(here.tpsim(
              std::string("run --model bloom-176b --global-batch 65536 --rank 0 --steps 1 ") + plan,
              "refused.txt") == 3);
    CHECK(here.lines("refused.txt", "error: rank 0 of tp") == 1);
    CHECK(here.lines("refused.txt", "are free (") == 1);
  }

  REQUIRE(here.tpsim("run plan.json --rank 1 --steps 4 --json", "rank.json") == 0);
  CHECK(here.number("rank.json", "peak_memory_gib") ==
        Approx(here.number("rank.json", "predicted_peak_memory_gib")).epsilon(0.02));
}

TEST_CASE("processes of mpirun profile their own collectives into one file, and run the plan",
          "[mpirun]") {
  const Workplace here;
  constexpr const char* kLayout =
      "--model model.json --global-batch 4 --tp 2 --dtype fp32 --recompute none";
  REQUIRE(here.mpirun(2,
                      std::string("profile --gpus 2 --micro-batch 1 --quick --attention unfused "
                                  "--sequence-parallel off -o profile.json ") +
                          kLayout,
                      "profile.txt") == 0);
  const auto profile = read_profile(here.path("profile.json"));
  REQUIRE(profile.ok());
  CHECK(profile->source.find("as processes of a launcher") != std::string::npos);
  CHECK(profile->ops.size() > 30);
  REQUIRE_FALSE(profile->collectives.empty());
  for (const CollectiveSample& sample : profile->collectives) CHECK(sample.ranks == 2);
  CHECK(here.lines("profile.txt", "wrote profile.json") == 1);
  CHECK(here.lines("profile.txt", "\033[") == 0);  // no colours under mpirun

  REQUIRE(here.tpsim(std::string("simulate --profile profile.json --save plan.json ") + kLayout,
                     "simulate.txt") == 0);
  REQUIRE(here.mpirun(2, "validate plan.json --steps 6 --json", "validate.json") == 0);
  CHECK(here.number("validate.json", "measured_step_s") > 0);
  CHECK(here.number("validate.json", "accounted_pct") > 0);
  CHECK(here.number("validate.json", "accounted_pct") <= 100);
  const auto report = read_json_file(here.path("validate.json"));
  REQUIRE(report.ok());
  CHECK(report->find("memory")->as<JsonValue::Array>()->size() == 1);

  CHECK(here.shell("mpirun -q --oversubscribe --allow-run-as-root"
                   " -n 1 env TPSIM_NVLINK_DOMAIN=rack-1 " TPSIM_BINARY_DIR
                   "/tpsim profile --quick -o p.json :"
                   " -n 1 env TPSIM_NVLINK_DOMAIN=rack-2 " TPSIM_BINARY_DIR
                   "/tpsim profile --quick -o p.json",
                   "domains.txt") == 2);
  CHECK(here.lines("domains.txt", "ranks were started on several hosts: rack-1 and rack-2") == 1);

  CHECK(here.mpirun(3, "validate plan.json", "refused.txt") == 2);
  CHECK(here.lines("refused.txt",
                   "but 3 processes were started (start the ranks with mpirun -n 2)") == 1);
}

}  // namespace tpsim
