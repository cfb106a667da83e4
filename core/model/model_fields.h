// Fields of a model in model files and plan files. Files omit optional fields with default values.
#pragma once

#include "core/json/json_fields.h"
#include "core/model/attention_fields.h"
#include "core/model/block_shape.h"
#include "core/model/model_spec.h"

namespace tpsim {

template <class Io, class Spec>
void planned_fields(Io& io, Spec& op) {
  io.text(key_at("model/name"), op.name);
  io.choice(key_at("model/kind"), op.kind, every<PlannedOpKind>());
  io.choice(key_at("model/sharding"), op.sharding, every<PlannedSharding>(), kOptional);
  count_field(io, key_at("model/width"), op.width);
  count_field(io, key_at("model/columns"), op.columns);
  count_field(io, key_at("model/parameters"), op.parameters, kPositions);
  count_field(io, key_at("model/moved"), op.moved);
  count_field(io, key_at("model/heads"), op.heads, {0, 1 << 16});
  count_field(io, key_at("model/key_dim"), op.key_dim);
  count_field(io, key_at("model/value_dim"), op.value_dim);
  count_field(io, key_at("model/window"), op.window, kPositions);
  count_field(io, key_at("model/stride"), op.stride);
  count_field(io, key_at("model/most"), op.most, kPositions);
}

template <class Io, class Ops>
void planned_list(Io& io, const FieldKey& key, Ops& ops) {
  io.when(!ops.empty(), [&](auto& outer) {
    outer.objects(
        key, ops, [](auto& inner, auto& op) { planned_fields(inner, op); }, kOptional);
  });
}

template <class Io, class Spec>
void part_fields(Io& io, Spec& part) {
  io.text(key_at("model/part.name"), part.name);
  count_field(io, key_at("model/layers"), part.layers, {0, 1 << 14});
  count_field(io, key_at("model/patches"), part.patches);
  count_field(io, key_at("model/items"), part.items);
  planned_list(io, key_at("model/layer_ops"), part.layer_ops);
  planned_list(io, key_at("model/ops"), part.ops);
}

template <class Io, class Spec>
void router_fields(Io& io, Spec& router) {
  io.choice(key_at("model/score"), router.score, every<RouterScore>());
  io.flag(key_at("model/renormalises"), router.renormalises, kOptional);
  io.number(key_at("model/scaling"), router.scaling, {0, 1e6}, kOptional);
  io.flag(key_at("model/correction_bias"), router.correction_bias, kOptional);
  io.integer(key_at("model/groups"), router.groups, {1, 1 << 16}, kOptional);
  io.integer(key_at("model/groups_kept"), router.groups_kept, {1, 1 << 16}, kOptional);
  io.flag(key_at("model/bias"), router.bias, kOptional);
  io.flag(key_at("model/scales_input"), router.scales_input, kOptional);
}

template <class Io, class Spec>
void expert_extras(Io& io, Spec& experts) {
  io.flag(key_at("model/dropless"), experts.dropless, kOptional);
  io.integer(key_at("model/shared_ffn"), experts.shared_ffn, kCount, kOptional);
  io.flag(key_at("model/shared_gate"), experts.shared_gate, kOptional);
  io.integer(key_at("model/latent"), experts.latent, kCount, kOptional);
  io.flag(key_at("model/expert.bias"), experts.bias, kOptional);
  io.object_if(!experts.counts.empty(), key_at("model/measured"), [&](auto& inner) {
    inner.numbers(key_at("model/counts"), experts.counts, {0, 1e15});
  });
  io.object_if(experts.router != RouterShape{}, key_at("model/router"),
               [&](auto& inner) { router_fields(inner, experts.router); });
}

template <class Io, class Spec>
void expert_fields(Io& io, Spec& experts) {
  ExpertShape plain;
  plain.count = experts.count;
  plain.per_token = experts.per_token;
  plain.capacity_factor = experts.capacity_factor;
  io.integer(key_at("model/count"), experts.count, {1, 1 << 16});
  io.integer(key_at("model/per_token"), experts.per_token, {1, 1 << 16});
  io.number(key_at("model/capacity_factor"), experts.capacity_factor, {0.01, 1e4}, kOptional);
  io.object_if(experts != plain, key_at("model/extras"),
               [&](auto& inner) { expert_extras(inner, experts); });
}

template <class Io, class Spec>
void recurrent_fields(Io& io, Spec& recurrent) {
  io.integer(key_at("model/recurrent.heads"), recurrent.heads, {});
  io.integer(key_at("model/key_heads"), recurrent.key_heads, {});
  io.integer(key_at("model/recurrent.key_dim"), recurrent.key_dim, {});
  io.integer(key_at("model/recurrent.value_dim"), recurrent.value_dim, {});
  io.integer(key_at("model/convolution"), recurrent.convolution, kCount, kOptional);
  io.flag(key_at("model/convolution_bias"), recurrent.convolution_bias, kOptional);
  io.integer(key_at("model/chunk"), recurrent.chunk, {1, 1 << 16}, kOptional);
  io.when(recurrent.channel_decay, [&](auto& inner) {
    inner.flag(key_at("model/channel_decay"), recurrent.channel_decay, kOptional);
  });
  io.when(!recurrent.wide_gate, [&](auto& inner) {
    inner.flag(key_at("model/wide_gate"), recurrent.wide_gate, kOptional);
  });
}

// The trained weights of a block. Absent: all.
template <class Io, class Spec>
void trained_field(Io& io, Spec& block) {
  io.when(block.trained != kAllParts, [&](auto& inner) {
    auto parts = listed_parts(block.trained);  // `block` is const for a writer
    inner.choices(key_at("model/trained"), parts, every<WeightPart>());
    if constexpr (!std::is_const_v<Spec>) block.trained = parts_in(parts);
  });
}

template <class Io, class Spec>
void block_fields(Io& io, Spec& block) {
  const bool attends = block.mixer == MixerKind::kAttention;
  io.choice(kMixerKey, block.mixer, every<MixerKind>(), kOptional);
  io.object_if(attends, kAttentionKey,
               [&](auto& inner) { attention_fields(inner, block.attention); });
  io.object_if(block.recurrent != RecurrentShape{}, kRecurrentKey,
               [&](auto& inner) { recurrent_fields(inner, block.recurrent); });
  io.integer(kFfnKey, block.ffn_hidden, kCount);
  io.object_if(block.experts.count > 0, kExpertsKey,
               [&](auto& inner) { expert_fields(inner, block.experts); });
  planned_list(io, kPlannedKey, block.planned);
  trained_field(io, block);
}

// Model-level fields that few models have.
template <class Io, class Spec>
void model_extras(Io& io, Spec& model) {
  io.text(key_at("model/family"), model.family, kOptional);
  io.integer(key_at("model/context"), model.context, {0, std::int64_t{1} << 40}, kOptional);
  io.choice(kMixerKey, model.mixer, every<MixerKind>(), kOptional);
  io.object_if(model.recurrent != RecurrentShape{}, kRecurrentKey,
               [&](auto& inner) { recurrent_fields(inner, model.recurrent); });
  io.choice(key_at("model/norm_place"), model.norm_place, every<NormPlace>(), kOptional);
  io.flag(key_at("model/norm_bias"), model.norm_bias, kOptional);
  io.flag(key_at("model/norm_plus_one"), model.norm_plus_one, kOptional);
  io.number(key_at("model/mlp_limit"), model.mlp_limit, {0, 1e9}, kOptional);
  io.when(model.activation_ops != ActivationOps::kOneKernel, [&](auto& inner) {
    inner.choice(key_at("model/activation_ops"), model.activation_ops, every<ActivationOps>(),
                 kOptional);
  });
  io.flag(key_at("model/mlp_bias"), model.mlp_bias, kOptional);
  io.number(key_at("model/embedding_scale"), model.ends.embedding_scale, {0, 1e9}, kOptional);
  io.number(key_at("model/logit_scale"), model.ends.logit_scale, {0, 1e9}, kOptional);
  io.number(key_at("model/logit_cap"), model.ends.logit_cap, {0, 1e9}, kOptional);
  io.flag(key_at("model/head_bias"), model.ends.head_bias, kOptional);
  io.integer(key_at("model/positions"), model.ends.positions, kCount, kOptional);
  io.integer(key_at("model/prediction_layers"), model.ends.prediction_layers, kCount, kOptional);
  io.when(model.ends.prediction_shared, [&](auto& inner) {
    inner.flag(key_at("model/prediction_shared"), model.ends.prediction_shared, kOptional);
  });
  io.when(model.ends.streams != 1, [&](auto& inner) {
    inner.integer(key_at("model/streams"), model.ends.streams, {1, 1 << 10}, kOptional);
  });
  planned_list(io, kPlannedKey, model.planned);
  trained_field(io, model);
  io.when(!model.ends.parts.empty(), [&](auto& outer) {
    outer.objects(
        key_at("model/parts"), model.ends.parts,
        [](auto& inner, auto& part) { part_fields(inner, part); }, kOptional);
  });
}

// Whether the model has an optional field with a non-default value, which model_extras() writes.
inline bool has_extras(const ModelSpec& model) {
  const ModelSpec plain;
  return !model.family.empty() || model.context != 0 || model.mixer != plain.mixer ||
         model.recurrent != plain.recurrent || model.norm_place != plain.norm_place ||
         model.norm_bias != plain.norm_bias || model.norm_plus_one || model.mlp_limit != 0 ||
         model.activation_ops != plain.activation_ops || model.mlp_bias || !model.planned.empty() ||
         model.trained != kAllParts || model.ends != plain.ends;
}

template <class Io, class Spec>
void kinds_fields(Io& io, Spec& model) {
  io.objects(key_at("model/others"), model.other_blocks,
             [](auto& inner, auto& block) { block_fields(inner, block); });
  io.integers(key_at("model/of_layers"), model.block_kinds, {0, 1 << 16});
}

template <class Io, class Spec>
void model_fields(Io& io, Spec& model) {
  io.text(key_at("model/model.name"), model.name);
  io.text(key_at("model/source"), model.source);
  io.integer(key_at("model/model.layers"), model.layers, {});
  io.integer(key_at("model/hidden"), model.hidden, {});
  io.integer(kFfnKey, model.ffn_hidden, kCount);
  io.integer(key_at("model/vocab"), model.vocab, {});
  io.integer(key_at("model/vocab_multiple"), model.vocab_multiple, {1, 1 << 20}, kOptional);
  io.integer(key_at("model/seq"), model.seq, {});
  io.object(kAttentionKey, [&](auto& inner) { attention_fields(inner, model.attention); });
  io.choice(key_at("model/norm"), model.norm, every<NormKind>());
  io.choice(key_at("model/mlp"), model.mlp, every<MlpKind>());
  io.object_if(model.experts.count > 0, kExpertsKey,
               [&](auto& inner) { expert_fields(inner, model.experts); });
  io.flag(key_at("model/linear_bias"), model.linear_bias);
  io.flag(key_at("model/fused_qkv"), model.fused_qkv);
  io.flag(key_at("model/tied_embedding"), model.tied_embedding);
  io.flag(key_at("model/embedding_norm"), model.embedding_norm, kOptional);
  io.flag(key_at("model/residual_from_after_norm"), model.residual_from_after_norm, kOptional);
  io.number(key_at("model/attention_dropout"), model.attention_dropout, {0, 0.99}, kOptional);
  io.number(key_at("model/hidden_dropout"), model.hidden_dropout, {0, 0.99}, kOptional);
  io.number(key_at("model/norm_epsilon"), model.norm_epsilon, {0, 1}, kOptional);
  io.number(key_at("model/initializer_range"), model.initializer_range, {0, 10}, kOptional);
  io.object_if(has_extras(model), key_at("model/model.extras"),
               [&](auto& inner) { model_extras(inner, model); });
  io.object_if(model.usual != UsualRun{}, key_at("model/usual"), [&](auto& inner) {
    inner.text(key_at("model/cluster"), model.usual.cluster);
    inner.integer(key_at("model/global_batch"), model.usual.global_batch, {});
  });
  io.object_if(!model.other_blocks.empty(), key_at("model/blocks"),
               [&](auto& inner) { kinds_fields(inner, model); });
}

}  // namespace tpsim
