// Objects of the reports of plan, simulate, explain, compare and export.
#include "app/documents/report_keys.h"

namespace tpsim::app {
namespace {

constexpr ReportKey kAnswerKeys[] = {
    object("plan_report", "heading"),
    {"search", "search", "what was searched"},
    {"plans", "list of run", "plans with their predictions, best first, at most `--top`"},
    {"nearest_miss", "run",
     "only if `plans` is empty and a legal plan exists: the plan that misses by least"},
    {"parts_searched", "list of parts_searched",
     "where parts have several values: the combinations, the fastest first; plans use the first"},
    {"parts_not_searched", "list of parts_searched",
     "single parts that the search did not vary and that make its best plan at least 1 % faster"},
    {"other_batch", "run",
     "if few data-parallel degrees divide the global batch: the best plan with a batch that is at "
     "most 10 % different, if its tokens/s are at least 5 % higher"},

    object("search"),
    {"considered", "whole", "combinations of settings considered"},
    {"feasible", "whole", "of these, legal, within memory and bounded one by one"},
    {"simulated", "whole",
     "of the feasible, those simulated event by event: all that may be among the best"},
    {"pruned", "counts",
     "reason and number of combinations ruled out. Combinations that cannot be as good as the "
     "plans shown were not always tested for memory"},
    {"objective", "text", "what is minimized"},
    {"leaves_out_offload", "bool",
     "whether memory ruled plans out and plans with an offloaded optimizer were not searched "
     "(`--pareto`, `--objective memory`)"},
    {"inputs_hash", "text",
     "`fnv1a:` and 64 bits over model, cluster, stack, profile and constraints"},
    {"seconds", "number", "time of the search"},

    object("counts"),
    {"*", "whole", "combinations ruled out for this reason"},

    object("parts_searched"),
    {"parts", "part_values", "the combination"},
    {"step_s", "number", "step time of its best plan; absent if nothing fits"},

    object("part_values"),
    {"*", "text", "value of this software part"},

    object("explain_report", "heading"),
    {"plan", "run", "the explained plan"},
    {"terms", "list of term", "terms of the step, in order"},

    object("term"),
    {"name", "text", "name of the term, as in `breakdown_s`"},
    {"time_s", "number", "its time"},
    {"formula inputs source", "text", "how the time was computed, from what, and who measured it"},
    {"parts", "list of part", "software parts that decide the term"},

    object("part"),
    {"name value", "text", "the part and its value"},
    {"asked_for", "bool", "whether the value replaces that of the stack"},

    object("why_not_report"),
    {"version", "text", "kind and version of the report"},
    {"asked", "text", "the settings asked about"},
    {"best", "run", "the best plan"},
    {"other", "run", "the best plan with these settings"},
    {"ties", "bool", "whether the order of both is less than 90 % certain"},
    {"waterfall", "list of step_of_waterfall", "terms of both plans"},
    {"illegal", "text", "why no plan has these settings"},
    {"nearest_miss", "run", "the plan with these settings that misses the memory by least"},
    {"mends", "list of mend", "changes of one asked setting with which a plan exists"},
    {"enough_gpus", "whole", "number of GPUs with which the settings would fit"},

    object("step_of_waterfall"),
    {"name", "text", "name of the term"},
    {"best_s other_s difference_s", "number", "seconds in both plans, and other minus best"},

    object("mend"),
    {"given_up instead", "text", "the setting given up, and its value instead"},
    {"plan", "run", "the best plan after the change"},

    object("what_if_report"),
    {"version", "text", "kind and version of the report"},
    {"plan", "run", "the plan asked about"},
    {"sensitivities", "list of sensitivity", "step time if a property of the machine changes"},
    {"memory_break_evens", "list of memory_break_even",
     "memory per GPU from which another plan becomes the best"},
    {"plan_break_evens", "list of plan_break_even",
     "change of a property from which another plan becomes the best"},
    {"precision_break_evens", "list of precision_break_even",
     "width from which a precision recipe pays"},
    {"shape", "list of shape_advice", "sizes of the model for which kernels run faster"},

    object("sensitivity"),
    {"constant", "text", "the property"},
    {"factor", "number", "factor of the property"},
    {"step_s", "number", "step time with the factor"},
    {"change", "number", "relative change of the step time"},

    object("memory_break_even"),
    {"memory_gib", "number", "memory per GPU in GiB"},
    {"gain", "number?", "relative gain of the plan; null if no plan fits with less"},
    {"plan", "run", "the best plan from this memory on"},

    object("plan_break_even"),
    {"constant", "text", "the property"},
    {"factor", "number", "factor of the property at which the best plan changes"},
    {"plan", "text", "the best plan beyond this factor"},

    object("precision_break_even"),
    {"precision", "text", "the recipe"},
    {"hidden", "whole", "width of the model from which the recipe pays"},
    {"gain", "number", "relative gain at the model's own width"},

    object("shape_advice"),
    {"what", "text", "what makes the present size slow"},
    {"better", "list of better_size", "sizes that are faster"},

    object("better_size"),
    {"size", "text", "name of the size"},
    {"from to", "whole", "present size, and proposed size"},
    {"gain", "number", "relative gain"},

    object("program_difference_report", "heading"),
    {"plan other", "run", "the plan, and the one of `--diff`"},
    {"parts", "list of part_difference", "parts of the model in which the programs differ"},

    object("part_difference"),
    {"part", "text", "part of the model, as in program_report"},
    {"block", "whole", "of blocks: kind of block, from 0"},
    {"recomputed", "bool", "of blocks: whether the first plan recomputes the whole block"},
    {"times", "list of time_after_pass",
     "time of a micro-batch after each pass of lowering, without overlap"},
    {"phases", "list of phase_difference", "phases with differences"},

    object("time_after_pass"),
    {"pass", "text", "name of the pass; `trace`: the layers of the reference model"},
    {"first_s second_s", "number", "seconds in the plan, and in the other plan"},

    object("phase_difference"),
    {"phase", "text", "phase, as in program_report"},
    {"events", "list of event_difference",
     "events of one program alone, and equal events with different times; without allocations"},

    object("event_difference"),
    {"first second", "event", "event of the plan, and of the other plan"},

    object("memory_report", "heading"),
    {"plan", "run", "the plan"},
    {"stages", "list of peak", "memory of each stage when its tensors are at their peak"},
    {"measured", "measured_snapshot?", "with --snapshot: memory of the run"},

    object("peak"),
    {"stage", "whole", "index of the stage, from 0"},
    {"task", "text",
     "what the stage runs: `forward`, `backward`, `weight gradient` or `optimizer`"},
    {"chunk micro_batch", "whole", "of a task of a micro-batch: chunk and micro-batch, from 0"},
    {"live", "list of live_memory",
     "contents of the memory, largest first. The sum is the stage's memory in the prediction"},

    object("live_memory"),
    {"category", "text",
     "`weights`, `gradients`, `optimizer`, `activations`, `workspace` or `communication`"},
    {"part", "text",
     "`embedding`, `block`, `head`, `between stages`: a sent or received activation, or `whole "
     "stage`"},
    {"label", "text", "what is stored"},
    {"bytes", "number",
     "size on one rank. Negative: the framework does not keep this part of the other rows"},

    object("measured_snapshot"),
    {"rank stage", "whole", "rank that recorded the snapshot, and its pipeline stage"},
    {"events", "whole", "number of recorded events"},
    {"missing_bytes", "number", "size of the request that ran out of memory; 0: none did"},
    {"start_up_bytes", "number",
     "highest allocated memory before 95 % of the kept memory existed, which is excluded below; "
     "0: recorded after start-up"},
    {"compared", "list of compared_bytes", "measured and predicted memory"},
    {"live", "list of site_memory", "contents of the measured memory at its peak, largest first"},

    object("compared_bytes"),
    {"what", "text",
     "`allocated`: by tensors at the peak; `reserved`: by the allocator; `kept over the step` and "
     "`temporary at the peak`: parts of `allocated`"},
    {"measured_bytes predicted_bytes", "number", "of one rank"},

    object("site_memory"),
    {"site", "text", "where it was allocated: file, line and function"},
    {"blocks", "whole", "number of allocations"},
    {"bytes", "number", "their size"},

    object("program_report", "heading"),
    {"plan", "run", "the plan"},
    {"programs", "list of part_program",
     "what one rank runs for each part of the model, in order. The prediction is priced from these "
     "events. Counts are those of one rank"},

    object("part_program"),
    {"part", "text",
     "`word_embeddings`, `embedding`, `block`, `head`, or `transfer`: an activation between two "
     "model chunks"},
    {"count", "whole", "number of these parts in the model, over all stages"},
    {"block", "whole", "of blocks: kind of block, from 0"},
    {"recomputed", "bool", "of blocks: whether the whole block is recomputed"},
    {"phases", "list of phase", "phases with events"},

    object("phase"),
    {"phase", "text",
     "`forward`, `backward`, `recompute`, `weight_gradient`, `accumulate`: per micro-batch; "
     "`send`, `receive`: per micro-batch and direction; `clear_gradients`, `update`: per step; "
     "`allocate`: per run"},
    {"events", "list of event",
     "ops, collectives, copies, host work and changes of memory, in order"},

    object("event"),
    {"op", "text", "the op: `matmul`, `flash_forward`, `norm_backward`, ..."},
    {"dtype", "text", "of an op: dtype of its operands"},
    {"dims", "list of whole", "of an op: its sizes (core/program/program.h)"},
    {"variant", "whole", "of an op: bits that select a variant"},
    {"kernels", "whole", "of an op: launches in this software; one for all experts"},
    {"flops", "number", "of an op: a multiply-add counts two"},
    {"repeats", "number", "of an op: how often the rank runs it, if not once"},
    {"bytes", "number",
     "least traffic of an op or copy; the whole array of a collective call; the size of a tensor"},
    {"pass", "text", "of a cast to 8 or 4 bits: which operand and how"},
    {"collective", "text",
     "`all_reduce`, `all_gather`, `reduce_scatter`, `broadcast`, `send`, `receive` or "
     "`all_to_all`"},
    {"group", "text", "of a collective: the group of ranks"},
    {"ranks", "whole", "of a collective: ranks in the group"},
    {"calls", "number",
     "of a collective: calls of this size. Below 1: the call carries other tensors too"},
    {"overlap", "text",
     "of a collective: what the compute stream does meanwhile: `none` (waits), `gemms`, "
     "`attention_pass`, `phase`, `other_micro_batch`"},
    {"copy", "number", "of a copy or cast that is not an op of the trace: number of kernels"},
    {"host", "bool", "present for work of the host between launches"},
    {"synchronizes", "bool", "of host work: the host first waits until the device is idle"},
    {"memory", "text", "of a change of memory: `allocate` or `free`"},
    {"tensor", "whole", "of a change of memory: number of the tensor within its part"},
    {"category", "text", "of a change of memory: category in `memory_gib`"},
    {"label", "text", "place in the model: `attention.qkv`"},
    {"stream", "text",
     "where the event runs: `compute`, `tensor`, `context`, `expert`, `data`, `pipeline` or "
     "`host`"},
    {"time_s", "number", "seconds on the stream, without overlap, on the busiest rank"},
    {"source", "text", "of an op's time: `exact`, `interpolated` or `model`"},

    object("compare_report"),
    {"version", "text", "kind and version of the report"},
    {"plans", "list of compared_plan", "the plans, in the order of the arguments"},
    {"differs", "differences", "settings and inputs that differ: a text for each plan"},

    object("compared_plan", "run"),
    {"file model cluster profile stack", "text", "the plan file and its inputs"},
    {"fits", "bool", "whether the plan fits in memory"},
    {"terms_s", "terms", "terms of the step in seconds"},
    {"tokens_per_s_per_gpu gpu_hours_per_billion_tokens", "number", "speed and cost"},
    {"p_faster_than_first", "number",
     "probability that the plan is faster than the first, for plans of one model, batch and "
     "machine"},
    {"ties_with_first", "bool", "whether the order is less than 90 % certain"},

    object("differences"),
    {"*", "list of text", "the values, in the order of the plans"},

    object("scaling_report"),
    {"version", "text", "kind and version of the report"},
    {"model cluster profile stack", "text", "names of the inputs"},
    {"sizes", "list of scaled_size", "the best plan at each number of GPUs"},

    object("scaled_size"),
    {"gpus global_batch", "whole", "GPUs, and sequences in a step"},
    {"best", "run", "the best plan"},
    {"tokens_per_s_per_gpu", "number", "speed of the best plan"},
    {"parts", "part_values", "software parts of the best plan, if several were searched"},
    {"efficiency", "number", "speed per GPU relative to the first size with a plan"},
    {"none", "text", "the reason why no plan was found"},

    object("export_report"),
    {"version", "text", "kind and version of the report"},
    {"to", "text", "the framework"},
    {"files", "list of file", "the files; empty if the export is refused"},
    {"fits", "bool", "whether the plan fits in memory"},
    {"p_oom", "number", "probability that it does not"},
    {"lost", "list of lost_setting", "settings that the files cannot hold"},
    {"step_s memory_gib", "number", "prediction of the plan"},
    {"step_s_back memory_gib_back", "number", "prediction of the plan that import reads back"},
    {"step_change memory_change", "number", "relative changes of both"},
    {"import_refuses", "text", "why the files cannot be read back"},
    {"unchecked", "text", "why the plan cannot be predicted; replaces all keys after `files`"},

    object("file"),
    {"name text", "text", "name and contents of the file"},

    object("lost_setting"),
    {"key", "text", "key of the setting"},
    {"from to", "text", "value of the plan, and value that the files mean"},
};

}  // namespace

std::span<const ReportKey> answer_keys() { return kAnswerKeys; }

}  // namespace tpsim::app
