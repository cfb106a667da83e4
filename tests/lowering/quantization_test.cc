// Recipes of 8 and 4 bits: prices of GEMMs and casts, memory, and supported GPUs.
#include "lowering/passes/quantization.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "core/base/median.h"
#include "core/plan/rank_layout.h"
#include "core/scenario/catalogue.h"
#include "costs/collective_cost.h"
#include "costs/op_cost.h"
#include "sim/step/predict.h"
#include "sim/step/simulate.h"
#include "tests/test_label.h"

namespace tpsim {
namespace {

const Catalogue& catalogue() {
  static const Catalogue data(std::string(TPSIM_SOURCE_DIR) + "/data");
  return data;
}

OpRecord product(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {{OpKind::kMatmul, dtype, kTransposeB, {1, m, n, k}},
          2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
          0,
          test::kTest};
}

DType dtype_called(const std::string& name) {
  for (const DType type : {DType::kBFloat16, DType::kFloat8, DType::kFloat8Block, DType::kMxFloat8,
                           DType::kNvFloat4}) {
    if (name == name_of(type)) return type;
  }
  throw BugError("a type that no table has");
}

// LLaMA 3 8B on a cluster.
Scenario scenario_on(const std::string& cluster, const std::string& model = "llama-3-8b") {
  Scenario scenario;
  scenario.model = *catalogue().load_model(model);
  scenario.cluster = *catalogue().load_cluster(cluster);
  scenario.profile = *catalogue().load_profile(scenario.cluster.profile);
  scenario.stack = *catalogue().load_stack("nemo");
  return scenario;
}

Plan plan_for(const Scenario& scenario, Precision precision) {
  Plan plan;
  plan.degrees = {2, 1, 4};
  plan.sequence_parallel = true;
  plan.global_batch = 16;
  plan.recompute = Recompute::kNone;
  plan.attention = AttentionKind::kFlash;
  plan.precision = precision;
  plan.stage_layers = {scenario.model.layers};
  return plan;
}

Prediction predicted(const Scenario& scenario, const Plan& plan) {
  const Result<Prediction> result = simulate(scenario, plan);
  if (!result.ok()) FAIL(to_string(result.error()));
  return *result;
}

TEST_CASE("GEMMs of 16, 8 and 4 bits outside the profiles are predicted") {
  std::ifstream in(std::string(TPSIM_SOURCE_DIR) + "/tests/costs/held_out_newer.csv");
  std::map<std::string, OpCostModel> models;
  std::map<std::string, std::vector<double>> errors;
  for (std::string line; std::getline(in, line);) {
    if (line.front() == '#' || line.rfind("profile", 0) == 0) continue;
    std::istringstream cells(line);
    std::vector<std::string> fields;
    for (std::string cell; std::getline(cells, cell, ',');) fields.push_back(cell);
    const std::string& name = fields[0];
    if (!models.contains(name)) {
      Profile profile = *catalogue().load_profile(name);
      profile.burst_clocks = false;  // the tables were timed in bursts
      models.emplace(name, OpCostModel(profile));
    }
    const OpRecord op = product(dtype_called(fields[1]), std::stoll(fields[2]),
                                std::stoll(fields[3]), std::stoll(fields[4]));
    const OpPrice price = models.at(name).price(op);
    REQUIRE(price.source != PriceSource::kExact);
    errors[name + " " + fields[1]].push_back(
        std::abs(price.time.value() / std::stod(fields[5]) - 1));
  }
  REQUIRE(errors.size() >= 24);
  for (const auto& [table, of] : errors) {
    INFO(table << ": median " << upper_median(of) << " of " << of.size());
    CHECK(upper_median(of) < 0.08);
  }
}

TEST_CASE("fewer bits never make a modelled GEMM slower") {
  for (const char* name : {"h20", "rtx-4090", "rtx-5090", "mi325x", "h100-sxm", "gb200"}) {
    Profile profile = *catalogue().load_profile(name);
    profile.ops.clear();  // only the analytical model remains
    const OpCostModel model(profile);
    for (const std::int64_t m : {1, 17, 100, 512, 4096, 8192}) {
      for (const std::int64_t n : {8, 300, 1024, 5000, 16384}) {
        for (const std::int64_t k : {16, 200, 2048, 12288}) {
          Seconds wider = model.price(product(DType::kBFloat16, m, n, k)).time;
          for (const DType narrow : {DType::kFloat8, DType::kNvFloat4}) {
            if (matrix_peak(profile.device, narrow) <= FlopsPerSecond()) continue;
            INFO(name << " " << name_of(narrow) << " " << m << " " << n << " " << k);
            const Seconds time = model.price(product(narrow, m, n, k)).time;
            CHECK(time <= wider);
            wider = time;
          }
        }
      }
    }
  }
}

TEST_CASE("a slower measurement with fewer bits is used, with a note") {
  Profile profile = *catalogue().load_profile("h100-sxm");
  profile.burst_clocks = false;
  const OpRecord op = product(DType::kFloat8, 4104, 4104, 4104);
  CHECK(OpCostModel(profile).explain(op, 1).find("though") == std::string::npos);
  profile.ops.push_back({op.key, Seconds(1)});
  const OpCostModel model(profile);
  CHECK(model.price(op).time == Seconds(1));
  CHECK_THAT(model.explain(op, 1), Catch::Contains("although bf16 takes"));
}

TEST_CASE("8-bit GEMMs with sums outside the tensor cores are slower, but faster than 16 bits") {
  Profile profile = *catalogue().load_profile("h100-sxm");
  profile.burst_clocks = false;
  const OpCostModel model(profile);
  for (const std::int64_t n : {512, 2048, 8192}) {
    OpRecord op = product(DType::kFloat8, 8192, n, 8192);
    const Seconds fast = model.price(op).time;
    op.key.variant |= kSplitSums;
    const Seconds split = model.price(op).time;
    const double share = split / fast;
    CHECK(share > 1.04);
    CHECK(share < 1.12);
    CHECK(split < model.price(product(DType::kBFloat16, 8192, n, 8192)).time);
  }
}

TEST_CASE("only gradients with a scale per tensor sum outside the tensor cores") {
  const Scenario scenario = scenario_on("dgx-h100");
  const auto splits = [&](Precision precision, std::uint8_t layout) {
    QuantizedOperands rounded(scenario, plan_for(scenario, precision));
    OpRecord op = product(DType::kBFloat16, 1024, 512, 256);
    op.key.variant = layout;
    op.label = {ModelPart::kMlpLinear, "linear"};
    return (rounded.ops_for(op).back().key.variant & kSplitSums) != 0;
  };
  for (const Precision precision : {Precision::kFp8, Precision::kFp8Current}) {
    CHECK_FALSE(splits(precision, kTransposeB));
    CHECK(splits(precision, 0));
    CHECK(splits(precision, kTransposeA | kAccumulate));
  }
  CHECK_FALSE(splits(Precision::kFp8Block, 0));
  CHECK_FALSE(splits(Precision::kNone, 0));
}

TEST_CASE("NVFP4 passes: Hadamard transforms and stochastic rounding") {
  const Scenario scenario = scenario_on("dgx-b200");
  const auto passes = [&](std::uint8_t layout) {
    QuantizedOperands rounded(scenario, plan_for(scenario, Precision::kNvFp4));
    OpRecord op = product(DType::kBFloat16, 1024, 512, 256);
    op.key.variant = layout;
    op.label = {ModelPart::kMlpLinear, "linear"};
    std::vector<QuantizationPass> all;
    for (const OpRecord& run : rounded.ops_for(op)) {
      if (run.key.kind != OpKind::kCast) continue;
      all.push_back(static_cast<QuantizationPass>(dim_of(run.key, QuantizationDim::kPass)));
    }
    return all;
  };
  using Passes = std::vector<QuantizationPass>;
  CHECK(passes(kTransposeB) ==
        Passes{QuantizationPass::kAmax, QuantizationPass::kRows, QuantizationPass::kHadamard});
  CHECK(passes(0) == Passes{QuantizationPass::kAmax, QuantizationPass::kRowsStochastic,
                            QuantizationPass::kHadamardStochastic});
  CHECK(passes(kTransposeA).empty());  // reads operands quantized by the other two
}

TEST_CASE("quantizing the output costs differently after a norm and an activation") {
  Scenario scenario = scenario_on("dgx-h100");
  const auto moved = [&](Precision precision, ModelPart before) {
    const Plan plan = plan_for(scenario, precision);
    QuantizedOperands rounded(scenario, plan);
    rounded.ops_for({{OpKind::kAdd, DType::kBFloat16, 0, {1}}, 0, 0, {before, "before"}});
    OpRecord op = product(DType::kBFloat16, 1024, 512, 256);
    op.label = {ModelPart::kMlpLinear, "linear"};
    const std::vector<OpRecord> ops = rounded.ops_for(op);
    double bytes = 0;
    for (std::size_t i = 0; i + 1 < ops.size(); ++i) bytes += ops[i].bytes;
    return bytes / (1024 * 256);
  };
  // Reads 16 bits and writes 8 bits twice. After a norm, only the 8-bit transpose is added.
  CHECK(moved(Precision::kFp8, ModelPart::kActivation) == Approx(4));
  CHECK(moved(Precision::kFp8, ModelPart::kNorm) == Approx(2));
  CHECK(moved(Precision::kFp8Current, ModelPart::kActivation) == Approx(6));
  // Blackwell's tensor cores read both orientations.
  scenario = scenario_on("dgx-b200");
  CHECK(moved(Precision::kFp8, ModelPart::kActivation) == Approx(3));
  CHECK(moved(Precision::kFp8, ModelPart::kNorm) == 0);
  CHECK(moved(Precision::kMxFp8, ModelPart::kActivation) == Approx(4 + 2.0 / 32));
  CHECK(moved(Precision::kNvFp4, ModelPart::kActivation) == Approx(2 + 2 * (2 + 0.5625)));
}

// Memory traffic of kernels/cuda/linear/low_precision.cu: docs/cuda.md, 8-bit GEMMs.
TEST_CASE("GEMMs that quantize operands read each once, or twice with current scaling") {
  Scenario scenario = scenario_on("dgx-h100");
  scenario.stack = *catalogue().load_stack("reference");
  constexpr double kM = 1024, kN = 512, kK = 256;
  const auto moved = [&](Precision precision, std::uint8_t layout) {
    QuantizedOperands rounded(scenario, plan_for(scenario, precision));
    OpRecord op = product(DType::kBFloat16, 1024, 512, 256);
    op.key.variant = layout;
    op.label = {ModelPart::kMlpLinear, "linear"};
    const std::vector<OpRecord> ops = rounded.ops_for(op);
    double bytes = 0;
    for (std::size_t i = 0; i + 1 < ops.size(); ++i) bytes += ops[i].bytes;
    return bytes;
  };
  struct Case {
    Precision precision;
    double read, written;
  };
  for (const Case& one : {Case{Precision::kFp8, 2, 1}, Case{Precision::kFp8Current, 4, 1},
                          Case{Precision::kFp8Block, 2, bytes_per_element(DType::kFloat8Block)},
                          Case{Precision::kMxFp8, 2, bytes_per_element(DType::kMxFloat8)}}) {
    INFO(name_of(one.precision));
    const double once = one.read + one.written;
    CHECK(moved(one.precision, kTransposeB) == Approx(once * (kM * kK + kN * kK)));
    CHECK(moved(one.precision, 0) ==
          Approx((once + one.written) * kM * kK + once * kN * kK));  // both orientations at once
    CHECK(moved(one.precision, kTransposeA | kAccumulate) == Approx(once * kN * kK));
  }
  const CollectiveRecord gather{.kind = CollectiveKind::kAllGather,
                                .group = GroupKind::kTensor,
                                .ranks = 2,
                                .bytes = 1 << 20,
                                .label = test::kTest};
  QuantizedOperands fp8(scenario, plan_for(scenario, Precision::kFp8));
  CHECK(fp8.sent(gather).bytes == gather.bytes);
}

TEST_CASE("the reference keeps quantized operands, and fp8-block needs Hopper") {
  Scenario scenario = scenario_on("dgx-h100");
  scenario.stack = *catalogue().load_stack("reference");
  constexpr auto kActivations = static_cast<std::size_t>(MemoryCategory::kActivations);
  // The first of two stages has its peak in a block and not in the head.
  const auto of = [&](Precision precision) {
    Plan plan = plan_for(scenario, precision);
    plan.degrees = {2, 2, 2};
    plan.stage_layers = {16, 16};
    return predicted(scenario, plan);
  };
  const Prediction wide = of(Precision::kNone);
  for (const Precision precision :
       {Precision::kFp8, Precision::kFp8Current, Precision::kFp8Block}) {
    const Prediction narrow = of(precision);
    CHECK(narrow.memory[0].by_category[kActivations] > wide.memory[0].by_category[kActivations]);
  }
  CHECK(of(Precision::kFp8).step < of(Precision::kFp8Current).step);
  Scenario newer = scenario_on("dgx-b200");
  newer.stack = scenario.stack;
  CHECK(check_plan(newer, plan_for(newer, Precision::kMxFp8)).ok());
  const Status refused = check_plan(newer, plan_for(newer, Precision::kFp8Block));
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message, Catch::Contains("compute capability 9.0 only"));
}

TEST_CASE("gathers send the recipe's number of bits") {
  const Scenario scenario = scenario_on("dgx-b200");
  const CollectiveRecord gather{.kind = CollectiveKind::kAllGather,
                                .group = GroupKind::kTensor,
                                .ranks = 2,
                                .bytes = 1 << 20,
                                .label = test::kTest};
  QuantizedOperands none(scenario, plan_for(scenario, Precision::kNone));
  QuantizedOperands fp8(scenario, plan_for(scenario, Precision::kFp8));
  CHECK(none.sent(gather).bytes == gather.bytes);
  CHECK(fp8.sent(gather).bytes == gather.bytes / 2);
}

TEST_CASE("recipes with fewer bits make wide models faster and save activations") {
  const Scenario scenario = scenario_on("dgx-b200", "llama-3-70b");
  Plan plan = plan_for(scenario, Precision::kNone);
  plan.degrees = {8, 1, 1};
  plan.micro_batch = 4;  // kernels are long enough to hide the host time
  plan.global_batch = 8;
  const auto of = [&](Precision precision) {
    Plan with = plan;
    with.precision = precision;
    return predicted(scenario, with);
  };
  const Prediction wide = of(Precision::kNone), mxfp8 = of(Precision::kMxFp8);
  const Prediction nvfp4 = of(Precision::kNvFp4);
  CHECK(mxfp8.step < 0.85 * wide.step);
  CHECK(nvfp4.step < mxfp8.step);
  constexpr auto kActivations = static_cast<std::size_t>(MemoryCategory::kActivations);
  CHECK(mxfp8.memory[0].by_category[kActivations] < 0.9 * wide.memory[0].by_category[kActivations]);
}

TEST_CASE("8-bit weights need less memory than 16-bit weights with 8-bit copies") {
  const Scenario scenario = scenario_on("dgx-h100");
  Plan plan = plan_for(scenario, Precision::kFp8);
  const Prediction copies = predicted(scenario, plan);
  plan.fp8_param_gather = true;
  const Prediction alone = predicted(scenario, plan);
  constexpr auto kWeights = static_cast<std::size_t>(MemoryCategory::kWeights);
  CHECK(alone.memory[0].by_category[kWeights] < 0.6 * copies.memory[0].by_category[kWeights]);
  CHECK(alone.step <= copies.step);
}

TEST_CASE("a recipe is refused if the GPU lacks it, with the supported recipes") {
  const Scenario h20 = scenario_on("hgx-h20");
  const Status refused = check_plan(h20, plan_for(h20, Precision::kMxFp8));
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message, Catch::Contains("NVIDIA H20 has no mxfp8 GEMMs"));
  CHECK_THAT(refused.error().hint, Catch::Contains("fp8, fp8_block"));
  CHECK(check_plan(h20, plan_for(h20, Precision::kFp8)).ok());
  const Scenario b200 = scenario_on("dgx-b200");
  Plan plan = plan_for(b200, Precision::kNvFp4);
  CHECK(check_plan(b200, plan).ok());
  plan.fp8_param_gather = true;
  CHECK_FALSE(check_plan(b200, plan).ok());
}

