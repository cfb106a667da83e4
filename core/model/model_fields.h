// Fields of a model in model files and plan files. Files omit optional fields with default values.
#pragma once

#include "core/json/json_fields.h"
#include "core/model/block_shape.h"
#include "core/model/model_spec.h"

namespace tpsim {

inline constexpr IntRange kCount{0, std::int64_t{1} << 24};

// An integer that files omit if it is 0.
template <class Io, class Int>
void count_field(Io& io, std::string_view key, Int& count, IntRange range = kCount) {
  io.when(count != 0, [&](auto& inner) { inner.integer(key, count, range, kOptional); });
}

inline constexpr IntRange kPositions{0, std::int64_t{1} << 40};

template <class Io, class Spec>
void planned_fields(Io& io, Spec& op) {
  io.text("name", op.name);
  io.choice("kind", op.kind, every<PlannedOpKind>());
  io.choice("sharding", op.sharding, every<PlannedSharding>(), kOptional);
  count_field(io, "width", op.width);
  count_field(io, "columns", op.columns);
  count_field(io, "parameters", op.parameters, kPositions);
  count_field(io, "moved", op.moved);
  count_field(io, "heads", op.heads, {0, 1 << 16});
  count_field(io, "key_dim", op.key_dim);
  count_field(io, "value_dim", op.value_dim);
  count_field(io, "window", op.window, kPositions);
  count_field(io, "stride", op.stride);
  count_field(io, "most", op.most, kPositions);
}

template <class Io, class Ops>
void planned_list(Io& io, std::string_view key, Ops& ops) {
  io.when(!ops.empty(), [&](auto& outer) {
    outer.objects(
        key, ops, [](auto& inner, auto& op) { planned_fields(inner, op); }, kOptional);
  });
}

template <class Io, class Spec>
void part_fields(Io& io, Spec& part) {
  io.text("name", part.name);
  count_field(io, "layers", part.layers, {0, 1 << 14});
  count_field(io, "patches", part.patches);
  count_field(io, "items", part.items);
  planned_list(io, "layer_ops", part.layer_ops);
  planned_list(io, "ops", part.ops);
}

template <class Io, class Spec>
void stretch_fields(Io& io, Spec& stretch) {
  io.choice("kind", stretch.kind, every<RotaryScaling>());
  io.number("factor", stretch.factor, {0, 1e6}, kOptional);
  io.integer("original_positions", stretch.original_positions, {0, std::int64_t{1} << 40},
             kOptional);
  io.number("low_freq_factor", stretch.low_freq_factor, {0, 1e6}, kOptional);
  io.number("high_freq_factor", stretch.high_freq_factor, {0, 1e6}, kOptional);
  io.number("beta_fast", stretch.beta_fast, {0, 1e6}, kOptional);
  io.number("beta_slow", stretch.beta_slow, {0, 1e6}, kOptional);
  io.flag("truncate", stretch.truncate, kOptional);
  io.number("mscale", stretch.mscale, {0, 1e6}, kOptional);
  io.number("mscale_all_dim", stretch.mscale_all_dim, {0, 1e6}, kOptional);
  io.number("attention_factor", stretch.attention_factor, {0, 1e6}, kOptional);
  io.numbers("short_factors", stretch.short_factors, {0, 1e9});
  io.numbers("long_factors", stretch.long_factors, {0, 1e9});
}

template <class Io, class Spec>
void rotary_fields(Io& io, Spec& rotary) {
  io.number("fraction", rotary.fraction, {0, 1}, kOptional);
  io.flag("neighbours", rotary.neighbours, kOptional);
  io.object_if(rotary.stretch != RotaryStretch{}, "stretch",
               [&](auto& inner) { stretch_fields(inner, rotary.stretch); });
}

template <class Io, class Spec>
void score_fields(Io& io, Spec& score) {
  io.number("scale", score.scale, {0, 1e6}, kOptional);
  io.number("cap", score.cap, {0, 1e6}, kOptional);
  io.flag("sinks", score.sinks, kOptional);
  io.number("temperature", score.temperature, {0, 1e6}, kOptional);
  io.integer("temperature_floor", score.temperature_floor, {1, std::int64_t{1} << 40}, kOptional);
}

template <class Io, class Spec>
void latent_fields(Io& io, Spec& latent) {
  io.integer("q_rank", latent.q_rank, kCount, kOptional);
  io.integer("kv_rank", latent.kv_rank, {});
  io.integer("nope_dim", latent.nope_dim, kCount);
  io.integer("rope_dim", latent.rope_dim, kCount);
  io.integer("value_dim", latent.value_dim, {});
}

// Attention fields that few models have.
template <class Io, class Spec>
void attention_extras(Io& io, Spec& attention) {
  io.integer("window", attention.window, {0, std::int64_t{1} << 40}, kOptional);
  io.integer("chunk", attention.chunk, {0, std::int64_t{1} << 40}, kOptional);
  count_field(io, "chosen", attention.chosen, kPositions);
  count_field(io, "value_dim", attention.value_dim);
  io.when(attention.key_values != KeyValueSource::kProjected, [&](auto& inner) {
    inner.choice("key_values", attention.key_values, every<KeyValueSource>(), kOptional);
  });
  io.choice("qk_norm", attention.qk_norm, every<QkNorm>(), kOptional);
  io.flag("qkv_bias", attention.qkv_bias, kOptional);
  io.flag("output_bias", attention.output_bias, kOptional);
  io.flag("output_gate", attention.output_gate, kOptional);
  io.object_if(attention.rotary != RotaryShape{}, "rotary",
               [&](auto& inner) { rotary_fields(inner, attention.rotary); });
  io.object_if(attention.score != ScoreShape{}, "score",
               [&](auto& inner) { score_fields(inner, attention.score); });
  io.object_if(attention.latent != LatentShape{}, "latent",
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
  io.integer("heads", attention.heads, {1, 1 << 16});
  io.integer("kv_heads", attention.kv_heads, {1, 1 << 16});
  io.integer("head_dim", attention.head_dim, {});
  io.choice("position", attention.position, every<PositionKind>());
  io.number("rope_theta", attention.rope_theta, {1, 1e12}, kOptional);
  io.object_if(has_extras<AttentionShape>(attention), "extras",
               [&](auto& inner) { attention_extras(inner, attention); });
}

template <class Io, class Spec>
void router_fields(Io& io, Spec& router) {
  io.choice("score", router.score, every<RouterScore>());
  io.flag("renormalises", router.renormalises, kOptional);
  io.number("scaling", router.scaling, {0, 1e6}, kOptional);
  io.flag("correction_bias", router.correction_bias, kOptional);
  io.integer("groups", router.groups, {1, 1 << 16}, kOptional);
  io.integer("groups_kept", router.groups_kept, {1, 1 << 16}, kOptional);
  io.flag("bias", router.bias, kOptional);
  io.flag("scales_input", router.scales_input, kOptional);
}

template <class Io, class Spec>
void expert_extras(Io& io, Spec& experts) {
  io.flag("dropless", experts.dropless, kOptional);
  io.integer("shared_ffn", experts.shared_ffn, kCount, kOptional);
  io.flag("shared_gate", experts.shared_gate, kOptional);
  io.integer("latent", experts.latent, kCount, kOptional);
  io.flag("bias", experts.bias, kOptional);
  io.object_if(!experts.counts.empty(), "measured", [&](auto& inner) {
    inner.numbers("counts", experts.counts, {0, 1e15});
  });
  io.object_if(experts.router != RouterShape{}, "router",
               [&](auto& inner) { router_fields(inner, experts.router); });
}

template <class Io, class Spec>
void expert_fields(Io& io, Spec& experts) {
  ExpertShape plain;
  plain.count = experts.count;
  plain.per_token = experts.per_token;
  plain.capacity_factor = experts.capacity_factor;
  io.integer("count", experts.count, {1, 1 << 16});
  io.integer("per_token", experts.per_token, {1, 1 << 16});
  io.number("capacity_factor", experts.capacity_factor, {0.01, 1e4}, kOptional);
  io.object_if(experts != plain, "extras", [&](auto& inner) { expert_extras(inner, experts); });
}

template <class Io, class Spec>
void recurrent_fields(Io& io, Spec& recurrent) {
  io.integer("heads", recurrent.heads, {});
  io.integer("key_heads", recurrent.key_heads, {});
  io.integer("key_dim", recurrent.key_dim, {});
  io.integer("value_dim", recurrent.value_dim, {});
  io.integer("convolution", recurrent.convolution, kCount, kOptional);
  io.flag("convolution_bias", recurrent.convolution_bias, kOptional);
  io.integer("chunk", recurrent.chunk, {1, 1 << 16}, kOptional);
  io.when(recurrent.channel_decay,
          [&](auto& inner) { inner.flag("channel_decay", recurrent.channel_decay, kOptional); });
  io.when(!recurrent.wide_gate,
          [&](auto& inner) { inner.flag("wide_gate", recurrent.wide_gate, kOptional); });
}

template <class Io, class Spec>
void block_fields(Io& io, Spec& block) {
  const bool attends = block.mixer == MixerKind::kAttention;
  io.choice("mixer", block.mixer, every<MixerKind>(), kOptional);
  io.object_if(attends, "attention",
               [&](auto& inner) { attention_fields(inner, block.attention); });
  io.object_if(block.recurrent != RecurrentShape{}, "recurrent",
               [&](auto& inner) { recurrent_fields(inner, block.recurrent); });
  io.integer("ffn_hidden", block.ffn_hidden, kCount);
  io.object_if(block.experts.count > 0, "experts",
               [&](auto& inner) { expert_fields(inner, block.experts); });
  planned_list(io, "planned", block.planned);
}

// Model-level fields that few models have.
template <class Io, class Spec>
void model_extras(Io& io, Spec& model) {
  io.text("family", model.family, kOptional);
  io.integer("context", model.context, {0, std::int64_t{1} << 40}, kOptional);
  io.choice("mixer", model.mixer, every<MixerKind>(), kOptional);
  io.object_if(model.recurrent != RecurrentShape{}, "recurrent",
               [&](auto& inner) { recurrent_fields(inner, model.recurrent); });
  io.choice("norm_place", model.norm_place, every<NormPlace>(), kOptional);
  io.flag("norm_bias", model.norm_bias, kOptional);
  io.flag("norm_plus_one", model.norm_plus_one, kOptional);
  io.number("mlp_limit", model.mlp_limit, {0, 1e9}, kOptional);
  io.when(model.activation_ops != ActivationOps::kOneKernel, [&](auto& inner) {
    inner.choice("activation_ops", model.activation_ops, every<ActivationOps>(), kOptional);
  });
  io.flag("mlp_bias", model.mlp_bias, kOptional);
  io.number("embedding_scale", model.ends.embedding_scale, {0, 1e9}, kOptional);
  io.number("logit_scale", model.ends.logit_scale, {0, 1e9}, kOptional);
  io.number("logit_cap", model.ends.logit_cap, {0, 1e9}, kOptional);
  io.flag("head_bias", model.ends.head_bias, kOptional);
  io.integer("positions", model.ends.positions, kCount, kOptional);
  io.integer("prediction_layers", model.ends.prediction_layers, kCount, kOptional);
  io.when(model.ends.prediction_shared, [&](auto& inner) {
    inner.flag("prediction_shared", model.ends.prediction_shared, kOptional);
  });
  io.when(model.ends.streams != 1, [&](auto& inner) {
    inner.integer("streams", model.ends.streams, {1, 1 << 10}, kOptional);
  });
  planned_list(io, "planned", model.planned);
  io.when(!model.ends.parts.empty(), [&](auto& outer) {
    outer.objects(
        "parts", model.ends.parts, [](auto& inner, auto& part) { part_fields(inner, part); },
        kOptional);
  });
}

// Whether the model has an optional field with a non-default value, which model_extras() writes.
inline bool has_extras(const ModelSpec& model) {
  const ModelSpec plain;
  return !model.family.empty() || model.context != 0 || model.mixer != plain.mixer ||
         model.recurrent != plain.recurrent || model.norm_place != plain.norm_place ||
         model.norm_bias != plain.norm_bias || model.norm_plus_one || model.mlp_limit != 0 ||
         model.activation_ops != plain.activation_ops || model.mlp_bias || !model.planned.empty() ||
         model.ends != plain.ends;
}

template <class Io, class Spec>
void kinds_fields(Io& io, Spec& model) {
  io.objects("others", model.other_blocks,
             [](auto& inner, auto& block) { block_fields(inner, block); });
  io.integers("of_layers", model.block_kinds, {0, 1 << 16});
}

template <class Io, class Spec>
void model_fields(Io& io, Spec& model) {
  io.text("name", model.name);
  io.text("source", model.source);
  io.integer("layers", model.layers, {});
  io.integer("hidden", model.hidden, {});
  io.integer("ffn_hidden", model.ffn_hidden, kCount);
  io.integer("vocab", model.vocab, {});
  io.integer("vocab_multiple", model.vocab_multiple, {1, 1 << 20}, kOptional);
  io.integer("seq", model.seq, {});
  io.object("attention", [&](auto& inner) { attention_fields(inner, model.attention); });
  io.choice("norm", model.norm, every<NormKind>());
  io.choice("mlp", model.mlp, every<MlpKind>());
  io.object_if(model.experts.count > 0, "experts",
               [&](auto& inner) { expert_fields(inner, model.experts); });
  io.flag("linear_bias", model.linear_bias);
  io.flag("fused_qkv", model.fused_qkv);
  io.flag("tied_embedding", model.tied_embedding);
  io.flag("embedding_norm", model.embedding_norm, kOptional);
  io.flag("residual_from_after_norm", model.residual_from_after_norm, kOptional);
  io.number("attention_dropout", model.attention_dropout, {0, 0.99}, kOptional);
  io.number("hidden_dropout", model.hidden_dropout, {0, 0.99}, kOptional);
  io.number("norm_epsilon", model.norm_epsilon, {0, 1}, kOptional);
  io.number("initializer_range", model.initializer_range, {0, 10}, kOptional);
  io.object_if(has_extras(model), "extras", [&](auto& inner) { model_extras(inner, model); });
  io.object_if(model.usual != UsualRun{}, "usual", [&](auto& inner) {
    inner.text("cluster", model.usual.cluster);
    inner.integer("global_batch", model.usual.global_batch, {});
  });
  io.object_if(!model.other_blocks.empty(), "blocks",
               [&](auto& inner) { kinds_fields(inner, model); });
}

}  // namespace tpsim
