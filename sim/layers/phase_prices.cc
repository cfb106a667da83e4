// Cost of a lowered layer for one micro-batch: prices its events in order.
#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "costs/matmul_model.h"
#include "lowering/passes/step_habits.h"
#include "sim/layers/layer_pricer.h"
#include "sim/layers/stream_clocks.h"

namespace tpsim {

using Kind = LoweredEvent::Kind;

// The added unfused kernels are mostly elementwise, even where the fused kernel is a reduction.
double LayerPricer::time_factor(const LoweredOp& op) const {
  const double work = op.uncalibrated * op.repeats;
  if (is_flash(op.key.kind)) return work / ops().attention_speed(op.attention);
  return work * (1 + (op.traffic - 1) * ops().streaming_cost(op.key.kind));
}

OpPrice LayerPricer::op_price(const OpRecord& op) {
  const PricedOp priced{op.key, op.flops, op.bytes, is_grouped_product(op)};
  const auto found = op_prices_.find(priced);
  if (found != op_prices_.end()) return found->second;
  return op_prices_.emplace(priced, ops().price(op)).first->second;
}

Seconds LayerPricer::kernel_time(const LoweredOp& op, const OpPrice& price, double clock) const {
  const Seconds time = time_factor(op) * price.at(clock);
  // Kernels over few elements are bound by latency, so many launches take at least their latencies.
  // GEMMs of experts are launched side by side.
  if (op.traffic == 1 && op.launches > 1 && op.label.part != ModelPart::kExperts) {
    const auto others = static_cast<double>(op.launches - 1);
    return std::max(time, others * scenario().profile.model.kernel_latency);
  }
  return time;
}

Seconds LayerPricer::copy_time(const LoweredCopy& copy) const {
  const Seconds time = streaming_time(copy.moved);
  if (!copy.adds_latency) return time;
  return copy.kernels * scenario().profile.model.kernel_latency + time;
}

namespace {

// Bounds hold for any clock of the step.
constexpr double kHighestClock = 1;

bool is_core(OpKind kind) {
  return runs_on_matrix_units(kind) || is_softmax(kind) || is_scan(kind);
}

// Prices the events of a phase in their order, on two paths: from a start of the device, for which
// the host has issued everything, and from a start of the host. Calls in flight go on while the
// device waits for the host.
class PhaseWalk {
 public:
  // `prices`: of the layer's ops.
  PhaseWalk(LayerPricer& pricer, const LoweredLayer& layer, const std::vector<OpPrice>& prices,
            const Plan& plan, double clock, StepClock* clocked)
      : pricer_(pricer),
        layer_(layer),
        prices_(prices),
        plan_(plan),
        clock_(clock),
        clocked_(clocked),
        from_device_(pricer.scenario().stack.overlap_slowdown),
        from_host_(from_device_) {}

  // Records all kernels and calls.
  void record(std::vector<LaneSpan>* spans) {
    spans_ = spans;
    from_device_.record(&ended_);
  }

  PhaseCost price(const LoweredPhase& phase) {
    for (const LoweredEvent& event : phase.events) {
      const bool carries = event.kind == Kind::kStart && record_of(event).is_carried;
      if (!carries) continue;
      start(event.index);
      if (spans_ != nullptr) {
        add_call(event.index, Seconds());
        spans_->back().issued = Seconds(-1);
      }
    }
    for (const LoweredEvent& event : phase.events) {
      if (event.is_first) issue(phase.host_per_event);
      if (event.is_first) cost_.core.host += phase.host_per_event;
      const Seconds begin = cost_.time.device;
      price(event);
      if (spans_ != nullptr) add_spans(event, begin);
    }
    return std::move(cost_);
  }

 private:
  const Scenario& scenario() const { return pricer_.scenario(); }
  const LoweredCollective& record_of(const LoweredEvent& event) const {
    return layer_.collectives[event.index];
  }
  Seconds time_of(const LoweredCollective& record) const {
    return record.load * record.calls * pricer_.collective(record, plan_);
  }

