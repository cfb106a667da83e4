// Laws of the overlap of tensor-parallel collectives with GEMMs.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/program/op_dims.h"
#include "sim/layers/layer_pricer.h"
#include "tests/sim/layers/part_laws.h"

namespace tpsim {
namespace {

// Returns the module of a label: "mlp" of "mlp.regather".
std::string module_of(const Label& label) {
  const std::string text = label.text;
  return text.substr(0, text.find('.'));
}

// Returns the GEMMs between start and wait of each collective.
std::vector<std::pair<LoweredCollective, LoweredOp>> overlapped_gemms(const LoweredLayer& layer) {
  using Kind = LoweredEvent::Kind;
  std::vector<std::pair<LoweredCollective, LoweredOp>> found;
  for (const LoweredPhase& phase : layer.phases) {
    std::vector<std::uint32_t> in_flight;
    for (const LoweredEvent& event : phase.events) {
      if (event.kind == Kind::kStart) in_flight.push_back(event.index);
      if (event.kind == Kind::kWait) std::erase(in_flight, event.index);
      if (event.kind != Kind::kOp) continue;
      const LoweredOp& op = layer.ops[event.index];
      if (op.key.kind != OpKind::kMatmul) continue;
      for (const std::uint32_t call : in_flight) found.emplace_back(layer.collectives[call], op);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("gathers of inputs overlap with dgrad, and reductions with wgrad, of their own layer") {
  for (ModelSpec model :
       {test::small_llama(), test::small_gpt(), test::small_delta_net(), test::small_mixture()}) {
    model.seq = 320;  // no size of a weight
    for (const auto& [overlap, precision] : {std::pair{TpOverlap::kBackward, Precision::kNone},
                                             std::pair{TpOverlap::kBackward, Precision::kFp8Block},
                                             std::pair{TpOverlap::kReductions, Precision::kNone}}) {
      Scenario scenario = test::parts_scenario(model);
      scenario.stack = with_parts(scenario.stack, test::value_of(StackPart::kTpOverlap, overlap));
      Plan plan = test::parts_plan(model);
      plan.sequence_parallel = true;
      plan.precision = precision;
      LayerPricer pricer(scenario);
      int checked = 0;
      for (const LayerKind kind : {LayerKind::kBlock, LayerKind::kHead}) {
        const LoweredLayer layer = pricer.layer_program(kind, plan);
        for (const auto& [record, gemm] : overlapped_gemms(layer)) {
          INFO(model.name << ' ' << name_of(overlap) << ' ' << record.label.text);
          INFO(gemm.label.text);
          CHECK(module_of(gemm.label) == module_of(record.label));
          const bool gathers = record.kind == CollectiveKind::kAllGather;
          // dgrad sums over columns, wgrad over tokens.
          const std::int64_t tokens = plan.micro_batch * model.seq;
          CHECK((dim_of(gemm.key, GemmDim::kM) == tokens) == gathers);
          CHECK((dim_of(gemm.key, GemmDim::kK) == tokens) == !gathers);
          ++checked;
        }
      }
      CHECK(checked > 0);
    }
  }
}

}  // namespace tpsim
