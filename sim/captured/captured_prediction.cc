#include "sim/captured/captured_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/base/normal.h"
#include "core/plan/rank_layout.h"
#include "costs/collective_cost.h"
#include "costs/op_cost.h"
#include "lowering/passes/lowered_layer.h"
#include "sim/memory/stage_memory.h"
#include "sim/step/predict.h"
#include "sim/step/usual_spreads.h"

namespace tpsim {
namespace {

constexpr double kRoughSpread = 0.5;  // of prices of other kernels than the profile timed
// Root mean square of log(predicted / measured) of the 46 steps of docs/validation/captures.md, of
// which the host times were fitted on half.
constexpr double kCapturedSpread = 0.165;

// "model.layers.*.mlp": layers of one list are added.
std::string without_numbers(const std::string& module) {
  std::string text;
  for (std::size_t at = 0; at < module.size();) {
    const std::size_t end = std::min(module.find('.', at), module.size());
    const std::string part = module.substr(at, end - at);
    const bool is_number =
        !part.empty() &&
        std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!text.empty()) text += '.';
    text += is_number ? "*" : part;
    at = end + 1;
  }
  return text.empty() ? "(the program)" : text;
}

void add(std::map<std::string, CapturedTime>& into, const std::string& what, Seconds time) {
  CapturedTime& row = into.try_emplace(what, CapturedTime{what, 0, {}}).first->second;
  ++row.count;
  row.time += time;
}

std::vector<CapturedTime> sorted(const std::map<std::string, CapturedTime>& rows) {
  std::vector<CapturedTime> list;
  for (const auto& [what, row] : rows) list.push_back(row);
  std::stable_sort(list.begin(), list.end(),
                   [](const CapturedTime& a, const CapturedTime& b) { return a.time > b.time; });
  return list;
}

// Walks the events in the order in which the host issues them.
class Walk {
 public:
  // `clock`: of the GPU, relative to its clock in short work.
  Walk(const CapturedStep& step, const CapturedMachine& machine, const OpCostModel& ops,
       double clock)
      : step_(step),
        machine_(machine),
        ops_(ops),
        clock_(clock),
        collectives_(machine.profile, machine.cluster) {
    for (const CapturedKernel& kernel : step.kernels) price(kernel);
    for (const std::string& module : step.modules) modules_.push_back(without_numbers(module));
    const std::int64_t node = node_size(machine.cluster, step.world);
    for (const CapturedCollective& one : step.collectives) {
      wire_.push_back(collectives_.price(one.kind, Bytes(static_cast<double>(one.bytes)),
                                         place_ranks(step.groups[one.group], node)));
    }
  }

  CapturedPrediction run() {
    begin_memory();
    for (const CapturedEvent& event : step_.events) visit(event);
    Point last = ends_[0];
    for (const auto& [stream, end] : ends_) {
      if (end.time > last.time) last = end;
    }
    made_.step = std::max(last.time, host_);
    add_idle(made_.step, last);
    made_.ops = sorted(by_kind_);
    made_.collectives = sorted(by_collective_);
    made_.modules = sorted(by_module_);
    made_.rough = sorted(rough_);
    finish_memory();
    finish_interval();
    return made_;
  }
  // Returns the clock that follows from the ops of run(). `step`: its time.
  double clock_of_step(Seconds step) const { return clocked_.solve(step, clock_); }

 private:
  struct Priced {
    KernelWork work;
    OpPrice price = {};
    double factor = 1;
    Seconds time = {};  // factor x price at the step's clock
  };
  // A point in time, and whether a collective is the reason for it.
  struct Point {
    Seconds time;
    bool is_collective = false;
  };

  void price(const CapturedKernel& kernel) {
    Priced priced{work_of(kernel)};
    if (priced.work.kind == WorkKind::kHostCopy) {
      const HostSpec& host = machine_.cluster.host;
      priced.price.least = machine_.profile.model.kernel_latency +
                           Bytes(priced.work.record.bytes) / (host.link_efficiency * host.link);
    } else {
      priced.price = ops_.price(priced.work.record);
      priced.factor = priced.work.times;
      if (priced.work.kind == WorkKind::kAttention) {
        const bool is_cudnn = kernel.op.find("cudnn") != std::string::npos;
        priced.factor /=
            ops_.attention_speed(is_cudnn ? AttentionKernel::kCudnn : AttentionKernel::kFlash2);
      }
    }
    priced.time = priced.factor * priced.price.at(clock_);
    kernels_.push_back(priced);
  }

