#include "tests/core/scenario/odd_specs.h"

#include "core/scenario/plan_contents.h"
#include "core/scenario/plan_file.h"
#include "core/software/stack_parts.h"
#include "tests/core/scenario/field_count.h"

namespace tpsim::test {

// A new field needs a key in core/*_json.cc and a value below. Without both, files drop the field
// silently.
static_assert(field_count<ModelSpec>() == 32);  // one of them is a BlockShape
static_assert(field_count<BlockShape>() == 8);  // no file has has_backward: trained_model() sets it
static_assert(field_count<AttentionShape>() == 17);
static_assert(field_count<ExpertShape>() == 10);
static_assert(field_count<RecurrentShape>() == 9);
static_assert(field_count<PlannedOp>() == 13);
static_assert(field_count<OuterPart>() == 6);
static_assert(field_count<EndShape>() == 9);
static_assert(field_count<ParallelDegrees>() == 6);
static_assert(field_count<ClusterSpec>() == 20);
static_assert(field_count<LinkSpec>() == 4);
static_assert(field_count<HostSpec>() == 6);
static_assert(field_count<StackSpec>() == 36);
static_assert(field_count<CalibrationFacts>() == 7);
static_assert(field_count<TrainingOptions>() == 16);
static_assert(field_count<Finetune>() == 13);
static_assert(field_count<HostCost>() == 18);
static_assert(std::tuple_size_v<decltype(times_of(std::declval<HostCost&>()))> ==
              field_count<HostCost>());
static_assert(field_count<StackMemory>() == 10);
static_assert(field_count<StackChoices>() == 3);
static_assert(field_count<Profile>() == 14);
static_assert(field_count<RuntimeFacts>() == 10);
static_assert(field_count<AlgorithmChoices>() == 2);
static_assert(field_count<MachineFacts>() == 3);
static_assert(field_count<DeviceFacts>() == 13);
static_assert(field_count<DeviceModel>() == 15);
static_assert(field_count<AttentionSpeeds>() == 4);
static_assert(field_count<SoftwareParts>() == 34);
static_assert(field_count<MatmulTuning>() == 9);
static_assert(field_count<OpSample>() == 4);
static_assert(field_count<CollectiveSample>() == 4);
static_assert(field_count<Plan>() == 17);
static_assert(field_count<PlanFile>() == 12);
static_assert(field_count<PlanContents>() == 3);

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
  model.attention = {.heads = 12,
                     .kv_heads = 4,
                     .head_dim = 10,
                     .position = PositionKind::kRotary,
                     .rope_theta = 500000.0 * kThird,
                     .chosen = 17,
                     .value_dim = 8};
  model.planned = {{.name = "scores",
                    .kind = PlannedOpKind::kPairs,
                    .sharding = PlannedSharding::kRows,
                    .width = 12,
                    .parameters = 6,
                    .heads = 6,
                    .key_dim = 3,
                    .value_dim = 5,
                    .window = 7,
                    .stride = 2,
                    .most = 4},
                   {.name = "matrix",
                    .kind = PlannedOpKind::kLinear,
                    .sharding = PlannedSharding::kColumns,
                    .width = 9,
                    .columns = 12}};
  model.ends.prediction_shared = true;
  model.ends.streams = 3;
  model.ends.parts = {
      {.name = "eyes",
       .layers = 2,
       .patches = 49,
       .items = 2,
       .layer_ops = {{.name = "up", .kind = PlannedOpKind::kLinear, .width = 5, .columns = 7}},
       .ops = {{.name = "norm", .parameters = 11, .moved = 13}}}};
  model.norm = NormKind::kRmsNorm;
  model.mlp = MlpKind::kSwiglu;
  model.experts = {9, 4, 4 * kThird};
  model.experts.latent = 12;
  model.experts.counts.assign(18, kThird);
  model.linear_bias = false;
  model.fused_qkv = false;
  model.tied_embedding = false;
  model.vocab_multiple = 64;
  model.trained = kAllParts - part_bit(WeightPart::kNorms);
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
  plan.attention = AttentionKind::kUnfused;  // because of attention dropout
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
                    .gradient_accumulation = GradientAccumulation::kSeparate,
                    .widened_optimizer_gradients = true,
                    .gradient_sync = GradientSync::kLastInPipeline,
                    .reduce_dtype = ReduceDtype::kAsAddedUp,
                    .overlap_gradient_reduction = true,
                    .overlap_parameter_gather = true,
                    .overlap_tensor_reduction = true,
                    .tp_recompute_allgather = false,
                    .clip_gradients = false,
                    .logits_dtype = LogitsDtype::kFloat32,
                    .online_loss = true,
                    .pipeline_sends = PipelineSends::kWhole,
                    .finetune = {.adapts = true,
                                 .rank = 12,
                                 .alpha = 5,
                                 .dropout = 7,
                                 .targets = 5,
                                 .scaling = LoraScaling::kRankStabilized,
                                 .dtype = LoraDtype::kFloat32,
                                 .kernel = LoraKernel::kTorch,
                                 .base = BaseDtype::kInt8,
                                 .double_quantization = false,
                                 .trained = 4}};
  stack.host = {.per_op = Seconds(kThird * 1e-6),
                .per_block_op = Seconds(31e-6),
                .per_collective = Seconds(2e-6),
                .per_block_forward = Seconds(0.7e-3),
                .per_block_backward = Seconds(kThird),
                .per_routing_forward = Seconds(1.5e-3),
                .per_routing_backward = Seconds(2.5e-3),
                .per_expert_forward = Seconds(80e-6),
                .per_expert_backward = Seconds(120e-6),
                .per_gather = Seconds(0.00021),
                .per_transfer = Seconds(7e-3),
                .per_micro_batch = Seconds(0),
                .per_step = Seconds(12),
                .blocking_op = Seconds(3e-6),
                .blocking_collective = Seconds(4e-4),
                .forward_op = Seconds(31e-6),
                .backward_op = Seconds(11e-6),
                .module_call = Seconds(21e-6)};
  // Sets every part with words to its last one. data_parallel_sync must agree with the training
  // options above.
  for (const PartRow& row : part_rows()) {
    if (!row.words.empty()) row.set(stack, row.words.back().value);
  }
  row_of(StackPart::kShardGroup).set(stack, 16);
  row_of(StackPart::kExpertLoad).set(stack, 1234);
  row_of(StackPart::kExpertCapacity).set(stack, 1500);
  row_of(StackPart::kExpertStash).set(stack, 1100);
  row_of(StackPart::kOffloadLayers).set(stack, 7);
  row_of(StackPart::kCudaGraphs).set(stack, bit(GraphScope::kMlp) | bit(GraphScope::kMoeRouter));
  row_of(StackPart::kDataParallelSync)
      .set(stack, static_cast<std::int64_t>(DataParallelSync::kAllReduce));
  stack.aliases = "Odd, Odder";
  stack.fp8_param_gather = true;
  stack.default_zero = 2;
  stack.sequence_parallel = true;
  stack.spread_gpus = "gpu,odd";
  stack.spread_programs = "a program, another";
  stack.other_runs = 0.31;
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
    if (row.is_list()) continue;
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
  stack.compiles_loss = true;
  stack.checkpoint_stops_early = true;
  stack.copies_gathered_weights = true;
  stack.gathered_units = GatheredUnits::kRoot;
  stack.copies_column_inputs = true;
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
                    .measured_bandwidth = BytesPerSecond(1555e9 * kThird),
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
          "GPU-X,GPU+Odd",
          17,
          6,
          2,
          4,
          3,
          {{6, 2}, {5, 3}},
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

}  // namespace tpsim::test
