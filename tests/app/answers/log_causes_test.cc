// If the logged step equals a prediction with one change, check-log lists this change first.

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/base/files.h"
#include "sim/step/simulate.h"
#include "tests/cli/typed_answers.h"
#include "tests/sim/small_scenario.h"
#include "tests/temporary_folder.h"

namespace tpsim::cli {
namespace {

std::string first_cause(const Scenario& believed, const Scenario& truth, const Plan& plan) {
  const Seconds predicted = simulate(believed, plan)->step;
  const Seconds measured = simulate(truth, plan)->step;
  REQUIRE(measured > 1.005 * predicted);
  const auto causes =
      likely_causes(believed, believed.stack, plan, predicted, measured, CauseClass::kAny);
  REQUIRE(causes.ok());
  REQUIRE_FALSE(causes->empty());
  return causes->front().what;
}

}  // namespace

TEST_CASE("a log written with one part changed is explained by that part first") {
  Scenario believed = test::small_scenario(test::small_llama());
  believed.stack.parts.overlap_p2p = true;
  const Plan plan = test::plan_of(believed.model, {.tp = 2, .pp = 2, .dp = 4}, 8);
  for (const auto& [part, value] :
       {std::pair{StackPart::kNormKernel, static_cast<std::int64_t>(KernelFusion::kTorch)},
        std::pair{StackPart::kActivationKernel,
                  static_cast<std::int64_t>(ActivationKernel::kTorch)}}) {
    Scenario truth = believed;
    truth.stack = with_parts(truth.stack, {{part, value}});
    const PartRow& row = row_of(part);
    INFO(text_of(row, value));  // values with equal cost for these plans also count as first
    CHECK(first_cause(believed, truth, plan).starts_with(std::string(row.key) + "="));
  }
}

TEST_CASE("a slow link is named by its share") {
  const Scenario believed = test::small_scenario(test::small_llama());
  const Plan plan = test::plan_of(believed.model, {.tp = 1, .pp = 1, .dp = 16}, 2);
  Scenario truth = believed;
  truth.cluster.inter_node.bandwidth *= 0.5;
  CHECK(first_cause(believed, truth, plan) == "links between nodes at a half of their bandwidth");
}

TEST_CASE("an unbalanced expert load is named") {
  const Scenario believed = test::small_scenario(test::small_mixture());
  Plan plan = test::plan_of(believed.model, {.tp = 1, .pp = 1, .dp = 4}, 2);
  plan.degrees.ep = 4;
  Scenario truth = believed;
  truth.stack.parts.expert_load = kNaturalLoad;
  CHECK(first_cause(believed, truth, plan).starts_with("expert_load="));
}

TEST_CASE("8-bit GEMMs that a run did not have are named") {
  Scenario believed = test::small_scenario(test::small_llama());
  believed.stack.launcher = Launcher::kTorchTitan;
  believed.profile.device.fp8_peak = 2 * believed.profile.device.matmul_peak;
  Plan plan = test::plan_of(believed.model, {.tp = 1, .pp = 1, .dp = 4}, 2);
  plan.zero = 3;
  plan.attention = AttentionKind::kFlash;
  plan.dtype = DType::kBFloat16;
  plan.precision = Precision::kFp8Current;
  Plan wide = plan;
  wide.precision = Precision::kNone;
  const Seconds predicted = simulate(believed, plan).value().step;
  const Seconds measured = simulate(believed, wide).value().step;
  const auto causes =
      likely_causes(believed, believed.stack, plan, predicted, measured, CauseClass::kAny).value();
  REQUIRE_FALSE(causes.empty());
  CHECK(causes.front().what == "precision=none");
}

TEST_CASE("a framework's runs have no cause that its files and its own stack lack") {
  const Catalogue catalogue = Catalogue::open().value();
  Scenario scenario;
  scenario.model = catalogue.load_model("llama-3-8b").value();
  scenario.cluster = catalogue.load_cluster("dgx-h100").value();
  scenario.profile = catalogue.load_profile("h100-sxm").value();
  scenario.stack = catalogue.load_stack("torchtitan").value();
  Plan plan;
  plan.degrees = {.tp = 2, .pp = 1, .dp = 32};
  plan.zero = 3;
  plan.global_batch = 64;
  plan.attention = AttentionKind::kFlash;
  plan.recompute = Recompute::kNone;
  plan.stage_layers = {32};
  const Seconds predicted = simulate(scenario, plan).value().step;
  for (const double factor : {0.8, 0.9, 1.1, 1.2, 1.5, 2.0}) {
    const auto causes = likely_causes(scenario, scenario.stack, plan, predicted, factor * predicted,
                                      CauseClass::kAny);
    for (const LikelyCause& cause : causes.value()) {
      CAPTURE(cause.what);
      CHECK_FALSE(cause.what.starts_with("attention_kernel=flash1"));
      CHECK_FALSE(cause.what.starts_with("pipeline_sends="));
      CHECK_FALSE(cause.what.starts_with("norm_kernel="));
    }
  }
}

namespace {

// A trace of three steps with consecutive kernels and the given seconds for each class.
std::string trace_of(Seconds products, Seconds attention, Seconds others, Seconds collectives,
                     Seconds step) {
  std::string text = "{\"distributedInfo\": {\"rank\": 0, \"world_size\": 16}, \"traceEvents\": [";
  const auto add = [&](const char* category, const std::string& name, double begin, double length) {
    text += fmt::format(
        R"({}{{"ph": "X", "cat": "{}", "name": "{}", "ts": {}, "dur": {}, "args": {{"device": 0}}}})",
        text.ends_with('[') ? "" : ",", category, name, begin, length);
  };
  for (int i = 0; i < 3; ++i) {
    const double length = 1e6 * step.value();
    double at = i * length;
    add("user_annotation", fmt::format("ProfilerStep#{}", i), at, length);
    for (const auto& [name, time] :
         {std::pair{"sm90_xmma_gemm", products}, std::pair{"flash_fwd_kernel", attention},
          std::pair{"vectorized_elementwise_kernel", others},
          std::pair{"ncclDevKernel_AllGather_RING_LL", collectives}}) {
      add("kernel", name, at, 1e6 * time.value());
      at += 1e6 * time.value();
    }
  }
  return text + "]}";
}

}  // namespace

TEST_CASE("a trace is compared with the terms of its plan, and the differing part is named") {
  const test::TemporaryFolder folder;
  const Catalogue catalogue = Catalogue::open().value();
  PlanFile file;
  file.model = catalogue.load_model("llama-3-8b").value();
  file.cluster = "dgx-h100";
  file.profile = "h100-sxm";
  file.stack = "megatron-core";
  file.plan.degrees = {.tp = 4, .pp = 1, .dp = 4};
  file.plan.global_batch = 32;
  file.plan.attention = AttentionKind::kFlash;
  file.plan.recompute = Recompute::kNone;
  file.plan.stage_layers = {32};
  Arguments asked;
  asked.command = Command::kCheckLog;
  asked.positional = (folder / "trace.json").string();
  const NamedScenario named = load_scenario(asked, file).value();
  const Prediction predicted = simulate(named.scenario, file.plan).value();
  const std::vector<KernelRow> rows = kernel_rows(KernelTimes{}, file.plan, predicted);
  REQUIRE(rows.size() == 5);
  Seconds sum;
  for (const KernelRow& row : rows) sum += row.predicted;
  CHECK(sum.value() == Approx(predicted.step.value()).epsilon(1e-9));

  const auto checked_with = [&](std::size_t slow, double factor) {
    std::vector<Seconds> times;
    for (const KernelRow& row : rows) times.push_back(row.predicted);
    const Seconds more = (factor - 1) * times[slow];
    times[slow] += more;
    REQUIRE(write_file_atomically(folder / "trace.json", trace_of(times[0], times[1], times[2],
                                                                  times[3], predicted.step + more))
                .ok());
    return check_log_answer(asked, file).value();
  };
  const CheckedLog same = checked_with(0, 1);
  CHECK(same.check.as_predicted());
  for (const KernelRow& row : same.kernel_rows) {
    INFO(row.what);
    CHECK(row.measured.value() == Approx(row.predicted.value()).margin(1e-5));
  }
  CHECK(checked_with(0, 2).check.findings.front().cause == GapCause::kSlowerCompute);
  CHECK(checked_with(3, 6).check.findings.front().cause == GapCause::kSlowerLinks);
  const CheckedLog slow = checked_with(3, 6);
  CHECK_THAT(slow.check.findings.front().evidence, Catch::StartsWith("exposed collectives"));

  file.plan.degrees.dp = 8;  // not the data-parallel degree of the trace
  const auto other = check_log_answer(asked, file);
  REQUIRE_FALSE(other.ok());
  CHECK_THAT(to_string(other.error()), Catch::Contains("16"));
}

namespace {

constexpr const char* kArguments[] = {"tensor_model_parallel_size ...................... 2",
                                      "world_size ................. 8",
                                      "micro_batch_size ................................ 1",
                                      "global_batch_size .......... 64",
                                      "num_layers ...................................... 32",
                                      "hidden_size ............. 4096",
                                      "num_attention_heads ............................. 32",
                                      "ffn_hidden_size ........ 11008",
                                      "seq_length ...................................... 4096",
                                      "swiglu ................. True",
                                      "max_position_embeddings ......................... 4096",
                                      "bf16 ................... True",
                                      "normalization ................................... RMSNorm",
                                      "vocab_size .......... 32000",
                                      "position_embedding_type ......................... rope",
                                      "add_bias_linear ................................. False",
                                      "untie_embeddings_and_output_weights ............. True"};

}  // namespace

TEST_CASE("arguments in the log that differ from the plan are the first cause") {
  const test::TemporaryFolder folder;
  std::string text;
  for (const char* const row : kArguments) text += fmt::format("  {}\n", row);
  Arguments asked;
  asked.command = Command::kCheckLog;
  asked.positional = (folder / "it.log").string();
  REQUIRE(write_file_atomically(asked.positional, text).ok());
  PlanFile file =
      arguments_in_log(import_request(asked).value(), open_log(asked.positional).value())
          .value()
          .value()
          .file;
  file.cluster = "dgx-h100";
  file.profile = "h100-sxm";
  const auto step_of = [&](const PlanFile& plan) {
    return simulate(load_scenario(asked, plan)->scenario, plan.plan).value().step;
  };
  const Seconds ran = step_of(file);
  file.plan.precision = Precision::kFp8;
  REQUIRE(ran > 1.2 * step_of(file));
  for (int i = 1; i < 9; ++i) {
    text += fmt::format(" iteration {}/ 9 | elapsed time per iteration (ms): {} |\n", i,
                        1e3 * ran.value());
  }
  REQUIRE(write_file_atomically(asked.positional, text).ok());
  const auto checked = check_log_answer(asked, file);
  if (!checked.ok()) FAIL(to_string(checked.error()));
  const std::vector<Finding>& findings = checked->check.findings;
  REQUIRE_FALSE(findings.empty());
  CHECK(findings.front().cause == GapCause::kOtherArguments);
  CHECK_THAT(findings.front().evidence, Catch::Contains("precision none instead of fp8"));
  for (const Finding& one : findings) CHECK(one.cause != GapCause::kUnexplained);

  const std::size_t heads = text.find("heads .............................");
  REQUIRE(heads != std::string::npos);
  text.replace(heads, 38, "heads ............................. 31");
  REQUIRE(write_file_atomically(asked.positional, text).ok());
  const auto broken = check_log_answer(asked, file);
  REQUIRE(broken.ok());
  CHECK_THAT(broken->check.findings.back().evidence,
             Catch::StartsWith("the log's arguments were not compared with the plan's: "));
  REQUIRE_FALSE(checked->likely.empty());
  CHECK(checked->likely.front().what == "precision=none");
}

TEST_CASE("a log's own arguments are found in coloured lines, and an error in them is reported") {
  const test::TemporaryFolder folder;
  const auto printed = [&](const std::string& text) {
    const std::string path = (folder / "it.log").string();
    REQUIRE(write_file_atomically(path, text).ok());
    Arguments asked;
    asked.command = Command::kCheckLog;
    asked.positional = path;
    asked.more = {(folder / "another.log").string()};  // calibrate accepts several logs
    return arguments_in_log(import_request(asked).value(), open_log(path).value());
  };
  std::string text;
  for (const char* const row : kArguments) text += fmt::format("\033[32m0:   {}\033[0m\r\n", row);
  const auto plan = printed(text);
  REQUIRE(plan.ok());
  REQUIRE(plan->has_value());
  CHECK((*plan)->file.plan.degrees.tp == 2);
  CHECK((*plan)->file.plan.global_batch == 64);
  CHECK((*plan)->file.model.name == "llama-2-7b");
  CHECK_FALSE(printed("iteration 3/ 9 |\n").value().has_value());
  const std::size_t heads = text.find("heads .............................");
  REQUIRE(heads != std::string::npos);
  const auto broken = printed(text.replace(heads, 35, "heads ............................. 31"));
  CHECK_FALSE(broken.ok());
  const std::string wide("\xff\xfei\0t\0\n\0", 8);
  REQUIRE(write_file_atomically(folder / "wide.log", wide).ok());
  CHECK(read_log_text((folder / "wide.log").string()).value() == "it\n");
}

}  // namespace tpsim::cli
