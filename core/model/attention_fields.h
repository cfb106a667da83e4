// Fields of the attention of a block in model files, and helpers of all fields of models.
#pragma once

#include "core/json/json_fields.h"
#include "core/json/key_meanings.h"
#include "core/model/block_shape.h"

namespace tpsim {

// Keys of several objects.
inline constexpr FieldKey kMixerKey = key_at("model/mixer");
inline constexpr FieldKey kAttentionKey = key_at("model/attention");
inline constexpr FieldKey kRecurrentKey = key_at("model/recurrent");
inline constexpr FieldKey kFfnKey = key_at("model/ffn_hidden");
inline constexpr FieldKey kExpertsKey = key_at("model/experts");
inline constexpr FieldKey kPlannedKey = key_at("model/planned");

inline constexpr IntRange kCount{0, std::int64_t{1} << 24};

// An integer that files omit if it is 0.
template <class Io, class Int>
void count_field(Io& io, const FieldKey& key, Int& count, IntRange range = kCount) {
  io.when(count != 0, [&](auto& inner) { inner.integer(key, count, range, kOptional); });
}

inline constexpr IntRange kPositions{0, std::int64_t{1} << 40};

template <class Io, class Spec>
void stretch_fields(Io& io, Spec& stretch) {
  io.choice(key_at("model/stretch.kind"), stretch.kind, every<RotaryScaling>());
  io.number(key_at("model/factor"), stretch.factor, {0, 1e6}, kOptional);
  io.integer(key_at("model/original_positions"), stretch.original_positions,
             {0, std::int64_t{1} << 40}, kOptional);
  io.number(key_at("model/low_freq_factor"), stretch.low_freq_factor, {0, 1e6}, kOptional);
  io.number(key_at("model/high_freq_factor"), stretch.high_freq_factor, {0, 1e6}, kOptional);
  io.number(key_at("model/beta_fast"), stretch.beta_fast, {0, 1e6}, kOptional);
  io.number(key_at("model/beta_slow"), stretch.beta_slow, {0, 1e6}, kOptional);
  io.flag(key_at("model/truncate"), stretch.truncate, kOptional);
  io.number(key_at("model/mscale"), stretch.mscale, {0, 1e6}, kOptional);
  io.number(key_at("model/mscale_all_dim"), stretch.mscale_all_dim, {0, 1e6}, kOptional);
  io.number(key_at("model/attention_factor"), stretch.attention_factor, {0, 1e6}, kOptional);
  io.numbers(key_at("model/short_factors"), stretch.short_factors, {0, 1e9});
  io.numbers(key_at("model/long_factors"), stretch.long_factors, {0, 1e9});
}

template <class Io, class Spec>
void rotary_fields(Io& io, Spec& rotary) {
  io.number(key_at("model/fraction"), rotary.fraction, {0, 1}, kOptional);
  io.flag(key_at("model/neighbours"), rotary.neighbours, kOptional);
  io.object_if(rotary.stretch != RotaryStretch{}, key_at("model/stretch"),
               [&](auto& inner) { stretch_fields(inner, rotary.stretch); });
}

template <class Io, class Spec>
void score_fields(Io& io, Spec& score) {
  io.number(key_at("model/scale"), score.scale, {0, 1e6}, kOptional);
  io.number(key_at("model/cap"), score.cap, {0, 1e6}, kOptional);
  io.flag(key_at("model/sinks"), score.sinks, kOptional);
  io.number(key_at("model/temperature"), score.temperature, {0, 1e6}, kOptional);
  io.integer(key_at("model/temperature_floor"), score.temperature_floor, {1, std::int64_t{1} << 40},
             kOptional);
}

template <class Io, class Spec>
void latent_fields(Io& io, Spec& latent) {
  io.integer(key_at("model/q_rank"), latent.q_rank, kCount, kOptional);
  io.integer(key_at("model/kv_rank"), latent.kv_rank, {});
  io.integer(key_at("model/nope_dim"), latent.nope_dim, kCount);
  io.integer(key_at("model/rope_dim"), latent.rope_dim, kCount);
  io.integer(key_at("model/latent.value_dim"), latent.value_dim, {});
}

// Attention fields that few models have.
template <class Io, class Spec>
void attention_extras(Io& io, Spec& attention) {
  io.integer(key_at("model/attention.window"), attention.window, {0, std::int64_t{1} << 40},
             kOptional);
  io.integer(key_at("model/attention.chunk"), attention.chunk, {0, std::int64_t{1} << 40},
             kOptional);
  count_field(io, key_at("model/chosen"), attention.chosen, kPositions);
  count_field(io, key_at("model/attention.value_dim"), attention.value_dim);
  io.when(attention.key_values != KeyValueSource::kProjected, [&](auto& inner) {
    inner.choice(key_at("model/key_values"), attention.key_values, every<KeyValueSource>(),
                 kOptional);
  });
  io.choice(key_at("model/qk_norm"), attention.qk_norm, every<QkNorm>(), kOptional);
  io.flag(key_at("model/qkv_bias"), attention.qkv_bias, kOptional);
  io.flag(key_at("model/output_bias"), attention.output_bias, kOptional);
  io.flag(key_at("model/output_gate"), attention.output_gate, kOptional);
  io.object_if(attention.rotary != RotaryShape{}, key_at("model/rotary"),
               [&](auto& inner) { rotary_fields(inner, attention.rotary); });
  io.object_if(attention.score != ScoreShape{}, key_at("model/attention.score"),
               [&](auto& inner) { score_fields(inner, attention.score); });
  io.object_if(attention.latent != LatentShape{}, key_at("model/attention.latent"),
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
  io.integer(key_at("model/attention.heads"), attention.heads, {1, 1 << 16});
  io.integer(key_at("model/kv_heads"), attention.kv_heads, {1, 1 << 16});
  io.integer(key_at("model/head_dim"), attention.head_dim, {});
  io.choice(key_at("model/position"), attention.position, every<PositionKind>());
  io.number(key_at("model/rope_theta"), attention.rope_theta, {1, 1e12}, kOptional);
  io.object_if(has_extras<AttentionShape>(attention), key_at("model/attention.extras"),
               [&](auto& inner) { attention_extras(inner, attention); });
}

}  // namespace tpsim
