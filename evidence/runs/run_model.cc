#include "evidence/runs/run_model.h"

#include <algorithm>
#include <cctype>

namespace tpsim {
namespace {

// Removes the suffix with the number of layers: "-4l" of "deepseek-v3-4l", "-l64" of "grok-1-l64".
std::string without_blocks(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string::npos) return name;
  std::string last = name.substr(dash + 1);
  const std::size_t letter = last.find('l');
  if (letter == std::string::npos || last.size() < 2) return name;
  last.erase(letter, 1);
  const bool is_number =
      std::all_of(last.begin(), last.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return is_number ? name.substr(0, dash) : name;
}

// Returns the FFN size of the first kind of layer that has an FFN; 0 if there is none.
std::int64_t ffn_hidden_of(const ModelSpec& model) {
  if (has_feed_forward(model)) return model.ffn_hidden;
  for (const BlockShape& block : model.other_blocks) {
    if (block.ffn_hidden > 0) return block.ffn_hidden;
  }
  return 0;
}

// Returns the head dimension as tables state it. Tables exclude the rotary part of latent
// attention.
std::int64_t stated_head_dim(const AttentionShape& attention) {
  return attention.latent.kv_rank > 0 ? attention.latent.nope_dim : attention.head_dim;
}

// Whether all sizes that the row states equal those of the model.
bool has_sizes(const ModelSpec& model, const PublishedRun& run) {
  const auto agrees = [](std::int64_t stated, std::int64_t is) {
    return stated == 0 || stated == is;
  };
  const AttentionShape& attention = model.attention;
  const bool is_latent = attention.latent.kv_rank > 0;
  const ExpertShape& experts = model.experts;
  return agrees(run.hidden, model.hidden) && agrees(run.heads, attention.heads) &&
         (is_latent || agrees(run.kv_heads, attention.kv_heads)) &&
         agrees(run.head_dim, stated_head_dim(attention)) &&
         agrees(run.ffn_hidden, ffn_hidden_of(model)) && agrees(run.experts, experts.count) &&
         agrees(run.experts_per_token, experts.per_token) &&
         agrees(run.shared_ffn, experts.shared_ffn);
}

bool is_dense(const PublishedRun& run, std::int64_t layer) {
  const std::int64_t every = stated_or(run.moe_every, 1);
  return layer < run.dense_layers || (layer - run.dense_layers) % every != every - 1;
}

// Whether the model has features that a run table cannot express. Other models are built from the
// row and its environment instead, because these state dropout.
bool says_more_than_columns(const ModelSpec& model) {
  const bool is_plain_llama = !model.tied_embedding && !model.attention.qkv_bias &&
                              model.attention.qk_norm == QkNorm::kNone;
  return (is_gated(model.mlp) && !is_plain_llama) || has_experts(model) ||
         block_kind_count(model) > 1 || model.attention.latent.kv_rank > 0 ||
         model.attention.window > 0 || model.mixer != MixerKind::kAttention;
}

// Shortens the model to the row's number of layers. Layers that the row states as dense become
// dense.
void cut_blocks(ModelSpec& model, const PublishedRun& run) {
  std::int64_t dense = 0;
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    if (block_of_kind(model, kind).experts.count == 0) dense = kind;
  }
  std::vector<BlockShape> blocks;
  for (std::int64_t layer = 0; layer < run.layers; ++layer) {
    const std::int64_t last = model.layers - 1;
    // Removes the model's first layers and keeps the last ones, so that the pattern of MoE layers
    // continues.
    const std::int64_t place = std::min(last, layer + (model.layers - run.layers));
    blocks.push_back(block_of_kind(model, is_dense(run, layer) ? dense : block_kind(model, place)));
  }
  model.layers = run.layers;
  set_blocks(model, blocks);
}

void set_experts(ModelSpec& model, const PublishedRun& run) {
  if (run.experts <= 1) return;
  model.experts.count = run.experts;
  model.experts.per_token = stated_or(run.experts_per_token, 1);
  model.experts.shared_ffn = run.shared_ffn;
  model.experts.dropless = run.routing != "capacity";
  model.ends.prediction_layers = static_cast<std::int64_t>(run.mtp.value_or(0));
  BlockShape routed = block_of_kind(model, 0);
  BlockShape dense = routed;
  dense.experts = {};
  dense.ffn_hidden = model.experts.per_token * model.ffn_hidden + model.experts.shared_ffn;
  std::vector<BlockShape> blocks;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    blocks.push_back(is_dense(run, layer) ? dense : routed);
  }
  set_blocks(model, blocks);
}

}  // namespace

