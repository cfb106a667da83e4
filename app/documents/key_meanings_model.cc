#include <array>

#include "app/documents/key_meanings.h"

namespace tpsim::app {
namespace {

constexpr std::array kModelMeanings = {
    KeyMeaning{"model.source", "publication of the model dimensions"},
    KeyMeaning{"model.layers", "number of transformer layers"},
    KeyMeaning{"model.hidden", "width of the residual stream"},
    KeyMeaning{"model.ffn_hidden",
               "hidden size of the MLP, or of one expert; 0: blocks without MLP"},
    KeyMeaning{"model.vocab", "vocab size before padding"},
    KeyMeaning{"model.vocab_multiple",
               "the vocab size per tensor-parallel rank is padded to a multiple of this; 1: no "
               "padding [128]"},
    KeyMeaning{"model.seq", "tokens per training sequence"},
    KeyMeaning{"model.attention", "self-attention of the blocks"},
    KeyMeaning{"model.attention.heads", "number of query heads"},
    KeyMeaning{"model.attention.kv_heads",
               "number of key-value heads; equal to heads without grouped-query attention"},
    KeyMeaning{"model.attention.head_dim",
               "size of a query or key head; with latent attention nope_dim + rope_dim"},
    KeyMeaning{"model.attention.position",
               "position encoding: ALiBi bias, learned table, rotary embedding, or none"},
    KeyMeaning{"model.attention.rope_theta", "base of rotary position embeddings [10000]"},
    KeyMeaning{"model.attention.extras", "attention features that only some models have"},
    KeyMeaning{"model.attention.extras.window",
               "sliding window: number of positions that a query attends to, including its own; 0: "
               "all earlier positions [0]"},
    KeyMeaning{"model.attention.extras.chunk",
               "length of attention chunks in tokens: a query attends to its own chunk only (LLaMA "
               "4); 0: no chunks [0]"},
    KeyMeaning{"model.attention.extras.chosen",
               "number of positions that an indexer selects per query (sparse attention of "
               "DeepSeek-V3.2); 0: all [0]"},
    KeyMeaning{"model.attention.extras.value_dim", "size of a value head; 0: head_dim [0]"},
    KeyMeaning{"model.attention.extras.key_values",
               "source of keys and values: two projections, one projection for both, or keys and "
               "values of an earlier layer [projected]"},
    KeyMeaning{"model.attention.extras.qk_norm",
               "norm of queries and keys; head: RMSNorm per head; plain: head without weights, "
               "after rotation; width: RMSNorm over all heads; each_head: LayerNorm with its own "
               "weights per head [none]"},
    KeyMeaning{"model.attention.extras.qkv_bias",
               "query, key and value projections have biases even if linear_bias is false [false]"},
    KeyMeaning{"model.attention.extras.output_bias",
               "the output projection has a bias even if linear_bias is false [false]"},
    KeyMeaning{"model.attention.extras.output_gate",
               "a sigmoid gate from a further projection of the input scales the attention output "
               "[false]"},
    KeyMeaning{"model.attention.extras.rotary", "variants of rotary position embeddings"},
    KeyMeaning{"model.attention.extras.rotary.fraction",
               "share of the head size that is rotated, from its first entry [1]"},
    KeyMeaning{
        "model.attention.extras.rotary.neighbours",
        "pairs of adjacent entries (2i, 2i + 1) are rotated instead of (i, i + half) [false]"},
    KeyMeaning{"model.attention.extras.rotary.stretch",
               "scaling of rotary frequencies for contexts longer than in pretraining "
               "(rope_scaling of Hugging Face)"},
    KeyMeaning{"model.attention.extras.rotary.stretch.kind",
               "linear: all frequencies are divided by factor; llama3, yarn: low frequencies only; "
               "longrope: a divisor per frequency"},
    KeyMeaning{"model.attention.extras.rotary.stretch.factor",
               "linear, llama3, yarn: divisor of the scaled frequencies [1]"},
    KeyMeaning{"model.attention.extras.rotary.stretch.original_positions",
               "llama3, yarn, longrope: context length of pretraining in tokens"},
    KeyMeaning{"model.attention.extras.rotary.stretch.low_freq_factor",
               "llama3: frequencies that complete fewer turns in original_positions are divided by "
               "factor [1]"},
    KeyMeaning{
        "model.attention.extras.rotary.stretch.high_freq_factor",
        "llama3: frequencies that complete more turns in original_positions are unchanged [4]"},
    KeyMeaning{
        "model.attention.extras.rotary.stretch.beta_fast",
        "yarn: frequencies that complete more turns in original_positions are unchanged [32]"},
    KeyMeaning{"model.attention.extras.rotary.stretch.beta_slow",
               "yarn: frequencies that complete fewer turns in original_positions are divided by "
               "factor [1]"},
    KeyMeaning{"model.attention.extras.rotary.stretch.truncate",
               "yarn: the bounds from beta_fast and beta_slow are rounded to whole pairs [true]"},
    KeyMeaning{"model.attention.extras.rotary.stretch.mscale "
               "model.attention.extras.rotary.stretch.mscale_all_dim",
               "yarn: cosines and sines are scaled by g(mscale) / g(mscale_all_dim), where g(a) = "
               "1 + 0.1 a ln(factor); if either is 0, by g(1) [0]"},
    KeyMeaning{"model.attention.extras.rotary.stretch.attention_factor",
               "yarn, longrope: scale of cosines and sines; 0: from the formula [0]"},
    KeyMeaning{"model.attention.extras.rotary.stretch.short_factors",
               "longrope: divisor of each frequency if seq is at most original_positions"},
    KeyMeaning{"model.attention.extras.rotary.stretch.long_factors",
               "longrope: divisor of each frequency if seq is longer than original_positions"},
    KeyMeaning{"model.attention.extras.score",
               "changes of the attention scores before and in the softmax"},
    KeyMeaning{"model.attention.extras.score.scale",
               "factor on the scores; 0: 1 / sqrt(head_dim) [0]"},
    KeyMeaning{"model.attention.extras.score.cap",
               "soft cap: scores become cap x tanh(score / cap); 0: no cap [0]"},
    KeyMeaning{"model.attention.extras.score.sinks",
               "attention sinks: the softmax has a trained logit per head without a value "
               "(GPT-OSS) [false]"},
    KeyMeaning{"model.attention.extras.score.temperature",
               "queries are scaled by 1 + temperature x ln(1 + floor((position + 1) / "
               "temperature_floor)); 0: no scaling [0]"},
    KeyMeaning{"model.attention.extras.score.temperature_floor",
               "number of positions after which the temperature scaling starts [1]"},
    KeyMeaning{"model.attention.extras.latent", "multi-head latent attention (DeepSeek-V2)"},
    KeyMeaning{
        "model.attention.extras.latent.q_rank",
        "width of the latent from which queries are projected; 0: queries have one projection [0]"},
    KeyMeaning{"model.attention.extras.latent.kv_rank",
               "width of the latent per token from which keys and values are projected"},
    KeyMeaning{"model.attention.extras.latent.nope_dim",
               "part of a query or key head without rotary embedding"},
    KeyMeaning{
        "model.attention.extras.latent.rope_dim",
        "part of a query or key head with rotary embedding; all heads share this part of the key"},
    KeyMeaning{"model.attention.extras.latent.value_dim", "size of a value head"},
    KeyMeaning{"model.norm", "kind of the norms: LayerNorm or RMSNorm"},
    KeyMeaning{"model.mlp",
               "activation of the MLP and of experts; swiglu, geglu, clamped_swiglu and situ are "
               "gated, with a third weight matrix"},
    KeyMeaning{"model.experts", "mixture of experts; omitted for dense models"},
    KeyMeaning{"model.experts.count", "experts per MoE layer"},
    KeyMeaning{"model.experts.per_token", "experts per token (top-k)"},
    KeyMeaning{"model.experts.capacity_factor",
               "slots per expert, relative to an equal share of the tokens [1]"},
    KeyMeaning{"model.experts.extras", "MoE features that only some models have"},
    KeyMeaning{"model.experts.extras.dropless",
               "experts have no capacity limit, so no token is dropped [false]"},
    KeyMeaning{
        "model.experts.extras.shared_ffn",
        "hidden size of the shared expert, which processes every token; 0: no shared expert [0]"},
    KeyMeaning{"model.experts.extras.shared_gate",
               "a trained sigmoid gate per token scales the output of the shared expert [false]"},
    KeyMeaning{"model.experts.extras.latent",
               "width to which tokens are projected before dispatch and from which they are "
               "projected after combine (LatentMoE of Nemotron 3); 0: no projection [0]"},
    KeyMeaning{"model.experts.extras.bias",
               "the weight matrices of the experts have biases [false]"},
    KeyMeaning{"model.experts.extras.measured", "expert load of a measured run"},
    KeyMeaning{"model.experts.extras.measured.counts",
               "token count of each expert, for one MoE layer or for all MoE layers in order"},
    KeyMeaning{"model.experts.extras.router", "how the router turns logits into weights"},
    KeyMeaning{"model.experts.extras.router.score",
               "chosen: softmax over the top-k logits; all: softmax over all experts; sigmoid: "
               "sigmoid of each logit"},
    KeyMeaning{"model.experts.extras.router.renormalises",
               "the weights of a token's experts are normalized to sum 1 [false]"},
    KeyMeaning{"model.experts.extras.router.scaling",
               "factor on the weights after normalization [1]"},
    KeyMeaning{"model.experts.extras.router.correction_bias",
               "a bias without gradient is added to the scores for the selection only "
               "(DeepSeek-V3) [false]"},
    KeyMeaning{"model.experts.extras.router.groups",
               "number of expert groups for group-limited routing [1]"},
    KeyMeaning{"model.experts.extras.router.groups_kept",
               "number of groups per token in which experts are selected [1]"},
    KeyMeaning{"model.experts.extras.router.bias", "the router's linear layer has a bias [false]"},
    KeyMeaning{"model.experts.extras.router.scales_input",
               "weights scale the input of the experts instead of their output (LLaMA 4) [false]"},
    KeyMeaning{"model.linear_bias", "linear layers have a bias"},
    KeyMeaning{"model.fused_qkv", "queries, keys and values are one weight matrix"},
    KeyMeaning{"model.tied_embedding",
               "the output layer shares the weights of the word embeddings"},
    KeyMeaning{"model.embedding_norm", "a norm follows the embeddings [false]"},
    KeyMeaning{"model.residual_from_after_norm",
               "the residual connection starts after the norm (BLOOM's "
               "apply_residual_connection_post_layernorm) [false]"},
    KeyMeaning{"model.attention_dropout", "dropout probability of the attention probabilities [0]"},
    KeyMeaning{"model.hidden_dropout",
               "dropout probability of the embeddings and of the output of each branch [0]"},
    KeyMeaning{"model.norm_epsilon", "epsilon of the norms [1e-5]"},
    KeyMeaning{"model.initializer_range", "standard deviation of the initial weights [0.02]"},
    KeyMeaning{"model.extras", "features that only some models have"},
    KeyMeaning{"model.extras.family",
               "model_type in Hugging Face's config.json, whose weight names checkpoints use"},
    KeyMeaning{"model.extras.context",
               "longest sequence in tokens that the model supports; 0: not stated [0]"},
    KeyMeaning{"model.extras.mixer",
               "token mixer of the block; planned: the ops of the list planned; none: the block "
               "has an MLP only [attention]"},
    KeyMeaning{"model.extras.recurrent", "recurrence of mamba2 and delta_net blocks"},
    KeyMeaning{"model.extras.recurrent.heads", "number of value heads"},
    KeyMeaning{"model.extras.recurrent.key_heads",
               "number of key heads; Mamba-2: groups (n_groups)"},
    KeyMeaning{"model.extras.recurrent.key_dim", "size of a key head; Mamba-2: ssm_state_size"},
    KeyMeaning{"model.extras.recurrent.value_dim", "size of a value head"},
    KeyMeaning{"model.extras.recurrent.convolution",
               "kernel size of the short causal convolution; 0: none [0]"},
    KeyMeaning{"model.extras.recurrent.convolution_bias",
               "the short convolution has a bias [false]"},
    KeyMeaning{"model.extras.recurrent.chunk", "tokens per chunk of the chunked scan [128]"},
    KeyMeaning{
        "model.extras.recurrent.channel_decay",
        "the state decays per key channel instead of per head (Kimi Delta Attention) [false]"},
    KeyMeaning{"model.extras.recurrent.wide_gate",
               "the output gate is one matrix as wide as the values; false: the list planned has "
               "the gate's matrices [true]"},
    KeyMeaning{"model.extras.norm_place",
               "norms before, after or around each branch; one_parallel, two_parallel: attention "
               "and MLP run in parallel after one common norm or two norms [before]"},
    KeyMeaning{"model.extras.norm_bias", "LayerNorms have a bias [true]"},
    KeyMeaning{"model.extras.norm_plus_one", "norms multiply by 1 + weight (Gemma) [false]"},
    KeyMeaning{"model.extras.mlp_limit",
               "clamped_swiglu: limit of the gate and of the up projection's absolute value"},
    KeyMeaning{"model.extras.activation_ops",
               "how transformers computes the GELU: one kernel, or several ops [one_kernel]"},
    KeyMeaning{"model.extras.mlp_bias", "the MLP has biases even if linear_bias is false [false]"},
    KeyMeaning{"model.extras.embedding_scale",
               "factor on the embeddings before the first block [1]"},
    KeyMeaning{"model.extras.logit_scale", "factor on the logits [1]"},
    KeyMeaning{"model.extras.logit_cap",
               "soft cap: logits become cap x tanh(logit / cap); 0: no cap [0]"},
    KeyMeaning{"model.extras.head_bias", "the output layer has a bias [false]"},
    KeyMeaning{"model.extras.positions",
               "least number of rows of a learned position table; seq can require more [0]"},
    KeyMeaning{"model.extras.prediction_layers",
               "number of multi-token prediction (MTP) layers, planned on the last stage [0]"},
    KeyMeaning{"model.extras.prediction_shared",
               "all MTP layers share the weights of one layer [false]"},
    KeyMeaning{"model.extras.streams",
               "residual streams of hyper-connections: a stage sends this many hidden states per "
               "token [1]"},
    KeyMeaning{"model.extras.planned",
               "ops that are predicted from their sizes and not executed, such as indexers: the "
               "mixer's if mixer is planned, else in addition to the mixer"},
    KeyMeaning{"model.extras.planned.name", "name of the op in reports"},
    KeyMeaning{"model.extras.planned.kind",
               "linear: GEMM with a weight matrix; pairs: attention scores and weighted sum of "
               "values; pass: elementwise kernel or norm"},
    KeyMeaning{"model.extras.planned.sharding",
               "sharding over tensor-parallel ranks; whole: not sharded; tokens: by tokens, with "
               "sequence parallelism; rows: by output features or heads (ColumnParallelLinear); "
               "columns: by input features (RowParallelLinear) [whole]"},
    KeyMeaning{"model.extras.planned.width",
               "linear: rows of the weight matrix (output width); pairs, pass: elements per token "
               "saved for backward"},
    KeyMeaning{"model.extras.planned.columns",
               "linear: columns of the weight matrix (input width)"},
    KeyMeaning{"model.extras.planned.parameters",
               "number of trained parameters in addition to the matrix: norms, biases, tables"},
    KeyMeaning{"model.extras.planned.moved",
               "pass: elements per token that the forward kernel reads and writes"},
    KeyMeaning{"model.extras.planned.heads", "pairs: number of heads"},
    KeyMeaning{"model.extras.planned.key_dim", "pairs: size of a key head"},
    KeyMeaning{"model.extras.planned.value_dim", "pairs: size of a value head"},
    KeyMeaning{"model.extras.planned.window",
               "pairs: number of last positions that a query attends to"},
    KeyMeaning{"model.extras.planned.stride",
               "pairs: positions per compressed key, 0: no compressed keys; linear: tokens per "
               "input row, 0: 1 [0]"},
    KeyMeaning{"model.extras.planned.most",
               "pairs: largest number of compressed keys that a query attends to; 0: all [0]"},
    KeyMeaning{"model.extras.parts",
               "parts outside the blocks, planned on the first stage: vision or audio encoders, "
               "per-layer embedding tables"},
    KeyMeaning{"model.extras.parts.name", "name of the part in reports"},
    KeyMeaning{"model.extras.parts.layers", "number of layers of the part; each runs layer_ops"},
    KeyMeaning{"model.extras.parts.patches",
               "tokens per image or sound, which attend to each other; 0: the ops run on the text "
               "sequence"},
    KeyMeaning{"model.extras.parts.items", "images or sounds per training sequence"},
    KeyMeaning{"model.extras.parts.layer_ops", "planned ops of one layer of the part"},
    KeyMeaning{"model.extras.parts.ops", "planned ops of the part outside its layers, run once"},
    KeyMeaning{"model.usual", "defaults of commands with this model, from its original training"},
    KeyMeaning{"model.usual.cluster", "catalogue name of the cluster if --cluster is not given"},
    KeyMeaning{"model.usual.global_batch", "sequences per step if --global-batch is not given"},
    KeyMeaning{
        "model.blocks",
        "for models with several kinds of blocks: the other kinds, and the kind of each layer"},
    KeyMeaning{"model.blocks.others",
               "kinds of blocks besides kind 0, which the keys of the model describe"},
    KeyMeaning{"model.blocks.of_layers",
               "kind of each layer: 0, or n for entry n of others, counted from 1"},
};

}  // namespace

std::span<const KeyMeaning> model_key_meanings() { return kModelMeanings; }

}  // namespace tpsim::app
