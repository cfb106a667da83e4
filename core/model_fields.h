// The keys of a model, for model files and for the models inside plan files.
#pragma once

#include "core/json_fields.h"
#include "core/model_json.h"

namespace tpsim {

template <class Io, class Spec>
void attention_fields(Io& io, Spec& attention) {
  io.integer("heads", attention.heads, {1, 1 << 16});
  io.integer("kv_heads", attention.kv_heads, {1, 1 << 16});
  io.integer("head_dim", attention.head_dim, {});
  io.choice("position", attention.position,
            {PositionKind::kAlibi, PositionKind::kLearned, PositionKind::kRotary});
  io.number("rope_theta", attention.rope_theta, {1, 1e12}, kOptional);
}

template <class Io, class Spec>
void expert_fields(Io& io, Spec& experts) {
  io.integer("count", experts.count, {1, 1 << 16});
  io.integer("per_token", experts.per_token, {1, 1 << 16});
  io.number("capacity_factor", experts.capacity_factor, {0.01, 1e4}, kOptional);
}

template <class Io, class Spec>
void model_fields(Io& io, Spec& model) {
  io.text("name", model.name);
  io.text("source", model.source);
  io.integer("layers", model.layers, {});
  io.integer("hidden", model.hidden, {});
  io.integer("ffn_hidden", model.ffn_hidden, {});
  io.integer("vocab", model.vocab, {});
  io.integer("vocab_multiple", model.vocab_multiple, {1, 1 << 20}, kOptional);
  io.integer("seq", model.seq, {});
  io.object("attention", [&](auto& inner) { attention_fields(inner, model.attention); });
  io.choice("norm", model.norm, {NormKind::kLayerNorm, NormKind::kRmsNorm});
  io.choice("mlp", model.mlp, {MlpKind::kGelu, MlpKind::kSwiglu});
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
}

}  // namespace tpsim
