#include "cli/views/plan_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "app/scenario/fit.h"
#include "core/base/numbers.h"
#include "core/software/part_rules.h"
#include "sim/step/order.h"

namespace tpsim::cli {
namespace {

constexpr int kBarWidth = 40;
constexpr int kGaugeWidth = 20;

// Returns TFLOP/s; with three decimals below 1, since a CPU core may have only 0.01 TFLOP/s.
std::string rate_text(double tflops) {
  return tflops < 1 ? fmt::format("{:.3f}", tflops) : fmt::format("{:.1f}", tflops);
}

Ink ink_of_chance(double p_oom) {
  return p_oom >= kRefusedChance ? Ink::kBad : p_oom >= 0.05 ? Ink::kWarn : Ink::kGood;
}

void write_used_memory(TextReport& out, const Prediction& predicted) {
  out.row("memory", "{} of {} GiB on stage {}, the fullest  {}  p(OOM) {}",
          out.bold(gib_text(predicted.peak, gib_decimals(predicted.peak))),
          gib_text(predicted.capacity), fullest_stage(predicted).stage,
          out.terminal().gauge(predicted.peak / predicted.capacity, kGaugeWidth),
          out.paint(chance_text(predicted.p_oom), ink_of_chance(predicted.p_oom)));
}

struct BreakdownRow {
  std::string name;
  Seconds time;
};

// Returns the terms of the step, largest first, in at most `most` rows. The last row sums the
// remaining terms and those below 0.1 % of the step.
std::vector<BreakdownRow> largest_terms(const Prediction& predicted, std::size_t most) {
  std::vector<BreakdownRow> rows;
  for (const Term& term : predicted.breakdown)
    rows.push_back({printable(name_of(term.kind)), term.time});
  std::stable_sort(rows.begin(), rows.end(),
                   [](const BreakdownRow& a, const BreakdownRow& b) { return a.time > b.time; });
  const auto worth = std::count_if(rows.begin(), rows.end(), [&](const BreakdownRow& term) {
    return term.time >= 0.001 * predicted.step;
  });
  most = std::min(most, static_cast<std::size_t>(worth) + 1);
  if (rows.size() <= most) return rows;
  BreakdownRow rest{fmt::format("{} others", rows.size() - (most - 1)), Seconds()};
  for (std::size_t i = most - 1; i < rows.size(); ++i) rest.time += rows[i].time;
  rows.resize(most - 1);
  rows.push_back(std::move(rest));
  return rows;
}

std::vector<Cell> ranking_row(const PlannedRun& run, const TimeScale& scale, bool ties, Ink ink) {
  const Plan& plan = run.plan;
  const Prediction& p = run.predicted;
  return {
      ties ? "=" : "",
      Cell(std::to_string(plan.degrees.tp), ink),
      Cell(std::to_string(plan.degrees.pp), ink),
      Cell(std::to_string(plan.degrees.dp), ink),
      Cell(std::to_string(plan.zero), ink),
      Cell(std::to_string(plan.micro_batch), ink),
      Cell(text_of(plan, Setting::kRecompute), ink),
      Cell(extras_text(plan), ink),
      Cell(scaled_text(p.step, scale), ink),
      Cell(fmt::format("{}-{}", scaled_text(p.step_low, scale), scaled_text(p.step_high, scale)),
           ink),
      Cell(rate_text(p.hardware_tflops_per_gpu), ink),
      Cell(rate_text(p.model_tflops_per_gpu), ink),
      Cell(gib_text(p.peak, gib_decimals(p.peak)), ink),
      Cell(chance_text(p.p_oom), ink_of_chance(p.p_oom))};
}

std::vector<Cell> memory_row(const StageMemory& memory, bool fullest, int decimals) {
  const Ink ink = fullest ? Ink::kBold : Ink::kPlain;
  std::vector<Cell> cells = {Cell(std::to_string(memory.stage), ink)};
  const auto add = [&](Bytes bytes) { cells.emplace_back(gib_text(bytes, decimals), ink); };
  for (const Bytes bytes : memory.by_category) add(bytes);
  add(memory.context);
  add(memory.fragmentation);
  add(memory.total());
  return cells;
}

std::vector<Column> memory_columns() {
  std::vector<Column> columns = {{"stage"}};
  for (int i = 0; i < kMemoryCategoryCount; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    // Abbreviated to keep the table within 100 columns.
    columns.push_back(
        {category == MemoryCategory::kCommunication ? "comm." : std::string(name_of(category))});
  }
  for (const char* title : {"context", "fragmented", "total"}) columns.push_back({title});
  return columns;
}

// Whether stage `index` is shown if at most `most` of `count` stages are. The first stages, the
// last and the fullest are shown.
bool is_shown(std::size_t index, std::size_t count, std::size_t fullest, std::size_t most) {
  if (count <= most || index + 1 == count || index == fullest) return true;
  return index < most - 2;
}

const char* default_mark(bool nobody_chose) { return nobody_chose ? " (default)" : ""; }

// Writes why launch files of the stack's program are refused for the plan.
void write_launch_note(TextReport& out, const Scenario& scenario, const Plan& plan) {
  const Launcher launcher = scenario.stack.launcher;
  const PartRule* const rule =
      broken_file_rule(launcher, scenario.stack, scenario.model, plan, scenario.profile.name);
  if (rule == nullptr) return;
  out.note(printable(
      fmt::format("note: export to {} refuses {}: {}", name_of(launcher), rule->what, rule->why)));
}

// Writes a line for nodes that consist of several hosts, such as NVLink racks with trays. Their
// hosts start and fail individually.
void write_racks(TextReport& out, const ClusterSpec& cluster, const Plan& plan) {
  if (!cluster.unequal_nodes.empty()) return;  // write_allocation()
  const std::int64_t host = host_size(cluster);
  if (host == cluster.gpus_per_node) return;
  const std::int64_t gpus = gpu_count(plan);
  const std::int64_t node = std::min(node_size(cluster, gpus), gpus);
  out.line("{} (NVLink racks), {} of {} GPUs used in each; {} (trays) of {} GPUs",
           counted_text((gpus + node - 1) / node, "node"), node, cluster.gpus_per_node,
           counted_text((gpus + host - 1) / host, "host"), host);
}

void write_step(TextReport& out, const Prediction& predicted) {
  const TimeScale scale = time_scale(predicted.step);
  out.row("step time", "{}, 90 % interval {} to {} {}; {} tokens/s",
          out.bold(fmt::format("{} {}", scaled_text(predicted.step, scale), scale.unit)),
          scaled_text(predicted.step_low, scale), scaled_text(predicted.step_high, scale),
          scale.unit, count_text(std::llround(predicted.tokens_per_s)));
}

// Names the two conventions by which frameworks count the FLOPs of causal attention.
void write_conventions(TextReport& out, const Prediction& predicted) {
  out.row("", "in logs: {} (torchtitan, whole causal mask), {} (Megatron, half of the mask)",
          rate_text(predicted.model_tflops_per_gpu), rate_text(predicted.half_mask_tflops_per_gpu));
}

void write_finetune(TextReport& out, const Scenario& scenario) {
  const Finetune& tuned = scenario.stack.training.finetune;
  if (!tuned.freezes()) return;
  const TrainedCounts counts = trained_counts(scenario.model, tuned);
  const std::string of_adapters = fmt::format(
      " of rank {} on {}", tuned.rank, text_of(row_of(StackPart::kLoraTargets), tuned.targets));
  out.line("{}{}: {} parameters trained, {} frozen{}", name_of(method_of(tuned)),
           tuned.adapts ? of_adapters : "", parameters_text(counts.trained),
           parameters_text(counts.frozen),
           tuned.quantizes_base() ? fmt::format(" in {}", name_of(tuned.base)) : "");
}

}  // namespace

void write_scenario(TextReport& out, const NamedScenario& named, const Plan& plan) {
  const Scenario& scenario = named.scenario;
  const std::string active =
      has_experts(scenario.model)
          ? fmt::format(" ({} active)", parameters_text(active_parameter_count(scenario.model)))
          : "";
  const std::string network =
      named.node_gbps > 0 ? fmt::format(" with {} Gb/s a node", named.node_gbps) : "";
  out.note(fmt::format(
      "{}, {} parameters{}, on {} of {}{}{} ({}, {}{})", out.bold(printable(scenario.model.name)),
      parameters_text(parameter_count(scenario.model)), active, gpus_text(gpu_count(plan)),
      printable(scenario.cluster.name), default_mark(named.cluster_is_default), network,
      printable(scenario.profile.name), printable(scenario.stack.name),
      default_mark(named.stack_is_default)));
  write_finetune(out, scenario);
  write_racks(out, scenario.cluster, plan);
  const std::string longest = named.seq_is_default && scenario.model.context > scenario.model.seq
                                  ? fmt::format(" (default; the model supports {}: --seq)",
                                                count_text(scenario.model.context))
                                  : default_mark(named.seq_is_default);
  out.line("{}{} of {} tokens{} in a step", counted_text(plan.global_batch, "sequence"),
           default_mark(named.settings_left.contains(Setting::kGlobalBatch)),
           count_text(scenario.model.seq), longest);
  if (!named.stack_reason.empty()) {
    out.note(printable(
        fmt::format("{}; {} is assumed instead", named.stack_reason, named.scenario.stack.name)));
  }
  if (!named.remedy.empty()) out.note(printable(named.remedy));
  if (!named.dropped.empty()) {
    out.note(
        printable(fmt::format("dropped from the plan file: {}", fmt::join(named.dropped, ", "))));
  }
  for (const std::string& note : scenario.model.notes) out.line("note: {}", printable(note));
  write_launch_note(out, scenario, plan);
}

void write_plan(TextReport& out, const Plan& plan, const std::set<Setting>& left) {
  const auto mark = [&](Setting setting) { return default_mark(left.contains(setting)); };
  const ParallelDegrees& d = plan.degrees;
  std::string schedule(name_of(plan.schedule));
  if (plan.virtual_stages > 1) schedule += fmt::format(" x {}", plan.virtual_stages);
  const std::string degrees = out.bold(fmt::format(
      "tp {}, pp {}, dp {}{}{}{}", d.tp, d.pp, d.dp, d.cp > 1 ? fmt::format(", cp {}", d.cp) : "",
      d.ep > 1 ? fmt::format(", ep {}", d.ep) : "",
      d.etp > 0 ? fmt::format(", etp {}", d.etp) : ""));
  out.row("layout", "{}, ZeRO {}{}, {} micro-batch{} of {}{}, {}", degrees, plan.zero,
          mark(Setting::kZero), micro_batches(plan), micro_batches(plan) == 1 ? "" : "es",
          plan.micro_batch, mark(Setting::kMicroBatch), schedule);
  const std::string precision =
      plan.precision == Precision::kNone
          ? ""
          : fmt::format(" with {} linear layers{}", name_of(plan.precision),
                        plan.fp8_param_gather ? " and weights" : "");
  out.prose_row(
      "kernels",
      fmt::format(
          "{} recompute{}, {} attention{}, sequence parallel {}{}, {}{}, gradients {}{}",
          plan.recompute == Recompute::kNone ? "no" : text_of(plan, Setting::kRecompute),
          mark(Setting::kRecompute), name_of(plan.attention), mark(Setting::kAttention),
          plan.sequence_parallel ? "on" : "off",
          plan.degrees.tp > 1 ? mark(Setting::kSequenceParallel) : "", name_of(plan.dtype),
          precision, name_of(plan.gradient_dtype),
          !offloads_optimizer(plan) ? "" : fmt::format(", {} offload", name_of(plan.offload))));
  if (plan.rank_order != RankOrder::kTpDpPp) {
    out.row("ranks", "order tp-pp-dp: pipeline stages vary faster than data-parallel ranks");
  }
  out.row("blocks", "{} by {}", layers_text(plan.stage_layers),
          plan.virtual_stages > 1 ? "chunk" : "stage");
}

void write_headline(TextReport& out, const Prediction& predicted) {
  write_step(out, predicted);
  out.row("speed", "{} model TFLOP/s per GPU (MFU {})",
          out.bold(rate_text(predicted.model_tflops_per_gpu)), percent_text(predicted.mfu));
  write_conventions(out, predicted);
  write_used_memory(out, predicted);
  if (fits_in_memory(predicted, kRefusedChance)) {
    out.row("fits", "{}", out.paint("yes", Ink::kGood));
  } else {
    out.prose_row("fits", "no: it " + misfit_text(predicted, kRefusedChance));
  }
}

void write_prediction(TextReport& out, const Prediction& predicted, const Profile& profile) {
  write_step(out, predicted);
  out.row("speed", "{} hardware TFLOP/s per GPU (counting recompute), {} model TFLOP/s (MFU {})",
          out.bold(rate_text(predicted.hardware_tflops_per_gpu)),
          out.bold(rate_text(predicted.model_tflops_per_gpu)), percent_text(predicted.mfu));
  write_conventions(out, predicted);
  write_used_memory(out, predicted);
  if (predicted.host_memory > Bytes()) {
    out.row("host", "{} of {} GiB host memory per node for offloaded state",
            gib_text(predicted.host_memory), gib_text(predicted.host_capacity));
  }
  const Sources& sources = predicted.sources;
  out.prose_row(
      "rests on",
      fmt::format(
          "profile {} ({}); kernel times: {:.0f} % measured at this size, {:.0f} % interpolated, "
          "{:.0f} % analytical",
          printable(profile.name), name_of(profile.provenance), sources.exact_entries * 100,
          sources.interpolated_entries * 100, sources.model * 100));
}

void write_breakdown(TextReport& out, const Prediction& predicted, std::size_t most) {
  const TimeScale scale = time_scale(predicted.step);
  Table table({{"", Align::kLeft}, {""}, {""}, {"", Align::kLeft}});
  const std::vector<BreakdownRow> rows = largest_terms(predicted, most);
  const auto time_of = [&](const BreakdownRow& term) {
    return fmt::format("{} {}", scaled_text(term.time, scale), scale.unit);
  };
  // Columns before the bar, each after two spaces: name, time, share.
  std::size_t name = 0, time = 0;
  for (const BreakdownRow& term : rows) {
    name = std::max(name, display_width(term.name));
    time = std::max(time, display_width(time_of(term)));
  }
  constexpr std::size_t kShare = 6, kSpaces = 8;
  constexpr int kLeastBar = 10;
  const auto columns = static_cast<int>(out.terminal().columns);
  const auto used = static_cast<int>(name + time + kShare + kSpaces);
  const int width = columns == 0 ? kBarWidth : std::clamp(columns - used, kLeastBar, kBarWidth);
  const Seconds longest = rows.empty() ? Seconds(1) : std::max(rows.front().time, rows.back().time);
  for (const BreakdownRow& term : rows) {
    table.add_row({term.name, time_of(term),
                   Cell(percent_text(term.time / predicted.step), Ink::kDim),
                   Cell(out.terminal().bar(term.time / longest, width), Ink::kGood)});
  }
  out.table(table);
}

void write_memory(TextReport& out, const Prediction& predicted, std::size_t most) {
  Table table(memory_columns());
  const std::int64_t fullest = fullest_stage(predicted).stage;
  const std::size_t count = predicted.memory.size();
  std::size_t hidden = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const StageMemory& memory = predicted.memory[i];
    if (!is_shown(i, count, static_cast<std::size_t>(fullest), most)) {
      ++hidden;
      continue;
    }
    table.add_row(memory_row(memory, memory.stage == fullest, gib_decimals(predicted.peak)));
  }
  out.table(table);
  if (hidden > 0) {
    out.line("{}", out.paint(fmt::format("  {} stages are not shown: see tpsim explain", hidden),
                             Ink::kDim));
  }
}