  void visit(const CapturedEvent& event) {
    using Kind = CapturedEvent::Kind;
    Point& end = ends_[event.stream];
    switch (event.kind) {
      case Kind::kKernel: return run_kernel(event, end);
      case Kind::kCollective: {
        host_ += machine_.stack.host.per_collective;
        const Seconds time = wire_[event.index];
        const Seconds start = std::max(end.time, host_);
        end = {start + time, true};
        add_span(event, start, end.time);
        add(by_collective_, std::string(name_of(step_.collectives[event.index].kind)), time);
        break;
      }
      case Kind::kMark: marks_[event.index] = end; break;
      case Kind::kWait: {
        const Point& mark = marks_[event.index];
        if (mark.time <= end.time) break;
        end = {mark.time, mark.is_collective};
        break;
      }
      case Kind::kHostWait:
        if (event.index == CapturedEvent::kEverything) {
          for (const auto& [stream, other] : ends_) host_ = std::max(host_, other.time);
        } else {
          host_ = std::max(host_, marks_[event.index].time);
        }
        break;
      case Kind::kCall: host_ += machine_.stack.host.module_call; break;
      case Kind::kAllocate: allocate(event.index, 1); break;
      case Kind::kFree: allocate(event.index, -1); break;
    }
  }

  void run_kernel(const CapturedEvent& event, Point& end) {
    const Priced& priced = kernels_[event.index];
    const HostCost& host = machine_.stack.host;
    // Stacks without times of captured programs have one time per kernel.
    const bool is_split = host.forward_op > Seconds();
    host_ += event.phase == CapturedPhase::kOptimizer ? host.per_op
             : !is_split                              ? host.per_op + host.per_block_op
             : event.phase == CapturedPhase::kForward ? host.forward_op
                                                      : host.backward_op;
    const Seconds start = std::max(end.time, host_);
    if (event.stream == 0) {
      add_idle(start, end);
      made_.busy += priced.time;
    }
    // Other streams copy what collectives transfer: who waits for them waits for the collective.
    end = {start + priced.time, event.stream != 0 && end.is_collective};
    add_span(event, start, end.time);
    if (event.stream == 0) last_end_ = end.time;
    if (priced.work.kind == WorkKind::kHostCopy && step_.kernels[event.index].copies_to_host) {
      host_ = std::max(host_, end.time);  // .item() and .cpu() wait
    }
    clocked_.add(priced.price, priced.factor);
    account(event, priced);
  }

  void add_span(const CapturedEvent& event, Seconds begin, Seconds end) {
    const auto index = static_cast<std::uint32_t>(&event - step_.events.data());
    made_.spans.push_back({index, begin, end, live_});
  }

  // The compute stream ran its last op until last_end_, waits for other streams until `ready`, and
  // then for the host.
  void add_idle(Seconds start, const Point& ready) {
    made_.host_wait += start - ready.time;
    (ready.is_collective ? made_.exposed : made_.host_wait) += ready.time - last_end_;
  }

  void account(const CapturedEvent& event, const Priced& priced) {
    const bool is_update = event.phase == CapturedPhase::kOptimizer;
    const WorkKind kind = is_update ? WorkKind::kOptimizer : priced.work.kind;
    add(by_kind_, std::string(name_of(kind)), priced.time);
    add(by_module_, modules_[event.module], priced.time);
    made_.by_phase[static_cast<std::size_t>(event.phase)] += priced.time;
    if (priced.work.is_rough) add(rough_, step_.kernels[event.index].op, priced.time);
    if (runs_on_matrix_units(priced.work.record.key.kind)) {
      made_.flops += priced.work.times * priced.work.record.flops;
    }
    double& share = priced.work.is_rough                         ? rough_time_
                    : priced.price.source == PriceSource::kExact ? made_.sources.exact_entries
                    : priced.price.source == PriceSource::kInterpolated
                        ? made_.sources.interpolated_entries
                        : made_.sources.model;
    share += priced.time.value();
  }

