// Objects of the reports of campaign and list, and of errors.
#include "app/documents/report_keys.h"

namespace tpsim::app {
namespace {

constexpr ReportKey kCampaignKeys[] = {
    object("campaign_report"),
    {"version", "text", "kind and version of the report"},
    {"model cluster", "text", "names of model and cluster"},
    {"gpus nodes", "whole", "GPUs and nodes of the plan"},
    {"plan", "layout", "the plan"},
    {"tokens", "whole", "length of the run"},
    {"step_s predicted_step_s", "number", "step that the run takes, and predicted step"},
    {"node_failure_every_s", "number", "mean time between failures of all nodes"},
    {"spare_nodes spare_nodes_wanted", "whole",
     "spare nodes, and those with which the job lacks a node 1 % of the time"},
    {"time", "campaign_time", "days by what they are spent on"},
    {"cost", "campaign_cost", "GPU-hours, energy, CO2 and money"},
    {"checkpoints", "checkpoints", "size and interval of checkpoints"},
    {"replays replays_with_unlimited_spares", "replays",
     "simulated campaigns with random failures, with these spare nodes and with enough of them"},
    {"replanned", "list of replanned", "the best plan after nodes are lost"},
    {"assumptions", "assumptions", "value and source of each assumption"},
    {"phases", "list of ramp_phase", "phases of the batch ramp"},
    {"assumed", "assumed", "inputs of the prediction that were not stated"},
    {"goal", "goal", "with a deadline or a budget: sizes that meet it"},

    object("campaign_time"),
    {"wall_days", "number", "days from start to end, the sum of the parts"},
    {"wall_days_low wall_days_high", "number", "ends of its 90 % interval"},
    {"goodput", "number", "share of the time in steps that count"},
    {"steps_days checkpoints_days failures_days waiting_days downtime_days", "number",
     "days in steps, in checkpoints, lost to failures, waiting for a node, and in planned "
     "downtime"},

    object("campaign_cost"),
    {"gpu_hours reserved_gpu_hours", "number", "GPU-hours of the job, and with spare nodes"},
    {"gpu_kwh total_kwh reserved_gpu_kwh reserved_total_kwh", "number",
     "energy of the GPUs and of everything; with spare nodes"},
    {"gpu_co2_t total_co2_t reserved_gpu_co2_t reserved_total_co2_t", "number",
     "tonnes of CO2 in the same order"},
    {"usd_run usd", "number", "price of the job, and with spare nodes"},

    object("checkpoints"),
    {"bytes", "number", "size"},
    {"write_s stop_s", "number", "time of a write, and time that the run waits for it"},
    {"interval_s", "number", "the interval used"},
    {"interval_steps", "whole", "the same in steps of the full batch"},
    {"best_s young_s daly_s", "number", "best interval, and by the formulas of Young and Daly"},
    {"count", "number", "checkpoints in the run"},

    object("replays"),
    {"campaigns", "whole", "simulated campaigns"},
    {"mean_days standard_error_days p5_days median_days p95_days", "number", "days of a campaign"},
    {"failures lost_h waiting_h", "number",
     "means: failures, hours lost, hours waiting for a node"},

    object("replanned"),
    {"lost_nodes", "whole", "nodes that are lost"},
    {"fits", "bool", "whether a plan fits on the others"},
    {"global_batch_for_all_gpus", "whole",
     "a similar batch with which all remaining GPUs are used and tokens/s are at least 5 % higher"},
    {"gpus", "whole", "GPUs of the best plan"},
    {"plan", "layout", "the best plan"},
    {"step_s tokens_per_s peak_gib", "number", "its step, speed, and peak memory in GiB"},

    object("assumptions"),
    {"*", "assumption", "an assumption of the campaign"},

    object("assumption"),
    {"value source", "text", "value and source"},

    object("ramp_phase"),
    {"global_batch steps", "whole", "sequences in a step, and steps of the phase"},
    {"step_s", "number", "step time"},

    object("goal"),
    {"deadline_days budget_usd", "number", "the goal"},
    {"standing", "text", "`sure`, `as predicted` or `missed`"},
    {"sizes", "list of goal_size", "numbers of GPUs"},

    object("goal_size"),
    {"gpus spare_nodes", "whole", "GPUs, and spare nodes"},
    {"plan", "layout", "the best plan"},
    {"step_s checkpoint_interval_s", "number", "step time and interval of checkpoints"},
    {"wall_days wall_days_low wall_days_high", "number", "days and their interval"},
    {"reserved_gpu_hours usd", "number", "cost with spare nodes"},
    {"standing", "text", "`sure`, `as predicted` or `missed`"},
    {"none", "text", "the reason why no plan was found"},

    object("list_report"),
    {"version", "text", "kind and version of the report"},
    {"kind", "text", "`models`, `clusters`, `profiles`, `stacks` or `assumptions`"},
    {"entries", "list of entry", "the catalogue's entries of this kind"},

    object("entry"),
    {"name source", "text", "name and source of the entry"},
    {"family position norm mlp", "text", "of a model: family and kinds of its parts"},
    {"parameters active_parameters context experts layers hidden heads kv_heads seq vocab", "whole",
     "of a model: its sizes. `active_parameters`: weights that a token uses; `context`: maximum "
     "number of positions; `experts`: 0 if dense"},
    {"gpus nodes gpus_per_node nics_per_node", "whole", "of a cluster: its sizes"},
    {"profile stack intra_node inter_node", "text", "of a cluster: its GPU, software and links"},
    {"provenance device date", "text", "of a profile: origin, device and date"},
    {"memory_gib matmul_peak_tflops memory_bandwidth_gb_per_s", "number",
     "of a profile: memory, peak in 16 bits and bandwidth of the device"},
    {"op_samples collective_samples", "whole", "of a profile: measured times"},
    {"host_s_per_block context_gib", "number",
     "of a stack: host time of a block, and memory of CUDA and libraries"},
    {"zero_2_and_3_with_pipeline overlap_gradient_reduction", "bool", "of a stack: options"},
    {"launched_by", "text", "of a stack: launcher whose rules plans satisfy"},
    {"gpu_power other_power pue carbon price node_mtbf", "text", "of assumptions: their values"},

    object("error_report"),
    {"version", "text", "kind and version of the report"},
    {"kind", "text",
     "`bad_input`, `does_not_fit`, `missing`, `bug`, `interrupted` or `terminated`"},
    {"exit_code", "whole", "exit code of the command"},
    {"text", "text", "the error as printed on standard error, made of the next three"},
    {"message where hint", "text", "what is wrong, where, and what to do"},
};

}  // namespace

std::span<const ReportKey> campaign_keys() { return kCampaignKeys; }

}  // namespace tpsim::app
