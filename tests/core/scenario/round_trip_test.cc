// Every file kind reads back what was written, exactly, with every field away from its default.
#include <catch2/catch.hpp>

#include "core/json/json_document.h"
#include "core/machine/cluster_json.h"
#include "core/machine/profile_json.h"
#include "core/model/model_json.h"
#include "core/scenario/plan_json.h"
#include "core/software/stack_json.h"
#include "tests/core/scenario/field_count.h"

namespace tpsim {
namespace {

// A new field needs a key in core/*_json.cc and a value below, or files lose it in silence.
static_assert(field_count<ModelSpec>() == 31);  // one of them its own block
static_assert(field_count<BlockShape>() == 5);
static_assert(field_count<AttentionShape>() == 14);
static_assert(field_count<ExpertShape>() == 10);
static_assert(field_count<RecurrentShape>() == 7);
static_assert(field_count<ParallelDegrees>() == 6);
static_assert(field_count<ClusterSpec>() == 18);
static_assert(field_count<LinkSpec>() == 4);
static_assert(field_count<HostSpec>() == 6);
static_assert(field_count<StackSpec>() == 26);
static_assert(field_count<CalibrationFacts>() == 7);
static_assert(field_count<TrainingOptions>() == 14);
static_assert(field_count<HostCost>() == 13);
static_assert(std::tuple_size_v<decltype(times_of(std::declval<HostCost&>()))> ==
              field_count<HostCost>());
static_assert(field_count<StackMemory>() == 10);
static_assert(field_count<StackChoices>() == 3);
static_assert(field_count<Profile>() == 14);
static_assert(field_count<RuntimeFacts>() == 10);
static_assert(field_count<AlgorithmChoices>() == 2);
static_assert(field_count<MachineFacts>() == 3);
static_assert(field_count<DeviceFacts>() == 12);
static_assert(field_count<DeviceModel>() == 15);
static_assert(field_count<AttentionSpeeds>() == 4);
static_assert(field_count<SoftwareParts>() == 27);
static_assert(field_count<MatmulTuning>() == 9);
static_assert(field_count<OpSample>() == 4);
static_assert(field_count<CollectiveSample>() == 4);
static_assert(field_count<Plan>() == 17);
static_assert(field_count<PlanFile>() == 10);
static_assert(field_count<PlanContents>() == 3);

// Numbers that no short decimal fraction equals.
constexpr double kThird = 1.0 / 3;

ModelSpec odd_model() {
  ModelSpec model;
  model.name = "odd \"name\"";
  model.source = "źródło";
  model.usual = {"somewhere", 77};
  model.layers = 6;
  model.hidden = 30;
  model.ffn_hidden = 78;
  model.vocab = 12345;
  model.seq = 36;
  model.attention = {12, 4, 10, PositionKind::kRotary, 500000.0 * kThird};
  model.norm = NormKind::kRmsNorm;
  model.mlp = MlpKind::kSwiglu;
  model.experts = {9, 4, 4 * kThird};
  model.experts.latent = 12;
  model.experts.counts.assign(18, kThird);
  model.linear_bias = false;
  model.fused_qkv = false;
  model.tied_embedding = false;
  model.vocab_multiple = 64;
  model.embedding_norm = true;
  model.residual_from_after_norm = true;
  model.attention_dropout = 0.1 * kThird;
  model.hidden_dropout = 0.2 * kThird;
  model.norm_epsilon = 1e-6 * kThird;
  model.initializer_range = 0.1 * kThird;
  return model;
}

Plan odd_plan() {
  Plan plan;
  plan.degrees = {2, 2, 3, 6, 3, 1};
  plan.virtual_stages = 2;
  plan.zero = 2;
  plan.micro_batch = 2;
  plan.global_batch = 24;
  plan.sequence_parallel = true;
  plan.recompute = Recompute::kBlocks;
  plan.recompute_blocks = 2;
  plan.offload = Offload::kOptimizer;
  plan.attention = AttentionKind::kUnfused;  // the flash core has no dropout
  plan.schedule = ScheduleKind::kInterleaved;
  plan.dtype = DType::kFloat16;
  plan.gradient_dtype = DType::kBFloat16;
  plan.rank_order = RankOrder::kTpPpDp;
  plan.stage_layers = {1, 2, 0, 3};
  return plan;
}

StackSpec odd_stack() {
  StackSpec stack;
  stack.name = "odd";
  stack.source = "a test";
  stack.training = {.gradient_reduction = GradientReduction::kAllReduce,
                    .fused_gradient_accumulation = false,
                    .overwritten_gradients = false,
                    .widened_optimizer_gradients = true,
                    .gradient_sync = GradientSync::kLastInPipeline,
                    .reduce_dtype = ReduceDtype::kAsAddedUp,
                    .overlap_gradient_reduction = true,
                    .overlap_parameter_gather = true,
                    .overlap_tensor_reduction = true,
                    .tp_recompute_allgather = false,
                    .clip_gradients = false,
                    .wide_logits = true,
                    .online_loss = true,
                    .scatter_gather_transfers = false};
  stack.host = {.per_op = Seconds(kThird * 1e-6),
                .per_collective = Seconds(2e-6),
                .per_block_forward = Seconds(0.7e-3),
                .per_block_backward = Seconds(kThird),
                .per_routing_forward = Seconds(1.5e-3),
                .per_routing_backward = Seconds(2.5e-3),
                .per_expert_forward = Seconds(80e-6),
                .per_expert_backward = Seconds(120e-6),
                .per_transfer = Seconds(7e-3),
                .per_micro_batch = Seconds(0),
                .per_step = Seconds(12),
                .blocking_op = Seconds(3e-6),
                .blocking_collective = Seconds(4e-4)};
  // Every part another than its first value; all-reduce is as the training above says.
  for (const PartRow& row : part_rows()) row.set(stack, row.words.back().value);
  row_of(StackPart::kShardGroup).set(stack, 16);
  row_of(StackPart::kExpertLoad).set(stack, 1234);
  row_of(StackPart::kCudaGraphs).set(stack, bit(GraphScope::kMlp) | bit(GraphScope::kMoeRouter));
  row_of(StackPart::kDataParallelSync)
      .set(stack, static_cast<std::int64_t>(DataParallelSync::kAllReduce));
  stack.aliases = "Odd, Odder";
  stack.fp8_param_gather = true;
  stack.gradient_dtype = DType::kBFloat16;
  stack.deepspeed_engine = true;
  stack.memory = {.context = Bytes(1.2 * kGiB),
                  .library_workspace = Bytes(8.125 * kMiB),
                  .collective_buffers = Bytes(3),
                  .allocation_granularity = Bytes(2 * kMiB),
                  .caching_allocator = true,
                  .gradient_stand_ins = true,
                  .layer_in_reduction = true,
                  .reduction_bucket = 500000001,
                  .fragmentation = kThird,
                  .spread = 0.04};
  stack.choices.source = "a manual";
  stack.choices.parts[StackPart::kDispatcher] = {1, 3};
  stack.choices.parts[StackPart::kCudaGraphs] = {0, bit(GraphScope::kMoe) | bit(GraphScope::kMlp)};
  for (const SettingRow& row : setting_rows()) {
    if (row.kind == SettingKind::kList) continue;
    const bool is_number = row.words.empty();
    stack.choices.only[row.setting] = {is_number ? row.most : row.words.back().value,
                                       is_number ? row.least : row.words.front().value};
  }
  stack.zero_2_and_3_with_pipeline = false;
  stack.tp_overlap = kThird;
  stack.eager_traffic = 2 + kThird;
  stack.flash_speed = kThird;
  stack.scales_loss = false;
  stack.fp8_products = true;
  stack.requantizes_in_backward = true;
  stack.quantizes_inside_gemm = true;
  stack.overlap_slowdown = 1 + kThird;
  stack.rank_jitter = 0.01 * kThird;
  stack.run_spread = 0.02 * kThird;
  stack.residual_spread = 0.03 * kThird;
  stack.uncalibrated_overhead = 0.2 * kThird;
  stack.launcher = Launcher::kTorchTitan;
  stack.calibrated = {7, "logs", "2026-11", 0.5 * kThird, 0.01, 0.02 * kThird, 0.03};
  return stack;
}

Profile odd_profile() {
  Profile profile;
  profile.name = "odd";
  profile.source = "a test";
  profile.date = "2026-01-01";
  profile.provenance = Provenance::kMeasuredHere;
  profile.machine = {.description = "a box", .devices = 3, .rank_jitter = 0.1 * kThird};
  profile.device = {.name = "gpu",
                    .source = "box",
                    .memory = Bytes(81251 * kMiB),
                    .processors = 107,
                    .matmul_peak = FlopsPerSecond(312e12 * kThird),
                    .matmul_dtype = DType::kFloat16,
                    .fp8_peak = FlopsPerSecond(2 * 312e12 * kThird),
                    .mxfp8_peak = FlopsPerSecond(3 * 312e12 * kThird),
                    .nvfp4_peak = FlopsPerSecond(4 * 312e12 * kThird),
                    .vector_peak = FlopsPerSecond(7),
                    .memory_bandwidth = BytesPerSecond(2039e9 * kThird),
                    .asynchronous = false};
  profile.model = {.source = "fit",
                   .provenance = Provenance::kPublished,
                   .matmul_efficiency = 0.9 * kThird,
                   .tile_m = 64,
                   .tile_n = 96,
                   .matmul_latency = Seconds(kThird * 1e-6),
                   .matmul = {.wave_rounding = 0.5 * kThird,
                              .small_tile_exponent = 0.31,
                              .epilogue_exposed = 1.07,
                              .traffic_efficiency = 0.7 * kThird,
                              .unaligned_rate = 0.5,
                              .unaligned_batched_rate = 0.04,
                              .nn_layout_factor = 1.01,
                              .tn_layout_factor = 1 + kThird,
                              .split_sum_cost = 0.11},
                   .sustained_clock = kThird,
                   .narrow_sustained_clock = 0.8 * kThird,
                   .streaming_efficiency = 0.1 + kThird,
                   .reduction_efficiency = 0.2 + kThird,
                   .flash_forward_efficiency = 0.3,
                   .flash_backward_efficiency = 0.35,
                   .attention_speeds = {0.1 * kThird, 0.2, 0.3, 1 + kThird},
                   .kernel_latency = Seconds(2.5e-6)};
  profile.burst_clocks = true;
  profile.runtime = {.launch = Seconds(kThird * 1e-5),
                     .launch_gap = Seconds(1.1e-6),
                     .empty_kernel = Seconds(2e-6 * kThird),
                     .upload = BytesPerSecond(55e9 * kThird),
                     .download = BytesPerSecond(50e9),
                     .context = Bytes(500 * kMiB),
                     .burst_mhz = 1980,
                     .sustained_mhz = 1400 * kThird,
                     .sustained_watts = 699.5,
                     .sustained_celsius = 61};
  profile.algorithms = {"a library", {"one 1 2", "another"}};
  const OpKey matmul{OpKind::kMatmul, DType::kBFloat16, kTransposeB | kAccumulate, {2, 3, 5, 7}};
  const OpKey flash{OpKind::kFlashForward, DType::kBFloat16, 1, {1, 2, 3, 3, 8}};
  const OpKey add{OpKind::kAdd, DType::kFloat32, 0, {1'000'000'000'000}};
  const OpKey narrow{OpKind::kMatmul, DType::kFloat8, kTransposeB, {1, 16, 32, 64}};
  const OpKey cast{
      OpKind::kCast, DType::kBFloat16, static_cast<std::uint8_t>(DType::kFloat8), {1024}};
  profile.ops = {{matmul, Seconds(kThird * 1e-3), 0.01 * kThird, 9},
                 {matmul, Seconds(1e-3)},
                 {flash, Seconds(kThird)},
                 {add, Seconds(2e-6), 0, 5},
                 {narrow, Seconds(kThird * 1e-4)},
                 {cast, Seconds(kThird * 1e-5)}};
  profile.sustained = {{matmul, Seconds(kThird * 2e-3), 0.02, 7}};
  profile.link = {"wire", BytesPerSecond(kThird * 1e11), Seconds(kThird * 1e-6), kThird};
  profile.collectives = {{CollectiveKind::kAllReduce, 8, Bytes(512), Seconds(kThird * 1e-5)},
                         {CollectiveKind::kAllReduce, 8, Bytes(1024), Seconds(2e-5)},
                         {CollectiveKind::kBroadcast, 4, Bytes(1e9), Seconds(1e-2)}};
  return profile;
}

ClusterSpec odd_cluster() {
  return {"odd",
          "a test",
          "Oddity, odd",
          "gpu",
          "stack",
          17,
          6,
          2,
          4,
          3,
          {"inside", BytesPerSecond(300e9 * kThird), Seconds(kThird * 1e-6), 0.9 * kThird},
          {"between", BytesPerSecond(12.5e9), Seconds(5e-6), 0.5},
          {"a test", BytesPerSecond(32e9 * kThird), 0.8 * kThird, BytesPerSecond(4e11 * kThird),
           0.5 * kThird, Bytes(1e12)},
          2,
          kThird,
          2 + kThird,
          1 + 0.1 * kThird,
          {12, "rows", "2026-11", kThird, 0.1 * kThird, 0.2 * kThird, 0.3 * kThird}};
}

// Text is compared: it holds every field, and odd numbers show a lost digit.
template <class Spec, class Parse>
void check_round_trip(const Spec& spec, Parse parse) {
  const std::string text = to_json(spec);
  const auto read = parse(text, "f.json");
  if (!read.ok()) FAIL(to_string(read.error()));
  CHECK(to_json(*read) == text);
}

TEST_CASE("a model survives its file") {
  check_round_trip(odd_model(), parse_model);
  const ModelSpec read = *parse_model(to_json(odd_model()), "f");
  CHECK(read.attention.rope_theta == odd_model().attention.rope_theta);
  CHECK(read.norm_epsilon == odd_model().norm_epsilon);
  CHECK(read.source == odd_model().source);
  CHECK(parameter_count(read) == parameter_count(odd_model()));
}

TEST_CASE("a dense model's file says nothing of experts") {
  ModelSpec model = odd_model();
  model.experts = {};
  check_round_trip(model, parse_model);
  CHECK(to_json(model).find("experts") == std::string::npos);
}

TEST_CASE("a plan survives its file") {
  const PlanFile file{odd_model(),
                      "jean-zay-a100",
                      "a100",
                      "megatron-lm",
                      {{StackPart::kNormKernel, 1}, {StackPart::kShardGroup, 24}},
                      odd_plan(),
                      400 * kThird,
                      true,
                      true};
  check_round_trip(file, parse_plan);
  const PlanFile read = *parse_plan(to_json(file), "f");
  CHECK(read.plan == odd_plan());
  CHECK(read.cluster == "jean-zay-a100");
  CHECK(read.profile == "a100");
  CHECK(read.stack == "megatron-lm");
  CHECK(read.parts == file.parts);
  CHECK(read.node_gbps == file.node_gbps);
  CHECK(read.stack_assumed);
  CHECK(read.network_assumed);
  CHECK(to_json(read.model) == to_json(odd_model()));
}

TEST_CASE("the names in a plan file are those that tables print") {
  const JsonValue plan = plan_to_json(odd_plan());
  CHECK(*plan.find("attention")->as<std::string>() == name_of(AttentionKind::kUnfused));
  CHECK(*plan.find("recompute")->as<std::string>() == name_of(Recompute::kBlocks));
  CHECK(*plan.find("recompute_blocks")->as<std::int64_t>() == 2);
  CHECK(*plan.find("offload")->as<std::string>() == name_of(Offload::kOptimizer));
  CHECK(*plan.find("schedule")->as<std::string>() == name_of(ScheduleKind::kInterleaved));
  CHECK(*plan.find("rank_order")->as<std::string>() == name_of(RankOrder::kTpPpDp));
  CHECK(*plan.find("tp")->as<std::int64_t>() == 2);
}

TEST_CASE("a plan file whose plan breaks a rule is refused") {
  PlanFile file{odd_model(), "c", "p", "s", {}, odd_plan()};
  file.plan.stage_layers = {1, 2, 0, 4};
  const auto read = parse_plan(to_json(file), "plan.json");
  REQUIRE_FALSE(read.ok());
  CHECK(read.error().where == "plan.json");
  CHECK_THAT(read.error().message, Catch::Contains("add up to 7"));
}

TEST_CASE("a cluster survives its file") {
  check_round_trip(odd_cluster(), parse_cluster);
  const ClusterSpec read = *parse_cluster(to_json(odd_cluster()), "f");
  CHECK(read.intra_node.bandwidth == odd_cluster().intra_node.bandwidth);
  CHECK(read.inter_node.efficiency == 0.5);
  CHECK(read.nics_per_node == 3);
}

TEST_CASE("a stack file of before calls its rank orders rank_orders") {
  StackSpec stack = odd_stack();
  stack.choices.only = {};
  stack.choices.only[Setting::kRankOrder] = {static_cast<std::int64_t>(RankOrder::kTpPpDp)};
  std::string text = to_json(stack);
  const std::string now = "\"rank_order\"";
  REQUIRE(text.find(now) != std::string::npos);
  text.replace(text.find(now), now.size(), "\"rank_orders\"");
  const Result<StackSpec> read = parse_stack(text, "stack.json");
  REQUIRE(read.ok());
  CHECK(read->choices.only == stack.choices.only);
  CHECK(read->choices.parts == stack.choices.parts);
}

TEST_CASE("a stack survives its file") {
  check_round_trip(odd_stack(), parse_stack);
  const StackSpec read = *parse_stack(to_json(odd_stack()), "f");
  CHECK(read.host.per_block_backward == Seconds(kThird));
  CHECK(read.training.overlap_parameter_gather);
  CHECK(read.memory.fragmentation == kThird);
}

TEST_CASE("a profile survives its file") {
  check_round_trip(odd_profile(), parse_profile);
  const Profile profile = odd_profile();
  const Profile read = *parse_profile(to_json(profile), "f");
  REQUIRE(read.ops.size() == profile.ops.size());
  for (std::size_t i = 0; i < read.ops.size(); ++i) {
    CHECK(read.ops[i].key == profile.ops[i].key);
    CHECK(read.ops[i].median == profile.ops[i].median);
    CHECK(read.ops[i].spread == profile.ops[i].spread);
    CHECK(read.ops[i].count == profile.ops[i].count);
  }
  CHECK(read.link.kind == "wire");
  CHECK(read.link.bandwidth == odd_profile().link.bandwidth);
  CHECK(read.link.latency == odd_profile().link.latency);
  CHECK(read.link.efficiency == kThird);
  REQUIRE(read.collectives.size() == 3);
  CHECK(read.collectives[2].kind == CollectiveKind::kBroadcast);
  CHECK(read.collectives[2].bytes == Bytes(1e9));
}

TEST_CASE("samples of 8-bit floats need the rate of the device that they are of") {
  std::string text = to_json(odd_profile());
  const std::size_t at = text.find("\"fp8_peak\"");
  text.erase(at, text.find('\n', at) - at);
  const auto read = parse_profile(text, "p.json");
  REQUIRE_FALSE(read.ok());
  CHECK_THAT(read.error().message, Catch::Contains("fp8_peak"));
}

TEST_CASE("a table of a profile is checked cell by cell") {
  const auto refused = [](std::string row) {
    std::string text = to_json(odd_profile());
    const std::size_t at = text.find("[1, 2, 3, 3, 8,");
    REQUIRE(at != std::string::npos);
    text.replace(at, text.find(']', at) + 1 - at, row);
    const auto read = parse_profile(text, "p.json");
    REQUIRE_FALSE(read.ok());
    CHECK_THAT(read.error().where, Catch::StartsWith("p.json:"));
    return read.error().message;
  };
  CHECK_THAT(refused("[1, 2, 3, 3, 8, -1e-3]"), Catch::Contains("-0.001"));
  CHECK_THAT(refused("[1, 2, 3, 3, 8, 0]"), Catch::Contains("must lie between"));
  CHECK_THAT(refused("[1, 2, 3, 3.5, 8, 1e-3]"), Catch::Contains("whole number"));
  CHECK_THAT(refused("[1, 2, 0, 3, 8, 1e-3]"), Catch::Contains("must lie between"));
  CHECK_THAT(refused("[1, 2, 3, 8, 1e-3]"), Catch::Contains("6 or 8 numbers"));
  CHECK_THAT(refused("[1, 2, 3, 3, 8, \"1 ms\"]"), Catch::Contains("must be a number"));
  CHECK_THAT(refused("7"), Catch::Contains("must be a row"));
}

TEST_CASE("a quantity in a file needs its unit") {
  const auto refused = [](std::string_view written) {
    std::string text = to_json(odd_cluster());
    const std::string unit = "\"12.5 GB/s\"";
    const std::size_t at = text.find(unit);
    REQUIRE(at != std::string::npos);
    text.replace(at, unit.size(), written);
    const auto read = parse_cluster(text, "c.json");
    REQUIRE_FALSE(read.ok());
    return to_string(read.error());
  };
  CHECK_THAT(refused("\"12.5\""), Catch::Contains("inter_node.bandwidth") &&
                                      Catch::Contains("the unit is missing") &&
                                      Catch::Contains("GB/s"));
  CHECK_THAT(refused("12.5"), Catch::Contains("a text with a unit"));
  CHECK_THAT(refused("\"-1 GB/s\""), Catch::Contains(">= 0"));
  CHECK_THAT(refused("\"inf GB/s\""), Catch::Contains("finite"));
  CHECK_THAT(refused("\"1e300 TB/s\""), Catch::Contains("too large"));
  CHECK_THAT(refused("\"0 GB/s\""), Catch::Contains("above zero"));
}

}  // namespace
}  // namespace tpsim