  void price(const LoweredEvent& event) {
    switch (event.kind) {
      case Kind::kOp: return price(layer_.ops[event.index], prices_[event.index]);
      case Kind::kCopy: return price(layer_.copies[event.index]);
      case Kind::kHost: return price(layer_.host[event.index]);
      case Kind::kCollective: {
        const LoweredCollective& record = record_of(event);
        const Seconds time = time_of(record);
        charge(event.index, time);
        const bool is_replicas =
            record.group == GroupKind::kData || record.group == GroupKind::kExpertData;
        if (!is_replicas) cost_.core.device += time;
        return run(launch(scenario(), record.issue, time), time);
      }
      case Kind::kStart:
        if (!record_of(event).is_carried) start(event.index);
        return issue(record_of(event).issue);
      case Kind::kWait: {
        const Seconds idle = from_device_.wait(event.index);
        charge(event.index, idle);
        return pause(idle, from_host_.wait(event.index));
      }
      case Kind::kAllocate:
      case Kind::kFree: break;
    }
  }

  // Adds the span of an event that ran from `begin` until now, and those of calls that ended.
  void add_spans(const LoweredEvent& event, Seconds begin) {
    const Seconds now = cost_.time.device;
    const auto call = [&]() -> LaneSpan& {
      const auto found = std::find_if(spans_->rbegin(), spans_->rend(), [&](const LaneSpan& one) {
        return one.kind == Kind::kStart && one.index == event.index;
      });
      TPSIM_CHECK(found != spans_->rend(), "a wait has a call");
      return *found;
    };
    switch (event.kind) {
      case Kind::kOp:
      case Kind::kCopy:
        spans_->push_back({Stream::kCompute, event.kind, event.index, begin, now});
        break;
      case Kind::kCollective:
        spans_->push_back({stream_of(record_of(event)), event.kind, event.index, begin, now});
        spans_->back().exposed = now - begin;
        break;
      case Kind::kStart:
        if (!record_of(event).is_carried) add_call(event.index, begin);
        break;
      case Kind::kWait:
        call().needed = begin;
        call().exposed += now - begin;
        break;
      default: break;
    }
    for (const StreamClocks::Ended& ended : ended_) {
      for (LaneSpan& span : *spans_) {
        if (span.kind != Kind::kStart || span.index != ended.id) continue;
        span.begin = ended.begin;
        span.end = ended.end;
      }
    }
    ended_.clear();
  }
  // A call ends with its phase unless it is seen to end before.
  void add_call(std::uint32_t index, Seconds issued) {
    spans_->push_back({stream_of(layer_.collectives[index]), Kind::kStart, index, issued, issued});
    spans_->back().issued = issued;
  }

  void price(const LoweredOp& op, const OpPrice& price) {
    const Seconds time = pricer_.kernel_time(op, price, clock_);
    cost_.work[work_term(op)] += time;
    cost_.work[StepTerm::kImbalance] += (op.load - 1) * time;
    cost_.by_source[price.source] += op.load * time;
    if (clocked_ != nullptr) {
      clocked_->add(price, op.load * pricer_.time_factor(op));
    } else if (is_core(op.key.kind)) {
      add_core(op, price);
    }
    const Seconds each = (op.load / static_cast<double>(op.launches)) * time;
    run(repeat(launch(scenario(), op.issue, each), op.launches), op.load * time);
  }

  // A gradient that is not accumulated is not read.
  void add_core(const LoweredOp& op, const OpPrice& price) {
    Seconds time = pricer_.kernel_time(op, price, kHighestClock);
    if (op.key.kind == OpKind::kMatmul && (op.key.variant & kAccumulate) != 0) {
      LoweredOp fresh = op;
      fresh.key.variant &= static_cast<std::uint8_t>(~kAccumulate);
      time = std::min(time, pricer_.kernel_time(fresh, pricer_.op_price(fresh), kHighestClock));
    }
    cost_.core.device += op.load * time;
    cost_.core.host += static_cast<double>(op.launches) * op.issue;
  }

  void price(const LoweredCopy& copy) {
    const Seconds time = pricer_.copy_time(copy);
    cost_.work[work_term_of_copy(copy.label)] += time;
    cost_.by_source[PriceSource::kModel] += time;
    run(launch(scenario(), copy.issue, time), time);
  }

  void price(const HostWork& work) {
    if (work.synchronizes) run(synchronization(work.latency), Seconds());
    issue(work.busy);
    cost_.core.host += work.busy;
  }

  void start(std::uint32_t index) {
    const LoweredCollective& record = layer_.collectives[index];
    const Seconds time = time_of(record);
    from_device_.set_time(cost_.time.device);
    for (StreamClocks* clocks : {&from_device_, &from_host_}) {
      clocks->start(index, stream_of(record), record.mover, time);
    }
  }

