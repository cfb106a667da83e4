// Small models and machines for tests, stated here and not read from data files.
#pragma once

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace tpsim::test {

inline ModelSpec small_bloom() {
  ModelSpec model;
  model.name = "small-bloom";
  model.layers = 8;
  model.hidden = 512;
  model.ffn_hidden = 2048;
  model.vocab = 5000;
  model.seq = 128;
  model.attention = {8, 8, 64, PositionKind::kAlibi, 10000.0};
  model.embedding_norm = true;
  return model;
}

inline ModelSpec small_llama() {
  ModelSpec model;
  model.name = "small-llama";
  model.layers = 8;
  model.hidden = 512;
  model.ffn_hidden = 1408;
  model.vocab = 5000;
  model.seq = 128;
  model.attention = {8, 4, 64, PositionKind::kRotary, 10000.0};
  model.norm = NormKind::kRmsNorm;
  model.mlp = MlpKind::kSwiglu;
  model.linear_bias = model.fused_qkv = model.tied_embedding = false;
  return model;
}

inline ModelSpec small_gpt() {
  ModelSpec model = small_bloom();
  model.name = "small-gpt";
  model.attention.position = PositionKind::kLearned;
  model.embedding_norm = false;
  return model;
}

inline ModelSpec small_mixture() {
  ModelSpec model = small_llama();
  model.name = "small-mixture";
  model.experts = {4, 2, 1.25};
  return model;
}

// Blocks with one branch each, as in Nemotron 3: Mamba-2, attention, latent experts with a shared
// expert, and an MLP.
inline ModelSpec small_hybrid() {
  ModelSpec model = small_llama();
  model.name = "small-hybrid";
  model.family = "nemotron_h";
  model.mlp = MlpKind::kReluSquared;
  BlockShape attends{.attention = model.attention};
  BlockShape recurs{.mixer = MixerKind::kMamba2,
                    .recurrent = {.heads = 8,
                                  .key_heads = 2,
                                  .key_dim = 32,
                                  .value_dim = 64,
                                  .convolution = 4,
                                  .convolution_bias = true,
                                  .chunk = 64}};
  const BlockShape widens{.mixer = MixerKind::kNone, .ffn_hidden = 1024};
  const BlockShape routes{
      .mixer = MixerKind::kNone,
      .ffn_hidden = 256,
      .experts = {
          .count = 4, .per_token = 2, .capacity_factor = 1.25, .shared_ffn = 512, .latent = 128}};
  set_blocks(model, {recurs, routes, recurs, attends, widens, recurs, routes, attends});
  return model;
}

// Gated delta nets and gated attention, as in Qwen3-Next.
inline ModelSpec small_delta_net() {
  ModelSpec model = small_llama();
  model.name = "small-delta-net";
  model.family = "qwen3_next";
  BlockShape attends{.attention = model.attention, .ffn_hidden = model.ffn_hidden};
  attends.attention.output_gate = true;
  attends.attention.qk_norm = QkNorm::kHead;
  BlockShape recurs{.mixer = MixerKind::kDeltaNet,
                    .recurrent = {.heads = 8,
                                  .key_heads = 4,
                                  .key_dim = 64,
                                  .value_dim = 64,
                                  .convolution = 4,
                                  .chunk = 64},
                    .ffn_hidden = model.ffn_hidden};
  set_blocks(model, {recurs, recurs, recurs, attends, recurs, recurs, recurs, attends});
  return model;
}

inline PlannedOp planned_matrix(const char* name, PlannedSharding sharding, std::int64_t width,
                                std::int64_t columns) {
  return {.name = name,
          .kind = PlannedOpKind::kLinear,
          .sharding = sharding,
          .width = width,
          .columns = columns,
          .parameters = width};
}

// Blocks with an indexer that chooses positions, planned mixers, two residual streams, and an
// encoder.
inline ModelSpec small_planned() {
  constexpr auto kWhole = PlannedSharding::kWhole;
  constexpr auto kRows = PlannedSharding::kRows;
  ModelSpec model = small_llama();
  model.name = "small-planned";
  model.family = "deepseek_v4";
  BlockShape chooses{.attention = model.attention, .ffn_hidden = model.ffn_hidden};
  chooses.attention.chosen = 48;
  chooses.planned = {planned_matrix("wq", kWhole, 128, 512),
                     {.name = "scores",
                      .kind = PlannedOpKind::kPairs,
                      .width = 96,
                      .heads = 4,
                      .key_dim = 32,
                      .stride = 1},
                     planned_matrix("gate", kRows, 512, 512),
                     planned_matrix("mix", PlannedSharding::kTokens, 8, 1024)};
  BlockShape compresses{
      .mixer = MixerKind::kPlanned, .attention = model.attention, .ffn_hidden = model.ffn_hidden};
  compresses.planned = {
      planned_matrix("q_a", kWhole, 96, 512),
      planned_matrix("q_b", kRows, 512, 96),
      {.name = "core",
       .kind = PlannedOpKind::kPairs,
       .sharding = kRows,
       .width = 512,
       .parameters = 8,
       .heads = 8,
       .key_dim = 64,
       .value_dim = 64,
       .window = 16,
       .stride = 4,
       .most = 8},
      {.name = "streams", .sharding = PlannedSharding::kTokens, .width = 1024, .moved = 4096},
      planned_matrix("out", PlannedSharding::kColumns, 512, 512)};
  set_blocks(model,
             {chooses, compresses, chooses, compresses, compresses, compresses, chooses, chooses});
  model.ends.streams = 2;
  model.ends.parts = {{.name = "eyes",
                       .layers = 3,
                       .patches = 64,
                       .items = 1,
                       .layer_ops = {planned_matrix("qkv", kWhole, 192, 64),
                                     {.name = "core",
                                      .kind = PlannedOpKind::kPairs,
                                      .width = 64,
                                      .heads = 4,
                                      .key_dim = 16,
                                      .value_dim = 16},
                                     planned_matrix("proj", kWhole, 64, 64)},
                       .ops = {planned_matrix("patches", kWhole, 64, 588)}}};
  return model;
}

inline Profile constant_profile() {
  Profile profile;
  profile.name = "constants";
  profile.source = "tests";
  profile.device.name = "test device";
  profile.device.memory = Bytes(16 * kGiB);
  profile.device.processors = 100;
  profile.device.matmul_peak = FlopsPerSecond(100e12);
  profile.device.vector_peak = FlopsPerSecond(10e12);
  profile.device.memory_bandwidth = BytesPerSecond(1e12);
  profile.model.kernel_latency = Seconds(2e-6);
  profile.model.matmul_latency = Seconds(3e-6);
  return profile;
}

inline ClusterSpec small_cluster() {
  ClusterSpec cluster;
  cluster.name = "small";
  cluster.source = "tests";
  cluster.nodes = 8;
  cluster.gpus_per_node = 4;
  cluster.nics_per_node = 2;
  cluster.intra_node = {"link", BytesPerSecond(100e9), Seconds(2e-6), 0.8};
  cluster.inter_node = {"net", BytesPerSecond(10e9), Seconds(5e-6), 0.8};
  return cluster;
}

inline Scenario small_scenario(const ModelSpec& model) {
  Scenario scenario{model, small_cluster(), constant_profile(), {}};
  scenario.stack.name = "test stack";
  scenario.stack.host.per_op = Seconds(1e-6);
  scenario.stack.host.per_collective = Seconds(2e-6);
  scenario.stack.parts.expert_load = kBalancedLoad;  // as in the reference model
  return scenario;
}

inline Plan plan_of(const ModelSpec& model, ParallelDegrees degrees, std::int64_t micro_batches) {
  Plan plan;
  plan.degrees = degrees;
  plan.micro_batch = 2;
  plan.global_batch = 2 * degrees.dp * micro_batches;
  plan.stage_layers = even_stage_layers(model.layers, degrees.pp, false);
  return plan;
}

}  // namespace tpsim::test
