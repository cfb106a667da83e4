// Fields of the attention of a block in model files, and helpers of all fields of models.
#pragma once

#include "core/json/json_fields.h"
#include "core/model/block_shape.h"

namespace tpsim {

// Keys of several objects.
inline constexpr FieldKey kMixerKey{"mixer",
                                    "token mixer of the block; planned: the ops of the list "
                                    "planned; none: the block has an MLP only [attention]"};
inline constexpr FieldKey kAttentionKey{"attention", "self-attention of the blocks"};
inline constexpr FieldKey kRecurrentKey{"recurrent", "recurrence of mamba2 and delta_net blocks"};
inline constexpr FieldKey kFfnKey{
    "ffn_hidden", "hidden size of the MLP, or of one expert; 0: blocks without MLP"};
inline constexpr FieldKey kExpertsKey{"experts", "mixture of experts; omitted for dense models"};
inline constexpr FieldKey kPlannedKey{
    "planned",
    "ops that are predicted from their sizes and not executed, such as indexers: the mixer's if "
    "mixer is planned, else in addition to the mixer"};

inline constexpr IntRange kCount{0, std::int64_t{1} << 24};

// An integer that files omit if it is 0.
template <class Io, class Int>
void count_field(Io& io, const FieldKey& key, Int& count, IntRange range = kCount) {
  io.when(count != 0, [&](auto& inner) { inner.integer(key, count, range, kOptional); });
}

inline constexpr IntRange kPositions{0, std::int64_t{1} << 40};

template <class Io, class Spec>
void stretch_fields(Io& io, Spec& stretch) {
  io.choice({"kind",
             "linear: all frequencies are divided by factor; llama3, yarn: low frequencies only; "
             "longrope: a divisor per frequency"},
            stretch.kind, every<RotaryScaling>());
  io.number({"factor", "linear, llama3, yarn: divisor of the scaled frequencies [1]"},
            stretch.factor, {0, 1e6}, kOptional);
  io.integer(
      {"original_positions", "llama3, yarn, longrope: context length of pretraining in tokens"},
      stretch.original_positions, {0, std::int64_t{1} << 40}, kOptional);
  io.number({"low_freq_factor",
             "llama3: frequencies that complete fewer turns in original_positions are divided by "
             "factor [1]"},
            stretch.low_freq_factor, {0, 1e6}, kOptional);
  io.number(
      {"high_freq_factor",
       "llama3: frequencies that complete more turns in original_positions are unchanged [4]"},
      stretch.high_freq_factor, {0, 1e6}, kOptional);
  io.number({"beta_fast",
             "yarn: frequencies that complete more turns in original_positions are unchanged [32]"},
            stretch.beta_fast, {0, 1e6}, kOptional);
  io.number({"beta_slow",
             "yarn: frequencies that complete fewer turns in original_positions are divided by "
             "factor [1]"},
            stretch.beta_slow, {0, 1e6}, kOptional);
  io.flag({"truncate",
           "yarn: the bounds from beta_fast and beta_slow are rounded to whole pairs [true]"},
          stretch.truncate, kOptional);
  io.number({"mscale",
             "yarn: cosines and sines are scaled by g(mscale) / g(mscale_all_dim), where g(a) = 1 "
             "+ 0.1 a ln(factor); if either is 0, by g(1) [0]"},
            stretch.mscale, {0, 1e6}, kOptional);
  io.number({"mscale_all_dim",
             "yarn: cosines and sines are scaled by g(mscale) / g(mscale_all_dim), where g(a) = 1 "
             "+ 0.1 a ln(factor); if either is 0, by g(1) [0]"},
            stretch.mscale_all_dim, {0, 1e6}, kOptional);
  io.number(
      {"attention_factor", "yarn, longrope: scale of cosines and sines; 0: from the formula [0]"},
      stretch.attention_factor, {0, 1e6}, kOptional);
  io.numbers(
      {"short_factors", "longrope: divisor of each frequency if seq is at most original_positions"},
      stretch.short_factors, {0, 1e9});
  io.numbers({"long_factors",
              "longrope: divisor of each frequency if seq is longer than original_positions"},
             stretch.long_factors, {0, 1e9});
}

template <class Io, class Spec>
void rotary_fields(Io& io, Spec& rotary) {
  io.number({"fraction", "share of the head size that is rotated, from its first entry [1]"},
            rotary.fraction, {0, 1}, kOptional);
  io.flag({"neighbours",
           "pairs of adjacent entries (2i, 2i + 1) are rotated instead of (i, i + half) [false]"},
          rotary.neighbours, kOptional);
  io.object_if(rotary.stretch != RotaryStretch{},
               {"stretch",
                "scaling of rotary frequencies for contexts longer than in pretraining "
                "(rope_scaling of Hugging Face)"},
               [&](auto& inner) { stretch_fields(inner, rotary.stretch); });
}

template <class Io, class Spec>
void score_fields(Io& io, Spec& score) {
  io.number({"scale", "factor on the scores; 0: 1 / sqrt(head_dim) [0]"}, score.scale, {0, 1e6},
            kOptional);
  io.number({"cap", "soft cap: scores become cap x tanh(score / cap); 0: no cap [0]"}, score.cap,
            {0, 1e6}, kOptional);
  io.flag({"sinks",
           "attention sinks: the softmax has a trained logit per head without a value (GPT-OSS) "
           "[false]"},
          score.sinks, kOptional);
  io.number({"temperature",
             "queries are scaled by 1 + temperature x ln(1 + floor((position + 1) / "
             "temperature_floor)); 0: no scaling [0]"},
            score.temperature, {0, 1e6}, kOptional);
  io.integer(
      {"temperature_floor", "number of positions after which the temperature scaling starts [1]"},
      score.temperature_floor, {1, std::int64_t{1} << 40}, kOptional);
}

template <class Io, class Spec>
void latent_fields(Io& io, Spec& latent) {
  io.integer(
      {"q_rank",
       "width of the latent from which queries are projected; 0: queries have one projection [0]"},
      latent.q_rank, kCount, kOptional);
  io.integer({"kv_rank", "width of the latent per token from which keys and values are projected"},
             latent.kv_rank, {});
  io.integer({"nope_dim", "part of a query or key head without rotary embedding"}, latent.nope_dim,
             kCount);
  io.integer(
      {"rope_dim",
       "part of a query or key head with rotary embedding; all heads share this part of the key"},
      latent.rope_dim, kCount);
  io.integer({"value_dim", "size of a value head"}, latent.value_dim, {});
}

// Attention fields that few models have.
template <class Io, class Spec>
void attention_extras(Io& io, Spec& attention) {
  io.integer({"window",
              "sliding window: number of positions that a query attends to, including its own; 0: "
              "all earlier positions [0]"},
             attention.window, {0, std::int64_t{1} << 40}, kOptional);
  io.integer({"chunk",
              "length of attention chunks in tokens: a query attends to its own chunk only (LLaMA "
              "4); 0: no chunks [0]"},
             attention.chunk, {0, std::int64_t{1} << 40}, kOptional);
  count_field(io,
              {"chosen",
               "number of positions that an indexer selects per query (sparse attention of "
               "DeepSeek-V3.2); 0: all [0]"},
              attention.chosen, kPositions);
  count_field(io, {"value_dim", "size of a value head; 0: head_dim [0]"}, attention.value_dim);
  io.when(attention.key_values != KeyValueSource::kProjected, [&](auto& inner) {
    inner.choice({"key_values",
                  "source of keys and values: two projections, one projection for both, or keys "
                  "and values of an earlier layer [projected]"},
                 attention.key_values, every<KeyValueSource>(), kOptional);
  });
  io.choice({"qk_norm",
             "norm of queries and keys; head: RMSNorm per head; plain: head without weights, after "
             "rotation; width: RMSNorm over all heads; each_head: LayerNorm with its own weights "
             "per head [none]"},
            attention.qk_norm, every<QkNorm>(), kOptional);
  io.flag({"qkv_bias",
           "query, key and value projections have biases even if linear_bias is false [false]"},
          attention.qkv_bias, kOptional);
  io.flag({"output_bias", "the output projection has a bias even if linear_bias is false [false]"},
          attention.output_bias, kOptional);
  io.flag(
      {"output_gate",
       "a sigmoid gate from a further projection of the input scales the attention output [false]"},
      attention.output_gate, kOptional);
  io.object_if(attention.rotary != RotaryShape{},
               {"rotary", "variants of rotary position embeddings"},
               [&](auto& inner) { rotary_fields(inner, attention.rotary); });
  io.object_if(attention.score != ScoreShape{},
               {"score", "changes of the attention scores before and in the softmax"},
               [&](auto& inner) { score_fields(inner, attention.score); });
  io.object_if(attention.latent != LatentShape{},
               {"latent", "multi-head latent attention (DeepSeek-V2)"},
               [&](auto& inner) { latent_fields(inner, attention.latent); });
}

template <class Spec>
bool has_extras(const Spec& attention) {
  Spec plain;
  plain.heads = attention.heads;
  plain.kv_heads = attention.kv_heads;
  plain.head_dim = attention.head_dim;
  plain.position = attention.position;
  plain.rope_theta = attention.rope_theta;
  return attention != plain;
}

template <class Io, class Spec>
void attention_fields(Io& io, Spec& attention) {
  io.integer({"heads", "number of query heads"}, attention.heads, {1, 1 << 16});
  io.integer(
      {"kv_heads", "number of key-value heads; equal to heads without grouped-query attention"},
      attention.kv_heads, {1, 1 << 16});
  io.integer({"head_dim", "size of a query or key head; with latent attention nope_dim + rope_dim"},
             attention.head_dim, {});
  io.choice({"position", "position encoding: ALiBi bias, learned table, rotary embedding, or none"},
            attention.position, every<PositionKind>());
  io.number({"rope_theta", "base of rotary position embeddings [10000]"}, attention.rope_theta,
            {1, 1e12}, kOptional);
  io.object_if(has_extras<AttentionShape>(attention),
               {"extras", "attention features that only some models have"},
               [&](auto& inner) { attention_extras(inner, attention); });
}

}  // namespace tpsim