TEST_CASE("jobs of several racks use 64 or 72 GPUs of each rack") {
  const ClusterSpec rack = *catalogue().load_cluster("gb200-nvl72");
  CHECK(node_size(rack, 8) == 72);
  CHECK(node_size(rack, 72) == 72);
  CHECK(node_size(rack, 144) == 72);
  CHECK(node_size(rack, 256) == 64);
  CHECK(host_size(rack) == 4);
  CHECK(host_size(*catalogue().load_cluster("dgx-b200")) == 8);
}

TEST_CASE("replicas in a rack reduce over NVLink, replicas on eight nodes over the network") {
  Plan plan;
  plan.degrees = {8, 1, 8};
  const auto reduction = [&](const std::string& name) {
    const ClusterSpec cluster = *catalogue().load_cluster(name);
    const GroupPlacement placement =
        place_group(plan, GroupKind::kData, node_size(cluster, gpu_count(plan)));
    const CollectiveCostModel model(*catalogue().load_profile(cluster.profile), cluster);
    return std::pair{placement.nodes,
                     model.price(CollectiveKind::kReduceScatter, Bytes(1 << 28), placement)};
  };
  const auto [racks, inside] = reduction("gb200-nvl72");
  const auto [nodes, across] = reduction("dgx-b200");
  CHECK(racks == 1);
  CHECK(nodes == 8);
  CHECK(inside < 0.2 * across);
}

}  // namespace
}  // namespace tpsim
