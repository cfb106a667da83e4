// Laws of stack parts: each has the price of its mechanism and changes no other term.
#include "core/software/stack_parts.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "lowering/passes/shard_groups.h"
#include "sim/step/predict.h"
#include "tests/sim/layers/part_laws.h"

namespace tpsim {
namespace {

using test::changed_terms;
using test::parts_plan;
using test::parts_scenario;
using test::value_of;
using test::with;

}  // namespace

TEST_CASE("every part has names of values, a value and an option, and is read back") {
  for (const PartRow& row : part_rows()) {
    INFO(row.key);
    StackSpec stack;
    for (const FieldWord& word : row.words) {
      row.set(stack, word.value);
      CHECK(row.get(stack) == word.value);
      CHECK(*parse_value(row, word.word) == word.value);
      CHECK(text_of(row, word.value) == word.word);
    }
    CHECK_FALSE(parse_value(row, "nonsense").ok());
    CHECK(row_of(row.part).key == row.key);
    CHECK(option_of(row.part).substr(0, 2) == "--");
  }
  CHECK(*parse_value(row_of(StackPart::kShardGroup), "16") == 16);
  CHECK(*parse_value(row_of(StackPart::kBlockingLaunches), "1") == 1);
}

TEST_CASE("a part changes only the terms of its row") {
  // Bubble, stragglers and host waits follow from the other terms.
  const std::set<std::string> following = {"pipeline_bubble", "stragglers", "host_wait"};
  // Changes that are not the purpose of a part: additions of gradients move between kernels,
  // slices are gathered again, and frozen norms and routers have no gradients.
  const std::map<StackPart, std::set<std::string>> effects = {
      {StackPart::kFinetune, {"tensor_communication", "permutation"}},
      {StackPart::kGradientSync, {"matmul", "elementwise", "grouped_products", "permutation"}},
      {StackPart::kShardGroup, {"elementwise"}},
      {StackPart::kPermute, {"tensor_communication"}}};
  for (const ModelSpec& model : {test::small_llama(), test::small_mixture()}) {
    const Scenario scenario = parts_scenario(model);
    for (const int zero : {1, 2}) {
      Plan plan = parts_plan(model);
      plan.zero = zero;
      const Prediction base = with(scenario, plan, {});
      for (const PartRow& row : part_rows()) {
        std::set<std::string> terms = following;
        if (effects.contains(row.part)) terms.merge(std::set(effects.at(row.part)));
        for (const StepTerm term : kStepTerms) {
          if (row.terms.contains(term)) terms.insert(std::string(name_of(term)));
        }
        for (const FieldWord& word : row.words) {
          const PartValues value{{row.part, word.value}};
          for (const std::string& term : changed_terms(base, with(scenario, plan, value))) {
            INFO(to_string(value) << " changes " << term << ", zero " << zero);
            CHECK(terms.contains(term));
          }
        }
      }
    }
  }
}

TEST_CASE("parts that change a ring of keys and values, or gathers of experts, are listed there") {
  Scenario scenario = parts_scenario(test::small_mixture());
  scenario.stack.host.per_gather = Seconds(1e-4);
  scenario.stack =
      with_parts(scenario.stack,
                 {{StackPart::kCpCommType, static_cast<std::int64_t>(CpCommType::kTorchRing)}});
  Plan plan = parts_plan(scenario.model);
  plan.degrees = {.tp = 1, .pp = 1, .dp = 4, .cp = 2};
  plan.stage_layers = {scenario.model.layers};
  plan.zero = 3;
  const Prediction base = with(scenario, plan, {});
  for (const PartRow& row : part_rows()) {
    for (const FieldWord& word : row.words) {
      const auto changed = changed_terms(base, with(scenario, plan, {{row.part, word.value}}));
      for (const StepTerm term : {StepTerm::kContextCommunication, StepTerm::kZeroCommunication}) {
        INFO(row.key << '=' << word.word << " changes " << name_of(term));
        if (changed.contains(std::string(name_of(term)))) CHECK(row.terms.contains(term));
      }
    }
  }
}

TEST_CASE("overlapping backward's collectives with GEMMs helps, also with sequence parallelism") {
  const Scenario scenario = parts_scenario(test::small_llama());
  Plan plan = parts_plan(scenario.model);
  const PartValues beside = value_of(StackPart::kTpOverlap, TpOverlap::kBackward);
  const Prediction none = with(scenario, plan, {}), hidden = with(scenario, plan, beside);
  CHECK(hidden.step < none.step);
  plan.sequence_parallel = true;
  CHECK(with(scenario, plan, beside).step < with(scenario, plan, {}).step);
}

TEST_CASE("the dgrad all-reduce overlaps with the wgrad GEMM, gathers of inputs do not") {
  const Scenario scenario = parts_scenario(test::small_llama());
  Plan plan = parts_plan(scenario.model);
  const auto tensor_time = [&](TpOverlap overlap) {
    const Prediction told = with(scenario, plan, value_of(StackPart::kTpOverlap, overlap));
    const auto found =
        std::find_if(told.breakdown.begin(), told.breakdown.end(),
                     [](const auto& t) { return name_of(t.kind) == "tensor_communication"; });
    REQUIRE(found != told.breakdown.end());
    return found->time;
  };
  CHECK(tensor_time(TpOverlap::kReductions) < tensor_time(TpOverlap::kNone));
  plan.sequence_parallel = true;
  CHECK(tensor_time(TpOverlap::kReductions) < tensor_time(TpOverlap::kNone));
  CHECK(tensor_time(TpOverlap::kBackward) < tensor_time(TpOverlap::kReductions));
}

TEST_CASE("keeping gathered inputs costs memory and saves a gather, unless ops are recomputed") {
  const Scenario scenario = parts_scenario(test::small_llama());
  Plan plan = parts_plan(scenario.model);
  plan.sequence_parallel = true;
  plan.recompute = Recompute::kNone;
  const PartValues kept = value_of(StackPart::kTpRecomputeAllgather, 0);
  const Prediction again = with(scenario, plan, {}), once = with(scenario, plan, kept);
  constexpr auto kTerm = StepTerm::kTensorCommunication;
  CHECK(time_of(once, kTerm) < time_of(again, kTerm));
  CHECK(once.peak > again.peak);
  const auto saved = [&] {
    return time_of(with(scenario, plan, {}), kTerm) - time_of(with(scenario, plan, kept), kTerm);
  };
  const Seconds everywhere = saved();
  plan.recompute = Recompute::kOps;  // recompute of the blocks; only the head saves a gather
  CHECK(saved() > Seconds());
  CHECK(saved() < 0.5 * everywhere);
}

TEST_CASE("serial P2P calls make the receiving stage wait too") {
  const Scenario scenario = parts_scenario(test::small_llama());
  const Plan plan = parts_plan(scenario.model);
  const Prediction paired = with(scenario, plan, {});
  const Prediction serial = with(scenario, plan, value_of(StackPart::kP2pCalls, P2pCalls::kSerial));
  CHECK(serial.step > paired.step);
  // With two stages each one sends and receives equally often. The transfer time is still less than
  // twice the paired time.
  const double twice = 2 * time_of(paired, StepTerm::kTransfer).value();
  CHECK(time_of(serial, StepTerm::kTransfer).value() < twice);
  CHECK(time_of(serial, StepTerm::kTransfer).value() > 0.75 * twice);
}

TEST_CASE("P2P overlaps with compute in interleaved pipelines only") {
  const Scenario scenario = parts_scenario(test::small_llama());
  Plan plan = parts_plan(scenario.model);
  PartValues overlapped = value_of(StackPart::kP2pCalls, P2pCalls::kSerial);
  overlapped[StackPart::kOverlapP2p] = 1;
  const PartValues serial = value_of(StackPart::kP2pCalls, P2pCalls::kSerial);
  CHECK(with(scenario, plan, overlapped).step == with(scenario, plan, serial).step);
  plan.schedule = ScheduleKind::kInterleaved;
  plan.virtual_stages = 2;
  plan.stage_layers = even_stage_layers(scenario.model.layers, 4, false);
  CHECK(with(scenario, plan, overlapped).step < with(scenario, plan, {}).step);
}

TEST_CASE("expandable segments have no fragmentation and cost no time") {
  Scenario scenario = parts_scenario(test::small_llama());
  scenario.stack.memory.caching_allocator = true;
  const Plan plan = parts_plan(scenario.model);
  const Prediction fixed = with(scenario, plan, {});
  const Prediction grown = with(scenario, plan, {{StackPart::kExpandableSegments, 1}});
  scenario.stack.memory.caching_allocator = false;
  const Prediction without_holes = with(scenario, plan, {});
  CHECK(grown.step == fixed.step);
  CHECK(grown.peak < fixed.peak);
  CHECK(grown.peak == without_holes.peak);
}

TEST_CASE("blocking launches cost the stack's time in addition to waiting") {
  Scenario scenario = parts_scenario(test::small_llama());
  const Plan plan = parts_plan(scenario.model);
  const Prediction blocked = with(scenario, plan, {{StackPart::kBlockingLaunches, 1}});
  CHECK(blocked.step > with(scenario, plan, {}).step);
  scenario.stack.host.blocking_op = Seconds(1e-5);
  scenario.stack.host.blocking_collective = Seconds(4e-4);
  CHECK(with(scenario, plan, {{StackPart::kBlockingLaunches, 1}}).step > blocked.step);
  CHECK(with(scenario, plan, {{StackPart::kBlockingLaunches, 0}}).step < blocked.step);
}

TEST_CASE("shard groups hold more state and send fewer bytes between nodes") {
  Scenario scenario = parts_scenario(test::small_llama());
  Plan plan = parts_plan(scenario.model);
  plan.degrees = {.tp = 1, .pp = 1, .dp = 8};
  plan.zero = 1;
  plan.stage_layers = even_stage_layers(scenario.model.layers, 1, false);
  const Prediction all = with(scenario, plan, {});
  const Prediction node = with(scenario, plan, value_of(StackPart::kShardGroup, kShardOverNode));
  CHECK(node.peak > all.peak);
  CHECK(with(scenario, plan, value_of(StackPart::kShardGroup, 8)).step == all.step);
  scenario.stack.parts.shard_group = 4;
  CHECK(shard_ranks(scenario, plan) == 4);
  plan.degrees = {.tp = 2, .pp = 1, .dp = 4};
  CHECK(shard_ranks(scenario, plan) == 2);
  scenario.stack.parts.shard_group = 8;
  CHECK(shard_ranks(scenario, plan) == 4);
  const GroupPlacement data{.ranks = 8, .nodes = 2, .ranks_per_node = 4, .groups_per_node = 1};
  CHECK(shard_placement(data, 4) == GroupPlacement{4, 1, 4, 0});
  CHECK(replica_placement(data, 4) == GroupPlacement{2, 2, 1, 4});
}

TEST_CASE("owners all-reduce gradients, and broadcast their weights concurrently") {
  Scenario scenario = parts_scenario(test::small_llama());
  Plan plan = parts_plan(scenario.model);
  plan.degrees = {.tp = 1, .pp = 1, .dp = 8};
  plan.zero = 1;
  plan.stage_layers = even_stage_layers(scenario.model.layers, 1, false);
  const PartValues owners = value_of(StackPart::kDataParallelSync, DataParallelSync::kOwners);
  Plan whole = plan;
  whole.zero = 0;
  const Prediction owned = with(scenario, plan, owners);
  CHECK(time_of(owned, StepTerm::kGradientReduction) ==
        time_of(with(scenario, whole, {}), StepTerm::kGradientReduction));

  // More owners send the same bytes in more rounds, down to one tensor per owner.
  const auto broadcast = [&](std::int64_t dp, std::int64_t shards) {
    plan.degrees.dp = dp;
    PartValues parts = owners;
    parts[StackPart::kShardGroup] = shards;
    return time_of(with(scenario, plan, parts), StepTerm::kWeightGather);
  };
  CHECK(broadcast(8, 2) < broadcast(8, 4));
  CHECK(broadcast(8, 4) < broadcast(16, kShardOverAll));
}

TEST_CASE("activations of offloaded layers leave the device, and a slow link shows") {
  Scenario scenario = parts_scenario(test::small_llama());
  Plan plan = parts_plan(scenario.model);
  plan.degrees = {.tp = 1, .pp = 1, .dp = 8};
  plan.stage_layers = even_stage_layers(scenario.model.layers, 1, false);
  scenario.cluster.host.link = BytesPerSecond(1e18);
  const Prediction none = with(scenario, plan, {});
  const Prediction half = with(scenario, plan, {{StackPart::kOffloadLayers, 2}});
  const Prediction all = with(scenario, plan, {{StackPart::kOffloadLayers, 100}});
  CHECK(half.step == none.step);
  CHECK(half.peak < none.peak);
  CHECK(half.host_memory > none.host_memory);
  CHECK(all.host_memory > half.host_memory);
  scenario.cluster.host.link = BytesPerSecond(1e6);
  const Prediction slow = with(scenario, plan, {{StackPart::kOffloadLayers, 2}});
  CHECK(slow.step > none.step);
  CHECK(slow.peak == half.peak);
}

TEST_CASE("Muon keeps one moment of the blocks, and owners share its iterations") {
  const Scenario scenario = parts_scenario(test::small_llama());
  Plan plan = parts_plan(scenario.model);
  plan.degrees = {.tp = 1, .pp = 1, .dp = 8};
  plan.stage_layers = even_stage_layers(scenario.model.layers, 1, false);
  const PartValues muon = value_of(StackPart::kOptimizerKind, OptimizerKind::kMuon);
  const auto added = [&](int zero) {
    plan.zero = zero;
    return time_of(with(scenario, plan, muon), StepTerm::kOptimizer) -
           time_of(with(scenario, plan, {}), StepTerm::kOptimizer);
  };
  CHECK(added(0) > Seconds());
  CHECK(added(1) > Seconds());
  CHECK(added(1) < 0.5 * added(0));
  constexpr auto kState = static_cast<std::size_t>(MemoryCategory::kOptimizer);
  const auto state = [&](const PartValues& parts) {
    return with(scenario, plan, parts).memory.front().by_category[kState];
  };
  plan.zero = 0;
  CHECK(state(muon) < state({}));
  CHECK(state(muon) > 0.6 * state({}));  // two of three fp32 numbers, three of other weights
}

TEST_CASE("bucketed gradients pay the latency once per bucket, others once per layer") {
  Scenario scenario = parts_scenario(test::small_llama());
  Plan plan = parts_plan(scenario.model);
  plan.degrees = {.tp = 1, .pp = 1, .dp = 64};
  plan.stage_layers = even_stage_layers(scenario.model.layers, 1, false);
  const auto reduction = [&](std::int64_t bucket) {
    scenario.stack.memory.reduction_bucket = bucket;
    return time_of(with(scenario, plan, {}), StepTerm::kGradientReduction);
  };
  const Seconds by_layer = reduction(0);
  CHECK(reduction(1'000'000'000) < by_layer);
  CHECK(reduction(1'000) > by_layer);
}

TEST_CASE("recompute of ops is between none and full in time and memory") {
  const Scenario scenario = parts_scenario(test::small_llama());
  Plan plan = parts_plan(scenario.model);
  const Prediction none = with(scenario, plan, {});
  plan.recompute = Recompute::kOps;
  const Prediction ops = with(scenario, plan, {});
  plan.recompute = Recompute::kFull;
  const Prediction full = with(scenario, plan, {});
  CHECK(none.step < ops.step);
  CHECK(ops.step < full.step);
  CHECK(full.peak < ops.peak);
  CHECK(ops.peak < none.peak);
}

}  // namespace tpsim