void write_ranking(TextReport& out, std::span<const PlannedRun> runs, bool marks_ties,
                   const UsedColumns& used) {
  const Prediction& best = runs.front().predicted;
  const TimeScale scale = time_scale(best.step);
  std::vector<Column> columns = columns_of(fmt::format(
      "|tp|pp|dp|zero|mb|<recomp.|?<kernels|step {}|?90 % interval|?hw|model|GiB|p(OOM)",
      scale.unit));
  if (!used.columns.empty()) columns.insert(columns.begin() + 1, {"GPUs"});
  for (const UsedColumns::Column& column : used.columns) columns.push_back({column.title});
  Table table(std::move(columns));
  for (const PlannedRun& run : runs) {
    const bool is_best = &run == &runs.front();
    const bool ties = marks_ties && !is_best && is_tie(best.step, run.predicted.step);
    const Ink ink = is_best ? Ink::kBold : Ink::kPlain;
    std::vector<Cell> cells = ranking_row(run, scale, ties, ink);
    if (!used.columns.empty()) {
      cells.insert(cells.begin() + 1, Cell(count_text(gpu_count(run.plan)), ink));
    }
    for (const UsedColumns::Column& column : used.columns) {
      cells.emplace_back(column.cells.at(static_cast<std::size_t>(&run - runs.data())), ink);
    }
    table.add_row(std::move(cells));
  }
  out.table(table);
}

}  // namespace tpsim::cli
