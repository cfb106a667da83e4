#include "cli/views/plan_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "app/scenario/fit.h"
#include "cli/options/table.h"
#include "cli/options/wrapping.h"
#include "core/base/numbers.h"
#include "core/software/part_rules.h"
#include "sim/step/order.h"

namespace tpsim::cli {
namespace {

constexpr int kBarWidth = 40;
constexpr int kGaugeWidth = 20;

template <class... Values>
std::string row(const Terminal& terminal, std::string_view label,
                fmt::format_string<const Values&...> text, const Values&... values) {
  return fmt::format("  {}{}\n", terminal.paint(fmt::format("{:<13}", label), Ink::kDim),
                     fmt::format(text, values...));
}

// Returns TFLOP/s; with three decimals below 1, since a CPU core may have only 0.01 TFLOP/s.
std::string rate_text(double tflops) {
  return tflops < 1 ? fmt::format("{:.3f}", tflops) : fmt::format("{:.1f}", tflops);
}

Ink ink_of_chance(double p_oom) {
  return p_oom >= kRefusedChance ? Ink::kBad : p_oom >= 0.05 ? Ink::kWarn : Ink::kGood;
}

std::string memory_line(const Terminal& terminal, const Prediction& predicted) {
  const double share = predicted.peak / predicted.capacity;
  return fmt::format(
      "{} of {} GiB on stage {}, the fullest  {}  p(OOM) {}",
      terminal.paint(gib_text(predicted.peak, gib_decimals(predicted.peak)), Ink::kBold),
      gib_text(predicted.capacity), fullest_stage(predicted).stage,
      terminal.gauge(share, kGaugeWidth),
      terminal.paint(chance_text(predicted.p_oom), ink_of_chance(predicted.p_oom)));
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

std::string note_line(const Terminal& terminal, const std::string& text) {
  return wrapped(printable(text), terminal.room(2, 100), 2) + "\n";
}

const char* default_mark(bool nobody_chose) { return nobody_chose ? " (default)" : ""; }

}  // namespace

std::string heading(const Terminal& terminal, std::string_view title, std::string_view note) {
  std::string text = terminal.paint(title, Ink::kBold);
  if (!note.empty()) text += "   " + terminal.paint(note, Ink::kDim);
  return text + "\n";
}

// Returns the notes in the model's file about features that are not planned.
std::string notes_text(const ModelSpec& model) {
  std::string text;
  for (const std::string& note : model.notes) text += "note: " + printable(note) + "\n";
  return text;
}

// Returns why launch files of the stack's program are refused for the plan; empty if they are not.
std::string launch_note(const Terminal& terminal, const Scenario& scenario, const Plan& plan) {
  const Launcher launcher = scenario.stack.launcher;
  const PartRule* const rule =
      broken_file_rule(launcher, scenario.stack, scenario.model, plan, scenario.profile.name);
  if (rule == nullptr) return "";
  return note_line(
      terminal, fmt::format("note: {} refuses {}: {}", name_of(launcher), rule->what, rule->why));
}

std::string dropped_text(const Terminal& terminal, const std::vector<std::string>& dropped) {
  if (dropped.empty()) return "";
  return note_line(terminal,
                   fmt::format("dropped from the plan file: {}", fmt::join(dropped, ", ")));
}

// Returns why the assumed stack is not the cluster's.
std::string stack_text(const Terminal& terminal, const NamedScenario& named) {
  if (named.stack_reason.empty()) return "";
  return note_line(terminal, fmt::format("{}; {} is assumed instead", named.stack_reason,
                                         named.scenario.stack.name));
}

// Returns a line for nodes that consist of several hosts, such as NVLink racks with trays. Their
// hosts start and fail individually.
std::string racks_text(const ClusterSpec& cluster, const Plan& plan) {
  const std::int64_t host = host_size(cluster);
  if (host == cluster.gpus_per_node) return "";
  const std::int64_t gpus = gpu_count(plan);
  const std::int64_t node = std::min(node_size(cluster, gpus), gpus);
  return fmt::format("{} (NVLink racks), {} of {} GPUs used in each; {} (trays) of {} GPUs\n",
                     counted_text((gpus + node - 1) / node, "node"), node, cluster.gpus_per_node,
                     counted_text((gpus + host - 1) / host, "host"), host);
}

std::string scenario_view(const Terminal& terminal, const NamedScenario& named, const Plan& plan) {
  const Scenario& scenario = named.scenario;
  const std::string active =
      has_experts(scenario.model)
          ? fmt::format(" ({} active)", parameters_text(active_parameter_count(scenario.model)))
          : "";
  const std::string network =
      named.node_gbps > 0 ? fmt::format(" with {} Gb/s a node", named.node_gbps) : "";
  const std::string on =
      fmt::format("{}, {} parameters{}, on {} of {}{}{} ({}, {}{})",
                  terminal.paint(printable(scenario.model.name), Ink::kBold),
                  parameters_text(parameter_count(scenario.model)), active,
                  gpus_text(gpu_count(plan)), printable(scenario.cluster.name),
                  default_mark(named.cluster_is_default), network, printable(scenario.profile.name),
                  printable(scenario.stack.name), default_mark(named.stack_is_default));
  return wrapped(on, terminal.room(2, 100), 2) + "\n" + racks_text(scenario.cluster, plan) +
         fmt::format("{}{} of {} tokens in a step\n", counted_text(plan.global_batch, "sequence"),
                     default_mark(named.settings_left.contains(Setting::kGlobalBatch)),
                     count_text(scenario.model.seq)) +
         stack_text(terminal, named) + dropped_text(terminal, named.dropped) +
         notes_text(scenario.model) + launch_note(terminal, scenario, plan);
}

std::string plan_view(const Terminal& terminal, const Plan& plan, const std::set<Setting>& left) {
  const auto mark = [&](Setting setting) { return default_mark(left.contains(setting)); };
  const ParallelDegrees& d = plan.degrees;
  std::string schedule(name_of(plan.schedule));
  if (plan.virtual_stages > 1) schedule += fmt::format(" x {}", plan.virtual_stages);
  const std::string degrees =
      terminal.paint(fmt::format("tp {}, pp {}, dp {}{}{}{}", d.tp, d.pp, d.dp,
                                 d.cp > 1 ? fmt::format(", cp {}", d.cp) : "",
                                 d.ep > 1 ? fmt::format(", ep {}", d.ep) : "",
                                 d.etp > 0 ? fmt::format(", etp {}", d.etp) : ""),
                     Ink::kBold);
  return row(terminal, "layout", "{}, ZeRO {}{}, {} micro-batch{} of {}{}, {}", degrees, plan.zero,
             mark(Setting::kZero), micro_batches(plan), micro_batches(plan) == 1 ? "" : "es",
             plan.micro_batch, mark(Setting::kMicroBatch), schedule) +
         row(terminal, "kernels", "{}",
             wrapped(
                 fmt::format(
                     "{} recompute{}, {} attention{}, sequence parallel {}{}, {}{}, gradients {}{}",
                     plan.recompute == Recompute::kNone ? "no" : text_of(plan, Setting::kRecompute),
                     mark(Setting::kRecompute), name_of(plan.attention), mark(Setting::kAttention),
                     plan.sequence_parallel ? "on" : "off",
                     plan.degrees.tp > 1 ? mark(Setting::kSequenceParallel) : "",
                     name_of(plan.dtype),
                     plan.precision == Precision::kNone
                         ? ""
                         : fmt::format(" with {} linear layers{}", name_of(plan.precision),
                                       plan.fp8_param_gather ? " and weights" : ""),
                     name_of(plan.gradient_dtype),
                     plan.offload == Offload::kNone
                         ? ""
                         : fmt::format(", {} offload", name_of(plan.offload))),
                 terminal.room(15, 85), 15)) +
         (plan.rank_order == RankOrder::kTpDpPp
              ? ""
              : row(terminal, "ranks", "{}",
                    "order tp-pp-dp: pipeline stages vary faster than data-parallel ranks")) +
         row(terminal, "blocks", "{}",
             layers_text(plan.stage_layers) +
                 (plan.virtual_stages > 1 ? " by chunk" : " by stage"));
}

namespace {

std::string step_row(const Terminal& terminal, const Prediction& predicted) {
  const TimeScale scale = time_scale(predicted.step);
  return row(terminal, "step time", "{}, 90 % interval {} to {} {}; {} tokens/s",
             terminal.paint(fmt::format("{} {}", scaled_text(predicted.step, scale), scale.unit),
                            Ink::kBold),
             scaled_text(predicted.step_low, scale), scaled_text(predicted.step_high, scale),
             scale.unit, count_text(std::llround(predicted.tokens_per_s)));
}

}  // namespace

namespace {

// Names the two conventions by which frameworks count the FLOPs of causal attention.
std::string convention_row(const Terminal& terminal, const Prediction& predicted) {
  return row(
      terminal, "", "in logs: {} (torchtitan, whole causal mask), {} (Megatron, half of the mask)",
      rate_text(predicted.model_tflops_per_gpu), rate_text(predicted.half_mask_tflops_per_gpu));
}

}  // namespace

std::string headline_view(const Terminal& terminal, const Prediction& predicted) {
  const std::string fits =
      fits_in_memory(predicted, kRefusedChance)
          ? terminal.paint("yes", Ink::kGood)
          : wrapped(fmt::format("no: it {}", misfit_text(predicted, kRefusedChance)),
                    terminal.room(15, 85), 15);
  return step_row(terminal, predicted) +
         row(terminal, "speed", "{} model TFLOP/s per GPU (MFU {})",
             terminal.paint(rate_text(predicted.model_tflops_per_gpu), Ink::kBold),
             percent_text(predicted.mfu)) +
         convention_row(terminal, predicted) +
         row(terminal, "memory", "{}", memory_line(terminal, predicted)) +
         row(terminal, "fits", "{}", fits);
}

std::string prediction_view(const Terminal& terminal, const Prediction& predicted,
                            const Profile& profile) {
  std::string text = step_row(terminal, predicted);
  text += row(terminal, "speed",
              "{} hardware TFLOP/s per GPU (counting recompute), {} model TFLOP/s (MFU {})",
              terminal.paint(rate_text(predicted.hardware_tflops_per_gpu), Ink::kBold),
              terminal.paint(rate_text(predicted.model_tflops_per_gpu), Ink::kBold),
              percent_text(predicted.mfu));
  text += convention_row(terminal, predicted);
  text += row(terminal, "memory", "{}", memory_line(terminal, predicted));
  if (predicted.host_memory > Bytes()) {
    text += row(terminal, "host", "{} of {} GiB host memory per node for the offloaded optimizer",
                gib_text(predicted.host_memory), gib_text(predicted.host_capacity));
  }
  text += row(terminal, "rests on", "profile {} ({}); {}", printable(profile.name),
              name_of(profile.provenance), sources_text(predicted.sources));
  return text;
}

std::string breakdown_view(const Terminal& terminal, const Prediction& predicted,
                           std::size_t most) {
  const TimeScale scale = time_scale(predicted.step);
  Table table({{"", Align::kLeft}, {""}, {""}, {"", Align::kLeft}});
  const std::vector<BreakdownRow> rows = largest_terms(predicted, most);
  // Width of the numbers before the bar, and minimum width of the bar.
  constexpr int kBeside = 40, kLeastBar = 10;
  const int width =
      std::clamp(static_cast<int>(terminal.room(kBeside, kBarWidth)), kLeastBar, kBarWidth);
  const Seconds longest = rows.empty() ? Seconds(1) : std::max(rows.front().time, rows.back().time);
  for (const BreakdownRow& term : rows) {
    table.add_row({term.name, fmt::format("{} {}", scaled_text(term.time, scale), scale.unit),
                   Cell(percent_text(term.time / predicted.step), Ink::kDim),
                   Cell(terminal.bar(term.time / longest, width), Ink::kGood)});
  }
  return table.text(terminal);
}

std::string memory_view(const Terminal& terminal, const Prediction& predicted, std::size_t most) {
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
  std::string text = table.text(terminal);
  if (hidden > 0) {
    text += terminal.paint(fmt::format("  {} stages are not shown: see tpsim explain", hidden),
                           Ink::kDim) +
            "\n";
  }
  return text;
}

std::string ranking_view(const Terminal& terminal, std::span<const PlannedRun> runs,
                         bool marks_ties, const UsedColumns& used) {
  const Prediction& best = runs.front().predicted;
  const TimeScale scale = time_scale(best.step);
  std::vector<Column> columns = columns_of(fmt::format(
      "|tp|pp|dp|zero|mb|<recomp.|<kernels|step {}|90 % interval|hw|model|GiB|p(OOM)", scale.unit));
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
  return table.text(terminal);
}

std::string sources_text(const Sources& sources) {
  return fmt::format(
      "kernel times: {:.0f} % measured at this size, {:.0f} % interpolated, {:.0f} % analytical",
      sources.exact_entries * 100, sources.interpolated_entries * 100, sources.model * 100);
}

}  // namespace tpsim::cli