ModelSpec model_of(const PublishedRun& run, const RunEnvironment& environment) {
  // A model with a gated MLP is assumed to be of the LLaMA family, because tables state little
  // else: RMSNorm, rotary positions, no biases, untied embeddings.
  const bool gated = run.gated_ffn.value_or(false);
  ModelSpec model;
  model.name = run.model;
  model.source = run.source;
  model.layers = run.layers;
  model.hidden = run.hidden;
  model.ffn_hidden = stated_or(run.ffn_hidden, 4 * run.hidden);
  model.vocab = stated_or(run.vocab, kUsualVocabulary);
  if (environment.unpadded_vocabulary && run.tp == 1) model.vocab_multiple = 1;
  model.seq = run.seq;
  model.attention.heads = run.heads;
  model.attention.kv_heads = stated_or(run.kv_heads, run.heads);
  model.attention.head_dim = stated_or(run.head_dim, run.hidden / run.heads);
  model.attention.position = gated ? PositionKind::kRotary : environment.position;
  model.norm = gated ? NormKind::kRmsNorm : NormKind::kLayerNorm;
  model.mlp = gated ? MlpKind::kSwiglu : MlpKind::kGelu;
  model.linear_bias = !gated;
  model.fused_qkv = model.attention.kv_heads == model.attention.heads && !gated;
  model.tied_embedding = environment.tied_embedding && !gated;
  model.embedding_norm = environment.embedding_norm;
  const std::string& attention = stated_or(run.attention, environment.attention);
  const bool flash = attention != name_of(AttentionKind::kUnfused);
  model.attention_dropout = flash ? 0 : run.dropout.value_or(environment.attention_dropout);
  model.hidden_dropout = run.dropout.value_or(environment.hidden_dropout);
  set_experts(model, run);
  return model;
}

PublishedRun with_usual_batch(PublishedRun run) {
  if (run.global_batch > 0 || run.dp == 0 || run.pp == 0 || run.step_s) return run;
  // One micro-batch per replica is Megatron's default. Pipelines are assumed to run kForEachStage
  // micro-batches per stage, which keeps the bubble below an eighth of a step.
  constexpr std::int64_t kForEachStage = 8;
  run.global_batch = run.dp * stated_or(run.micro_batch, 1);
  if (run.pp > 1) run.global_batch *= kForEachStage * run.pp;
  return run;
}

PublishedRun with_degrees(PublishedRun run) {
  constexpr std::int64_t kMostRanks = 1 << 20;
  std::vector<std::int64_t*> open;
  std::int64_t taken = stated_or(run.cp, 1);
  for (std::int64_t* degree : {&run.tp, &run.pp, &run.dp}) {
    if (*degree == 0) open.push_back(degree);
    if (taken > kMostRanks || *degree > kMostRanks) return run;
    taken *= stated_or(*degree, 1);
  }
  if (open.empty() || run.gpus == 0 || run.gpus % taken != 0) return run;
  const std::int64_t left = run.gpus / taken;
  if (left > 1 && open.size() > 1) return run;
  for (std::int64_t* degree : open) *degree = left;
  return run;
}

const std::optional<ModelSpec>& CatalogueModels::called(const std::string& name) {
  const auto [place, is_new] = models_.try_emplace(name);
  if (is_new) {
    Result<ModelSpec> found = catalogue_.load_model(name);
    if (found.ok()) place->second = *std::move(found);
  }
  return place->second;
}

// Returns the catalogue's model with the row's name, if all sizes that the row states match; else
// null.
const ModelSpec* CatalogueModels::of_sizes(const PublishedRun& run) {
  const std::string& name = run.model;
  if (name.empty() || name.find('/') != std::string::npos || name.ends_with(".json")) {
    return nullptr;  // tables do not name files
  }
  for (const std::string& asked : {name, without_blocks(name)}) {
    const std::optional<ModelSpec>& model = called(asked);
    if (model && has_sizes(*model, run)) return &*model;
  }
  return nullptr;
}

std::optional<ModelSpec> CatalogueModels::of(const PublishedRun& run) {
  const ModelSpec* known = of_sizes(run);
  if (known == nullptr || !says_more_than_columns(*known)) return std::nullopt;
  std::optional<ModelSpec> model = *known;
  if (run.layers != model->layers) cut_blocks(*model, run);
  model->seq = run.seq;
  if (run.vocab > 0) model->vocab = run.vocab;
  if (!run.routing.empty()) model->experts.dropless = run.routing != "capacity";
  if (run.mtp) model->ends.prediction_layers = static_cast<std::int64_t>(*run.mtp);
  return model;
}

void CatalogueModels::set_activation(const PublishedRun& run, ModelSpec& model) {
  const ModelSpec* known = of_sizes(run);
  if (known == nullptr || is_gated(model.mlp) || is_gated(known->mlp)) return;
  model.mlp = known->mlp;
  model.activation_ops = known->activation_ops;
}

PublishedRun CatalogueModels::completed(PublishedRun run) {
  const ModelSpec* model = of_sizes(run);
  if (model == nullptr) return run;
  const auto fill = [](std::int64_t& stated, std::int64_t is) {
    if (stated == 0) stated = is;
  };
  const AttentionShape& attention = model->attention;
  fill(run.layers, model->layers);
  fill(run.hidden, model->hidden);
  fill(run.heads, attention.heads);
  fill(run.head_dim, stated_head_dim(attention));
  fill(run.vocab, model->vocab);
  constexpr std::int64_t kUsualSequence = 4096;  // usual in pretraining, if the model supports it
  if (!run.step_s) fill(run.seq, std::min(model->seq, kUsualSequence));
  if (says_more_than_columns(*model)) return run;  // the other sizes are read from the model itself
  fill(run.kv_heads, attention.kv_heads);
  fill(run.ffn_hidden, model->ffn_hidden);
  if (!run.gated_ffn) run.gated_ffn = is_gated(model->mlp);
  return run;
}

}  // namespace tpsim