  // Runs kernels beside the calls in flight. `time`: of the kernels alone.
  void run(const HostDeviceTime& time, Seconds kernels) {
    const HostDeviceTime before = cost_.time;
    cost_.time = then(cost_.time, time);
    if (from_device_.is_idle() && from_host_.is_idle()) return;
    from_device_.rest(cost_.time.device - before.device - kernels);
    from_host_.rest(cost_.time.path - before.path - kernels);
    const Seconds longer = from_device_.run(kernels, [this](std::uint32_t index, Seconds t) {
      charge(index, t);
      if (spans_ != nullptr) slow(index, t);
    });
    pause(longer, from_host_.run(kernels));
  }

  // Counts time that a collective adds to the phase.
  void charge(std::uint32_t index, Seconds time) {
    const LoweredCollective& record = layer_.collectives[index];
    cost_.work[work_term(record)] += time / record.load;
    cost_.work[StepTerm::kImbalance] += (1 - 1 / record.load) * time;
  }

  // Adds the time by which a call slows kernels.
  void slow(std::uint32_t index, Seconds time) {
    for (LaneSpan& span : *spans_) {
      if (span.kind == Kind::kStart && span.index == index) span.exposed += time;
    }
  }

  void issue(Seconds host) {
    if (host > Seconds()) run({host, Seconds(), host}, Seconds());
  }
  void pause(Seconds from_device, Seconds from_host) {
    cost_.time.device += from_device;
    cost_.time.path += from_host;
    if (host_waits(scenario())) cost_.time.host += from_host;
  }

  LayerPricer& pricer_;
  const LoweredLayer& layer_;
  const std::vector<OpPrice>& prices_;
  const Plan& plan_;
  double clock_;
  StepClock* clocked_;  // null: the clock is known
  StreamClocks from_device_, from_host_;
  PhaseCost cost_;
  std::vector<LaneSpan>* spans_ = nullptr;  // null: not recorded
  std::vector<StreamClocks::Ended> ended_;
};

}  // namespace

std::vector<OpPrice> LayerPricer::op_prices(const LoweredLayer& layer) {
  std::vector<OpPrice> prices;
  prices.reserve(layer.ops.size());
  for (const LoweredOp& op : layer.ops) prices.push_back(op_price(op));
  return prices;
}

LayerCost LayerPricer::price_layer(const LoweredLayer& layer, const std::vector<OpPrice>& prices,
                                   const Plan& plan, double clock, StepClock* clocked) {
  const auto priced = [&](Phase phase) {
    return PhaseWalk(*this, layer, prices, plan, clock, clocked).price(layer.phase(phase));
  };
  LayerCost cost;
  cost.clock = clock;
  cost[TaskKind::kForward] = priced(Phase::kForward);
  cost[TaskKind::kBackward] = then(priced(Phase::kRecompute), priced(Phase::kBackward));
  cost[TaskKind::kWeightGradient] = priced(Phase::kWeightGradient);
  cost.accumulate = priced(Phase::kAccumulate);
  return cost;
}

// The clock follows from the layer's forward and backward.
LayerCost LayerPricer::price_layer(const LoweredLayer& layer, const Plan& plan) {
  const double lowest = ops().lowest_clock();
  const std::vector<OpPrice> prices = op_prices(layer);
  if (lowest == 1) return price_layer(layer, prices, plan, 1, nullptr);
  StepClock clock;
  const LayerCost slow = price_layer(layer, prices, plan, lowest, &clock);
  Seconds whole;
  for (const PhaseCost& task : slow) whole += task.time.device;
  return price_layer(layer, prices, plan, clock.solve(whole, lowest), nullptr);
}

LayerLanes LayerPricer::lanes(LayerKind kind, const Plan& plan, std::int64_t block) {
  LayerLanes lanes{layer_program(kind, plan, block), {}};
  const double clock = layer(kind, plan, block).clock;
  const std::vector<OpPrice> prices = op_prices(lanes.program);
  for (std::size_t i = 0; i < lanes.phases.size(); ++i) {
    PhaseLanes& phase = lanes.phases[i];
    PhaseWalk walk(*this, lanes.program, prices, plan, clock, nullptr);
    walk.record(&phase.spans);
    phase.end = walk.price(lanes.program.phases[i]).time.device;
    for (LaneSpan& span : phase.spans) {
      const bool is_open = span.kind == Kind::kStart && span.end <= span.begin;
      if (is_open) span.end = phase.end;
    }
  }
  return lanes;
}

}  // namespace tpsim
