// Objects of a plan and its prediction.
#include "app/documents/report_keys.h"

namespace tpsim::app {
namespace {

constexpr ReportKey kPredictionKeys[] = {
    object("heading"),
    {"version", "text", "kind and version of the report"},
    {"model", "text", "name of the model"},
    {"parameters", "whole", "weights of the model"},
    {"active_parameters", "whole", "weights that a token uses"},
    {"cluster", "text", "name of the cluster"},
    {"stack", "text", "name of the software"},
    {"gpus", "whole", "number of GPUs: `plan`: as requested, otherwise those of the plan"},
    {"profile", "profile", "the profile that prices rest on"},
    {"assumed", "assumed",
     "if software or network was not stated, or unknown settings were assumed to change nothing"},

    object("profile"),
    {"name", "text", "name of the profile"},
    {"provenance", "text", "`measured`, `published` or `datasheet`"},

    object("assumed"),
    {"half_width_pct_all_stated", "number",
     "percent from the prediction to the upper end of the 90 % interval if everything were stated"},
    {"half_width_pct_all_open", "number", "the same for the printed interval"},
    {"open", "list of open_input",
     "inputs that were not stated; the one that would narrow the interval most comes first"},

    object("open_input"),
    {"what", "text", "the input: software, network, settings"},
    {"taken", "text", "the value that was assumed"},
    {"option", "text", "the option that states the input"},
    {"others", "whole", "other values in the catalogue"},
    {"spread_pct", "number", "spread of the step over the others to its slower side, in percent"},
    {"spread_faster_pct", "number", "the same to its faster side"},
    {"half_width_pct_if_stated", "number", "half width of the interval if this input were stated"},

    object("layout"),
    {"tp pp dp cp ep", "whole", "tensor, pipeline, data, context and expert parallel degree"},
    {"etp", "whole", "expert-tensor parallel degree; 0: as `tp`"},
    {"zero", "whole", "ZeRO stage, 0 to 3"},
    {"micro_batch", "whole", "sequences in a micro-batch"},
    {"global_batch", "whole", "sequences in a step"},
    {"virtual_stages", "whole", "model chunks on each pipeline stage"},
    {"recompute", "text", "`none`, `selective`, `full`, `blocks` or `ops`"},
    {"recompute_blocks", "whole",
     "with `blocks`: number of recomputed blocks of every chunk, the first ones; else 0"},
    {"sequence_parallel", "bool", "whether sequence parallelism is on"},
    {"attention", "text", "`unfused` or `flash`"},
    {"schedule", "text", "`gpipe`, `1f1b`, `interleaved` or `zb-h1`"},
    {"rank_order", "text",
     "`tp-dp-pp` or `tp-pp-dp`: the degree that varies fastest over ranks comes first. "
     "Context-parallel ranks always follow the tensor-parallel ones"},
    {"offload", "text", "`none` or `optimizer`: kept in host memory"},
    {"dtype gradient_dtype", "text", "`bf16`, `fp16` or `fp32`"},
    {"precision", "text",
     "recipe of the linear layers: `none`, `fp8`, `fp8-current`, `fp8-block`, `mxfp8` or `nvfp4`"},
    {"fp8_param_gather", "bool", "whether weights are kept and gathered in the recipe's 8 bits"},
    {"stage_layers", "list of whole",
     "blocks of each model chunk in model order; chunk c runs on stage c mod `pp`"},

    object("run", "layout"),
    {"predicted", "prediction", "the prediction"},
    {"p_best_is_faster", "number",
     "in a search by time: probability that the best plan is faster than this one"},
    {"ties", "bool", "whether this probability is below 0.9"},

    object("prediction"),
    {"step_s", "number", "step time"},
    {"step_s_low step_s_high", "number", "ends of the 90 % interval of the step time"},
    {"hw_tflops_per_gpu", "number",
     "TFLOP/s per GPU including recompute of full blocks, some blocks, every second GEMM, or the "
     "modules of selective recompute"},
    {"model_tflops_per_gpu", "number",
     "TFLOP/s per GPU without recompute, counting the whole square of causal attention, as "
     "torchtitan and papers do"},
    {"half_mask_tflops_per_gpu", "number",
     "the same with half of that square, as Megatron logs it since 2024"},
    {"mfu", "number",
     "model FLOPs over the GPU's matrix peak for the linear layers' operands, 0 to 1"},
    {"tokens_per_s", "number", "tokens per second of all GPUs together"},
    {"bubble_fraction", "number", "idle share of the pipeline phase, mean over stages"},
    {"p_oom", "number", "probability that the fullest stage does not fit"},
    {"memory_gib", "memory", "memory of a GPU and of a host, in GiB"},
    {"breakdown_s", "terms",
     "terms of the step in seconds; they add up to `step_s`. docs/planner.md explains every term"},
    {"sources", "sources", "origin of the kernel times, as shares of the device time"},

    object("memory"),
    {"capacity", "number", "memory of one GPU"},
    {"peak", "number", "peak of the fullest stage"},
    {"host_of_node", "number", "memory of a node's host for the offloaded optimizers of its GPUs"},
    {"by_stage", "list of stage_memory", "memory of each stage at the moment of its peak"},

    object("stage_memory"),
    {"stage", "whole", "number of the stage, from 0"},
    {"weights gradients optimizer activations workspace communication context fragmentation",
     "number", "memory by category, in GiB"},
    {"total", "number", "sum of the categories"},

    // A test compares the names with kStepTerms.
    object("terms"),
    {"matmul", "number", "GEMMs outside of routed experts and attention cores"},
    {"attention", "number", "attention cores"},
    {"recurrence", "number", "scans and convolutions of recurrent layers"},
    {"elementwise", "number", "norms, activations, dropout, residuals, casts"},
    {"tensor_communication", "number", "exposed collectives of the tensor group"},
    {"zero_communication", "number",
     "exposed gathers and reductions of ZeRO 2 and 3 inside forward and backward"},
    {"context_communication", "number", "exposed exchange of keys and values"},
    {"expert_communication", "number", "exposed dispatch and combine of tokens"},
    {"grouped_products", "number", "grouped GEMMs of routed experts"},
    {"permutation", "number", "router, permute and unpermute of tokens"},
    {"expert_imbalance", "number", "waiting for the expert-parallel rank with the most tokens"},
    {"host_wait", "number", "waiting of the GPU for launches"},
    {"pipeline_transfer", "number", "exposed sends between stages"},
    {"pipeline_bubble", "number", "waiting for other stages"},
    {"gradient_reduction", "number", "exposed reduction of gradients over the data group"},
    {"tied_embedding", "number", "reduction of the word embeddings that two stages share"},
    {"gradient_clipping", "number", "global norm and scaling of gradients"},
    {"optimizer", "number", "update of the weights"},
    {"weight_gather", "number", "exposed gather of updated weights over the data group"},
    {"host_step", "number", "host work once per step"},
    {"stragglers", "number", "waiting for the slowest rank of each step"},
    {"unmodelled", "number", "mean excess of measured steps, for software without calibration"},

    object("sources"),
    {"exact_entries", "number", "measured in the profile at this size"},
    {"interpolated_entries", "number", "interpolated between measured sizes"},
    {"model", "number", "analytical"},
};

}  // namespace

std::span<const ReportKey> prediction_keys() { return kPredictionKeys; }

}  // namespace tpsim::app
