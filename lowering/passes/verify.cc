#include "lowering/passes/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"

namespace tpsim {
namespace {

using Kind = LoweredEvent::Kind;

constexpr std::uint8_t kAllocated = 1, kFreed = 2;
constexpr double kRounding = 1e-6;  // of bytes to whole numbers, relative

std::size_t records_of(const LoweredLayer& layer, Kind kind) {
  switch (kind) {
    case Kind::kOp: return layer.ops.size();
    case Kind::kCollective:
    case Kind::kStart:
    case Kind::kWait: return layer.collectives.size();
    case Kind::kCopy: return layer.copies.size();
    case Kind::kHost: return layer.host.size();
    case Kind::kAllocate:
    case Kind::kFree: break;
  }
  return layer.allocations.size();
}

bool is_conserved(double before, double after) {
  return std::abs(after - before) <= kRounding * std::max(std::abs(before), 1.0);
}

std::string changed(const char* what, double before, double after) {
  return fmt::format("{} changed from {:.9g} to {:.9g}, which the pass does not declare", what,
                     before, after);
}

}  // namespace

void LayerVerifier::start(const LoweredLayer& traced) {
  check(traced, "trace", {.flops = true, .bytes = true, .sent = true, .memory = true});
}

void LayerVerifier::check(const LoweredLayer& layer, std::string_view pass,
                          const PassChanges& changes) {
  const std::string wrong = fault(layer, changes);
  TPSIM_CHECK(wrong.empty(), fmt::format("failed after {}: {}", pass, wrong));
}

std::string LayerVerifier::fault(const LoweredLayer& layer, const PassChanges& changes) {
  const bool is_first = moves_.empty();
  moves_.assign(layer.allocations.size() + 1, 0);
  Sums sums;
  for (const LoweredPhase& phase : layer.phases) {
    for (const LoweredEvent& event : phase.events) {
      std::string wrong = add_event(layer, event, sums);
      if (!wrong.empty()) return wrong;
    }
    for (const Started& one : started_) {
      if (one.is_started != one.is_awaited) {
        return fmt::format("'{}' is started and not waited for, or the reverse",
                           layer.collectives[one.index].label.text);
      }
    }
    started_.clear();
  }
  for (std::size_t i = 0; i < layer.allocations.size(); ++i) {
    const LoweredAllocation& made = layer.allocations[i];
    if (!made.is_traced && moves_[i] != 0 && moves_[i] != (kAllocated | kFreed)) {
      return fmt::format("'{}' is not both allocated and freed", made.label);
    }
  }
  const Sums before = is_first ? sums : before_;
  before_ = sums;
  if (sums.traced_allocations != before.traced_allocations ||
      sums.traced_frees != before.traced_frees) {
    return "a tensor of the trace is no longer allocated or freed";
  }
  if (!changes.flops && !is_conserved(before.flops, sums.flops)) {
    return changed("FLOPs", before.flops, sums.flops);
  }
  if (!changes.bytes && !is_conserved(before.bytes, sums.bytes)) {
    return changed("bytes of ops", before.bytes, sums.bytes);
  }
  if (!changes.sent && !is_conserved(before.sent, sums.sent)) {
    return changed("bytes of collectives", before.sent, sums.sent);
  }
  if (!changes.memory && !is_conserved(before.memory, sums.memory)) {
    return changed("bytes of tensors", before.memory, sums.memory);
  }
  return "";
}

std::string LayerVerifier::add_event(const LoweredLayer& layer, const LoweredEvent& event,
                                     Sums& sums) {
  const std::size_t records = records_of(layer, event.kind);
  if (event.index >= records) {
    return fmt::format("an event has record {} of {}", event.index, records);
  }
  switch (event.kind) {
    case Kind::kOp: {
      const LoweredOp& op = layer.ops[event.index];
      sums.flops += op.repeats * op.flops;
      sums.bytes += op.repeats * op.bytes;
      break;
    }
    case Kind::kCopy: sums.bytes += layer.copies[event.index].moved.value(); break;
    case Kind::kStart:
    case Kind::kCollective: {
      const LoweredCollective& record = layer.collectives[event.index];
      sums.sent += record.calls * static_cast<double>(record.bytes);
      return event.kind == Kind::kStart ? add_start(record, event.index) : "";
    }
    case Kind::kWait: return add_wait(layer.collectives[event.index], event.index);
    case Kind::kHost: break;
    case Kind::kAllocate:
    case Kind::kFree: return add_memory(layer, event, sums);
  }
  return "";
}

// A collective may start again after the wait for it.
std::string LayerVerifier::add_start(const LoweredCollective& record, std::uint32_t index) {
  for (Started& one : started_) {
    if (one.index != index) continue;
    if (one.is_started && !one.is_awaited) {
      return fmt::format("'{}' starts twice without a wait", record.label.text);
    }
    one.is_started = true;
    one.is_awaited = record.is_carried && one.is_awaited;
    return "";
  }
  started_.push_back({index, true, false});
  return "";
}

std::string LayerVerifier::add_wait(const LoweredCollective& record, std::uint32_t index) {
  for (Started& one : started_) {
    if (one.index == index && !one.is_awaited) {
      one.is_awaited = true;
      return "";
    }
  }
  if (!record.is_carried)
    return fmt::format("no start before the wait for '{}'", record.label.text);
  started_.push_back({index, false, true});
  return "";
}

std::string LayerVerifier::add_memory(const LoweredLayer& layer, const LoweredEvent& event,
                                      Sums& sums) {
  const LoweredAllocation& made = layer.allocations[event.index];
  const bool allocates = event.kind == Kind::kAllocate;
  const std::uint8_t bit = allocates ? kAllocated : kFreed;
  std::uint8_t& moves = moves_[event.index];
  if ((moves & bit) != 0) {
    return fmt::format("'{}' is {} twice", made.label, allocates ? "allocated" : "freed");
  }
  moves = static_cast<std::uint8_t>(moves | bit);
  if (allocates) sums.memory += static_cast<double>(made.bytes);
  if (made.is_traced) ++(allocates ? sums.traced_allocations : sums.traced_frees);
  return "";
}

}  // namespace tpsim