  // Memory.
  void allocate(std::uint32_t index, int sign) {
    const CapturedStorage& storage = step_.storages[index];
    const MemoryCategory category = storage.category.value_or(MemoryCategory::kActivations);
    live_[static_cast<std::size_t>(category)] +=
        sign * allocated_bytes({{.bytes = storage.bytes}}, rounding_);
    const double sum = total(live_);
    if (sum <= highest_) return;
    highest_ = sum;
    at_peak_ = live_;
  }
  void begin_memory() {
    for (const std::uint32_t index : step_.live_at_start) allocate(index, 1);
  }
  void finish_memory() {
    const StackMemory& stack = machine_.stack.memory;
    std::set<std::uint32_t> groups;
    for (const CapturedCollective& one : step_.collectives) groups.insert(one.group);
    const MemoryOverheads overheads{
        stack.library_workspace, static_cast<double>(groups.size()) * stack.collective_buffers, {}};
    TensorPeak tensors;
    tensors.highest = at_peak_;
    made_.memory = stage_memory(stack, {}, overheads, {}, tensors);
    made_.peak = made_.memory.total();
    made_.overheads = made_.memory;
    for (std::size_t i = 0; i < at_peak_.size(); ++i) {
      made_.overheads.by_category[i] = made_.memory.by_category[i] - Bytes(at_peak_[i]);
    }
    made_.capacity = machine_.profile.device.memory;
    made_.p_oom = probability_of_oom(stack, made_.capacity, made_.peak);
  }

  void finish_interval() {
    const double all = made_.sources.exact_entries + made_.sources.interpolated_entries +
                       made_.sources.model + rough_time_;
    if (all > 0) {
      for (double* share : {&made_.sources.exact_entries, &made_.sources.interpolated_entries,
                            &made_.sources.model, &rough_time_}) {
        *share /= all;
      }
    }
    const double model = machine_.profile.model.provenance == Provenance::kDatasheet
                             ? kDatasheetSpread
                             : kModelSpread;
    const double step = std::max(made_.step.value(), 1e-12);
    double variance = 0;
    for (const double spread :
         {machine_.stack.run_spread, made_.sources.model * model,
          made_.sources.interpolated_entries * kInterpolatedSpread, rough_time_ * kRoughSpread,
          made_.host_wait.value() / step * kHostSpread,
          made_.exposed.value() / step * kNetworkSpread, kCapturedSpread}) {
      variance += spread * spread;
    }
    const double half = kHalfOf90 * std::sqrt(variance);
    made_.step_low = std::exp(-half) * made_.step;
    made_.step_high = std::exp(half) * made_.step;
  }

  const CapturedStep& step_;
  const CapturedMachine& machine_;
  const OpCostModel& ops_;
  double clock_;
  StepClock clocked_;
  CollectiveCostModel collectives_;
  std::vector<Priced> kernels_;
  std::vector<Seconds> wire_;         // of step_.collectives
  std::vector<std::string> modules_;  // names without numbers
  Seconds host_, last_end_;
  std::map<std::int64_t, Point> ends_;  // by stream
  std::unordered_map<std::uint32_t, Point> marks_;
  std::map<std::string, CapturedTime> by_kind_, by_collective_, by_module_, rough_;
  // Blocks as PyTorch counts its allocated bytes, without the rests of segments.
  AllocationRounding rounding_{std::max(Bytes(1), machine_.stack.memory.allocation_granularity)};
  BytesByCategory live_{}, at_peak_{};
  double highest_ = 0, rough_time_ = 0;
  CapturedPrediction made_;
};

}  // namespace

Result<CapturedPrediction> predict_captured(const CapturedStep& step,
                                            const CapturedMachine& machine) {
  const std::int64_t gpus = gpus_for(machine.cluster, step.world);
  if (step.world > gpus) {
    return bad_input(fmt::format("the program has {} ranks, but cluster {} has {} GPUs", step.world,
                                 machine.cluster.name, gpus),
                     "--cluster");
  }
  const OpCostModel ops(machine.profile, Fp32Matmul::kIeee, machine.cluster.gpu_clock);
  Walk slow(step, machine, ops, ops.lowest_clock());
  const Seconds longest = slow.run().step;
  return Walk(step, machine, ops, slow.clock_of_step(longest)).run();
}

}  // namespace tpsim
