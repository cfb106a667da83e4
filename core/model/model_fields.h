// Fields of a model in model files and plan files. Files omit optional fields with default values.
#pragma once

#include "core/json/json_fields.h"
#include "core/model/attention_fields.h"
#include "core/model/block_shape.h"
#include "core/model/model_spec.h"

namespace tpsim {

template <class Io, class Spec>
void planned_fields(Io& io, Spec& op) {
  io.text({"name", "name of the op in reports"}, op.name);
  io.choice({"kind",
             "linear: GEMM with a weight matrix; pairs: attention scores and weighted sum of "
             "values; pass: elementwise kernel or norm"},
            op.kind, every<PlannedOpKind>());
  io.choice({"sharding",
             "sharding over tensor-parallel ranks; whole: not sharded; tokens: by tokens, with "
             "sequence parallelism; rows: by output features or heads (ColumnParallelLinear); "
             "columns: by input features (RowParallelLinear) [whole]"},
            op.sharding, every<PlannedSharding>(), kOptional);
  count_field(io,
              {"width",
               "linear: rows of the weight matrix (output width); pairs, pass: elements per token "
               "saved for backward"},
              op.width);
  count_field(io, {"columns", "linear: columns of the weight matrix (input width)"}, op.columns);
  count_field(io,
              {"parameters",
               "number of trained parameters in addition to the matrix: norms, biases, tables"},
              op.parameters, kPositions);
  count_field(io, {"moved", "pass: elements per token that the forward kernel reads and writes"},
              op.moved);
  count_field(io, {"heads", "pairs: number of heads"}, op.heads, {0, 1 << 16});
  count_field(io, {"key_dim", "pairs: size of a key head"}, op.key_dim);
  count_field(io, {"value_dim", "pairs: size of a value head"}, op.value_dim);
  count_field(io, {"window", "pairs: number of last positions that a query attends to"}, op.window,
              kPositions);
  count_field(io,
              {"stride",
               "pairs: positions per compressed key, 0: no compressed keys; linear: tokens per "
               "input row, 0: 1 [0]"},
              op.stride);
  count_field(
      io, {"most", "pairs: largest number of compressed keys that a query attends to; 0: all [0]"},
      op.most, kPositions);
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
  io.text({"name", "name of the part in reports"}, part.name);
  count_field(io, {"layers", "number of layers of the part; each runs layer_ops"}, part.layers,
              {0, 1 << 14});
  count_field(io,
              {"patches",
               "tokens per image or sound, which attend to each other; 0: the ops run on the text "
               "sequence"},
              part.patches);
  count_field(io, {"items", "images or sounds per training sequence"}, part.items);
  planned_list(io, {"layer_ops", "planned ops of one layer of the part"}, part.layer_ops);
  planned_list(io, {"ops", "planned ops of the part outside its layers, run once"}, part.ops);
}

template <class Io, class Spec>
void router_fields(Io& io, Spec& router) {
  io.choice({"score",
             "chosen: softmax over the top-k logits; all: softmax over all experts; sigmoid: "
             "sigmoid of each logit"},
            router.score, every<RouterScore>());
  io.flag({"renormalises", "the weights of a token's experts are normalized to sum 1 [false]"},
          router.renormalises, kOptional);
  io.number({"scaling", "factor on the weights after normalization [1]"}, router.scaling, {0, 1e6},
            kOptional);
  io.flag({"correction_bias",
           "a bias without gradient is added to the scores for the selection only (DeepSeek-V3) "
           "[false]"},
          router.correction_bias, kOptional);
  io.integer({"groups", "number of expert groups for group-limited routing [1]"}, router.groups,
             {1, 1 << 16}, kOptional);
  io.integer({"groups_kept", "number of groups per token in which experts are selected [1]"},
             router.groups_kept, {1, 1 << 16}, kOptional);
  io.flag({"bias", "the router's linear layer has a bias [false]"}, router.bias, kOptional);
  io.flag({"scales_input",
           "weights scale the input of the experts instead of their output (LLaMA 4) [false]"},
          router.scales_input, kOptional);
}

template <class Io, class Spec>
void expert_extras(Io& io, Spec& experts) {
  io.flag({"dropless", "experts have no capacity limit, so no token is dropped [false]"},
          experts.dropless, kOptional);
  io.integer(
      {"shared_ffn",
       "hidden size of the shared expert, which processes every token; 0: no shared expert [0]"},
      experts.shared_ffn, kCount, kOptional);
  io.flag({"shared_gate",
           "a trained sigmoid gate per token scales the output of the shared expert [false]"},
          experts.shared_gate, kOptional);
  io.integer({"latent",
              "width to which tokens are projected before dispatch and from which they are "
              "projected after combine (LatentMoE of Nemotron 3); 0: no projection [0]"},
             experts.latent, kCount, kOptional);
  io.flag({"bias", "the weight matrices of the experts have biases [false]"}, experts.bias,
          kOptional);
  io.object_if(
      !experts.counts.empty(), {"measured", "expert load of a measured run"}, [&](auto& inner) {
        inner.numbers(
            {"counts",
             "token count of each expert, for one MoE layer or for all MoE layers in order"},
            experts.counts, {0, 1e15});
      });
  io.object_if(experts.router != RouterShape{},
               {"router", "how the router turns logits into weights"},
               [&](auto& inner) { router_fields(inner, experts.router); });
}

template <class Io, class Spec>
void expert_fields(Io& io, Spec& experts) {
  ExpertShape plain;
  plain.count = experts.count;
  plain.per_token = experts.per_token;
  plain.capacity_factor = experts.capacity_factor;
  io.integer({"count", "experts per MoE layer"}, experts.count, {1, 1 << 16});
  io.integer({"per_token", "experts per token (top-k)"}, experts.per_token, {1, 1 << 16});
  io.number({"capacity_factor", "slots per expert, relative to an equal share of the tokens [1]"},
            experts.capacity_factor, {0.01, 1e4}, kOptional);
  io.object_if(experts != plain, {"extras", "MoE features that only some models have"},
               [&](auto& inner) { expert_extras(inner, experts); });
}

template <class Io, class Spec>
void recurrent_fields(Io& io, Spec& recurrent) {
  io.integer({"heads", "number of value heads"}, recurrent.heads, {});
  io.integer({"key_heads", "number of key heads; Mamba-2: groups (n_groups)"}, recurrent.key_heads,
             {});
  io.integer({"key_dim", "size of a key head; Mamba-2: ssm_state_size"}, recurrent.key_dim, {});
  io.integer({"value_dim", "size of a value head"}, recurrent.value_dim, {});
  io.integer({"convolution", "kernel size of the short causal convolution; 0: none [0]"},
             recurrent.convolution, kCount, kOptional);
  io.flag({"convolution_bias", "the short convolution has a bias [false]"},
          recurrent.convolution_bias, kOptional);
  io.integer({"chunk", "tokens per chunk of the chunked scan [128]"}, recurrent.chunk, {1, 1 << 16},
             kOptional);
  io.when(recurrent.channel_decay, [&](auto& inner) {
    inner.flag(
        {"channel_decay",
         "the state decays per key channel instead of per head (Kimi Delta Attention) [false]"},
        recurrent.channel_decay, kOptional);
  });
  io.when(!recurrent.wide_gate, [&](auto& inner) {
    inner.flag({"wide_gate",
                "the output gate is one matrix as wide as the values; false: the list planned has "
                "the gate's matrices [true]"},
               recurrent.wide_gate, kOptional);
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
}

// Model-level fields that few models have.
template <class Io, class Spec>
void model_extras(Io& io, Spec& model) {
  io.text(
      {"family", "model_type in Hugging Face's config.json, whose weight names checkpoints use"},
      model.family, kOptional);
  io.integer({"context", "longest sequence in tokens that the model supports; 0: not stated [0]"},
             model.context, {0, std::int64_t{1} << 40}, kOptional);
  io.choice(kMixerKey, model.mixer, every<MixerKind>(), kOptional);
  io.object_if(model.recurrent != RecurrentShape{}, kRecurrentKey,
               [&](auto& inner) { recurrent_fields(inner, model.recurrent); });
  io.choice({"norm_place",
             "norms before, after or around each branch; one_parallel, two_parallel: attention and "
             "MLP run in parallel after one common norm or two norms [before]"},
            model.norm_place, every<NormPlace>(), kOptional);
  io.flag({"norm_bias", "LayerNorms have a bias [true]"}, model.norm_bias, kOptional);
  io.flag({"norm_plus_one", "norms multiply by 1 + weight (Gemma) [false]"}, model.norm_plus_one,
          kOptional);
  io.number(
      {"mlp_limit", "clamped_swiglu: limit of the gate and of the up projection's absolute value"},
      model.mlp_limit, {0, 1e9}, kOptional);
  io.when(model.activation_ops != ActivationOps::kOneKernel, [&](auto& inner) {
    inner.choice({"activation_ops",
                  "how transformers computes the GELU: one kernel, or several ops [one_kernel]"},
                 model.activation_ops, every<ActivationOps>(), kOptional);
  });
  io.flag({"mlp_bias", "the MLP has biases even if linear_bias is false [false]"}, model.mlp_bias,
          kOptional);
  io.number({"embedding_scale", "factor on the embeddings before the first block [1]"},
            model.ends.embedding_scale, {0, 1e9}, kOptional);
  io.number({"logit_scale", "factor on the logits [1]"}, model.ends.logit_scale, {0, 1e9},
            kOptional);
  io.number({"logit_cap", "soft cap: logits become cap x tanh(logit / cap); 0: no cap [0]"},
            model.ends.logit_cap, {0, 1e9}, kOptional);
  io.flag({"head_bias", "the output layer has a bias [false]"}, model.ends.head_bias, kOptional);
  io.integer(
      {"positions", "least number of rows of a learned position table; seq can require more [0]"},
      model.ends.positions, kCount, kOptional);
  io.integer({"prediction_layers",
              "number of multi-token prediction (MTP) layers, planned on the last stage [0]"},
             model.ends.prediction_layers, kCount, kOptional);
  io.when(model.ends.prediction_shared, [&](auto& inner) {
    inner.flag({"prediction_shared", "all MTP layers share the weights of one layer [false]"},
               model.ends.prediction_shared, kOptional);
  });
  io.when(model.ends.streams != 1, [&](auto& inner) {
    inner.integer({"streams",
                   "residual streams of hyper-connections: a stage sends this many hidden states "
                   "per token [1]"},
                  model.ends.streams, {1, 1 << 10}, kOptional);
  });
  planned_list(io, kPlannedKey, model.planned);
  io.when(!model.ends.parts.empty(), [&](auto& outer) {
    outer.objects(
        {"parts",
         "parts outside the blocks, planned on the first stage: vision or audio encoders, "
         "per-layer embedding tables"},
        model.ends.parts, [](auto& inner, auto& part) { part_fields(inner, part); }, kOptional);
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
  io.objects({"others", "kinds of blocks besides kind 0, which the keys of the model describe"},
             model.other_blocks, [](auto& inner, auto& block) { block_fields(inner, block); });
  io.integers({"of_layers", "kind of each layer: 0, or n for entry n of others, counted from 1"},
              model.block_kinds, {0, 1 << 16});
}

template <class Io, class Spec>
void model_fields(Io& io, Spec& model) {
  io.text({"name", "name in reports"}, model.name);
  io.text({"source", "publication of the model dimensions"}, model.source);
  io.integer({"layers", "number of transformer layers"}, model.layers, {});
  io.integer({"hidden", "width of the residual stream"}, model.hidden, {});
  io.integer(kFfnKey, model.ffn_hidden, kCount);
  io.integer({"vocab", "vocab size before padding"}, model.vocab, {});
  io.integer({"vocab_multiple",
              "the vocab size per tensor-parallel rank is padded to a multiple of this; 1: no "
              "padding [128]"},
             model.vocab_multiple, {1, 1 << 20}, kOptional);
  io.integer({"seq", "tokens per training sequence"}, model.seq, {});
  io.object(kAttentionKey, [&](auto& inner) { attention_fields(inner, model.attention); });
  io.choice({"norm", "kind of the norms: LayerNorm or RMSNorm"}, model.norm, every<NormKind>());
  io.choice({"mlp",
             "activation of the MLP and of experts; swiglu, geglu, clamped_swiglu and situ are "
             "gated, with a third weight matrix"},
            model.mlp, every<MlpKind>());
  io.object_if(model.experts.count > 0, kExpertsKey,
               [&](auto& inner) { expert_fields(inner, model.experts); });
  io.flag({"linear_bias", "linear layers have a bias"}, model.linear_bias);
  io.flag({"fused_qkv", "queries, keys and values are one weight matrix"}, model.fused_qkv);
  io.flag({"tied_embedding", "the output layer shares the weights of the word embeddings"},
          model.tied_embedding);
  io.flag({"embedding_norm", "a norm follows the embeddings [false]"}, model.embedding_norm,
          kOptional);
  io.flag({"residual_from_after_norm",
           "the residual connection starts after the norm (BLOOM's "
           "apply_residual_connection_post_layernorm) [false]"},
          model.residual_from_after_norm, kOptional);
  io.number({"attention_dropout", "dropout probability of the attention probabilities [0]"},
            model.attention_dropout, {0, 0.99}, kOptional);
  io.number({"hidden_dropout",
             "dropout probability of the embeddings and of the output of each branch [0]"},
            model.hidden_dropout, {0, 0.99}, kOptional);
  io.number({"norm_epsilon", "epsilon of the norms [1e-5]"}, model.norm_epsilon, {0, 1}, kOptional);
  io.number({"initializer_range", "standard deviation of the initial weights [0.02]"},
            model.initializer_range, {0, 10}, kOptional);
  io.object_if(has_extras(model), {"extras", "features that only some models have"},
               [&](auto& inner) { model_extras(inner, model); });
  io.object_if(model.usual != UsualRun{},
               {"usual", "defaults of commands with this model, from its original training"},
               [&](auto& inner) {
                 inner.text({"cluster", "catalogue name of the cluster if --cluster is not given"},
                            model.usual.cluster);
                 inner.integer(
                     {"global_batch", "sequences per step if --global-batch is not given"},
                     model.usual.global_batch, {});
               });
  io.object_if(
      !model.other_blocks.empty(),
      {"blocks",
       "for models with several kinds of blocks: the other kinds, and the kind of each layer"},
      [&](auto& inner) { kinds_fields(inner, model); });
}

}  // namespace tpsim
