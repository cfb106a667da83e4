// The predicted memory of a run: compared with the CPU device's measured memory, and with machines
// of any size.
#include "devices/memory_check.h"

#include <catch2/catch.hpp>

#include "devices/reserved_memory.h"
#include "kernels/cpu/cpu_device.h"
#include "ranks/threads/thread_world.h"
#include "reference_model/training/training.h"
#include "tests/cli/typed_answers.h"

namespace tpsim::cli {
namespace {

constexpr const char* kModel = "tests/golden/llama-tiny/config.json";

using Options = std::vector<std::pair<Opt, std::string>>;

struct Case {
  NamedScenario named;
  Plan plan;
};

Case case_of(const Options& options) {
  Arguments arguments;
  arguments.command = Command::kRun;
  arguments.set(Opt("--model"), std::string(TPSIM_SOURCE_DIR) + "/" + kModel);
  arguments.set(Opt("--seq"), "64");
  arguments.set(opt_of(Setting::kDtype), "fp32");
  for (const auto& [option, value] : options) arguments.set(option, value);
  Case one;
  ScenarioRequest request = *scenario_request(arguments, std::nullopt);
  request.defaults.stack = "reference";
  one.named = *load_scenario(request);
  one.plan = *single_plan(arguments, one.named.scenario.model, std::nullopt,
                          plan_defaults(one.named.scenario));
  return one;
}

// The CPU of this machine with another amount of free memory.
LocalDevices with_memory(Bytes free) {
  LocalDevices devices = *cpu_devices();
  devices.free_memory = [free](const Device*) { return FreeMemory{free, "the test"}; };
  return devices;
}

// Peak bytes of the CPU device of each rank.
std::vector<std::int64_t> measured(const Case& one) {
  TrainingRun run;
  run.model = one.named.scenario.model;
  run.plan = one.plan;
  run.options = one.named.scenario.stack.training;
  run.steps = 3;
  const TokenSource tokens = TokenSource::synthetic(run.model.seq, run.model.vocab, 1);
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(gpu_count(run.plan)));
  const Status status = run_on_threads(static_cast<int>(bytes.size()), [&](World& world) -> Status {
    TPSIM_TRY(const auto device, CpuDevice::create());
    TPSIM_TRY_STATUS(train(world, *device, run, tokens, [](const StepReport&) {}));
    bytes[static_cast<std::size_t>(world.rank())] = device->memory().peak_reserved_bytes();
    return Ok{};
  });
  REQUIRE(status.ok());
  return bytes;
}

const Options kLarge = {{opt_of(Setting::kGlobalBatch), "32"},
                        {opt_of(Setting::kMicroBatch), "8"},
                        {opt_of(Setting::kDp), "2"},
                        {opt_of(Setting::kRecompute), "none"}};

}  // namespace

TEST_CASE("the memory of ranks on a CPU is known before they start") {
  for (const Options& options : std::vector<Options>{
           {{opt_of(Setting::kGlobalBatch), "8"}, {opt_of(Setting::kMicroBatch), "1"}},
           {{opt_of(Setting::kGlobalBatch), "32"},
            {opt_of(Setting::kTp), "2"},
            {opt_of(Setting::kPp), "2"},
            {opt_of(Setting::kRecompute), "full"}},
           {{opt_of(Setting::kGlobalBatch), "24"},
            {opt_of(Setting::kPp), "2"},
            {opt_of(Setting::kDp), "2"},
            {opt_of(Setting::kOffload), "optimizer"}}}) {
    const Case one = case_of(options);
    INFO(short_name(one.plan));
    const std::vector<std::int64_t> took = measured(one);
    for (std::size_t rank = 0; rank < took.size(); ++rank) {
      INFO("rank " << rank);
      const Bytes known =
          host_memory_of(one.named.scenario.model, with_few_micro_batches(one.plan),
                         one.named.scenario.stack.training, static_cast<std::int64_t>(rank));
      CHECK(known.value() >= static_cast<double>(took[rank]));
      CHECK(known.value() <= 1.1 * static_cast<double>(took[rank]));
    }
  }
}

TEST_CASE("a run starts on a machine with just enough memory, and on none with less") {
  const Case one = case_of(kLarge);
  const LocalDevices none = with_memory(Bytes());
  const Status refused = MemoryCheck::of(one.named, none)->threads(one.plan);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == ErrorKind::kDoesNotFit);
  CHECK(refused.error().message.find("2 ranks of") != std::string::npos);
  CHECK(refused.error().message.find("0 B are free (the test)") != std::string::npos);
  CHECK(refused.error().hint.find("a machine with more memory") != std::string::npos);

  Bytes needed;
  for (const std::int64_t rank : {0, 1}) {
    needed += host_memory_of(one.named.scenario.model, with_few_micro_batches(one.plan),
                             one.named.scenario.stack.training, rank);
  }
  const LocalDevices enough = with_memory(needed);
  CHECK(MemoryCheck::of(one.named, enough)->threads(one.plan).ok());
  const LocalDevices less = with_memory(needed - Bytes(1));
  const Status nearly = MemoryCheck::of(one.named, less)->threads(one.plan);
  REQUIRE_FALSE(nearly.ok());
  CHECK(nearly.error().hint.starts_with("with --recompute full the plan fits: it needs "));
  CHECK(nearly.error().hint.ends_with("--rank R runs one rank alone"));
}

TEST_CASE("one rank alone needs its own memory") {
  const Case one = case_of(kLarge);
  const auto device = CpuDevice::create();
  REQUIRE(device.ok());
  const Bytes needed = host_memory_of(one.named.scenario.model, with_few_micro_batches(one.plan),
                                      one.named.scenario.stack.training, 1);
  const LocalDevices enough = with_memory(needed);
  CHECK(MemoryCheck::of(one.named, enough)->rank_alone(**device, one.plan, 1).ok());
  const LocalDevices less = with_memory(needed / 2);
  const Status refused = MemoryCheck::of(one.named, less)->rank_alone(**device, one.plan, 1);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == ErrorKind::kDoesNotFit);
  CHECK(refused.error().message.starts_with("rank 1 of "));
  CHECK(refused.error().hint.find("micro-batch 1") != std::string::npos);
}

}  // namespace tpsim::cli
