#include <fmt/format.h>

#include <algorithm>

#include "cli/options/answers.h"
#include "cli/options/table.h"
#include "cli/options/wrapping.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"

namespace tpsim::cli {
namespace {

template <class... Terms>
Seconds sum_of(const Prediction& predicted, Terms... terms) {
  return (time_of(predicted, terms) + ...);
}

Seconds predicted_collectives(const Prediction& p) {
  return sum_of(p, StepTerm::kTensorCommunication, StepTerm::kZeroCommunication,
                StepTerm::kContextCommunication, StepTerm::kExpertCommunication,
                StepTerm::kImbalance, StepTerm::kTransfer, StepTerm::kBubble,
                StepTerm::kGradientReduction, StepTerm::kTiedEmbedding, StepTerm::kWeightGather,
                StepTerm::kStragglers);
}

}  // namespace

std::vector<KernelRow> kernel_rows(const KernelTimes& kernels, const Plan& plan,
                                   const Prediction& p) {
  const Seconds products = sum_of(p, StepTerm::kMatmul, StepTerm::kGroupedProducts);
  const Seconds attention = time_of(p, StepTerm::kAttention);
  std::vector<KernelRow> rows;
  if (plan.attention == AttentionKind::kFlash) {
    rows.push_back({"GEMMs", kernels[KernelClass::kProducts], products, CauseClass::kCompute});
    rows.push_back(
        {"attention", kernels[KernelClass::kAttention], attention, CauseClass::kCompute});
  } else {
    // Without flash attention, the kernel names do not distinguish the GEMMs of attention from
    // others.
    rows.push_back({"GEMMs, including attention",
                    kernels[KernelClass::kProducts] + kernels[KernelClass::kAttention],
                    products + attention, CauseClass::kCompute});
  }
  rows.push_back({"other kernels, copies",
                  kernels[KernelClass::kOthers] + kernels[KernelClass::kCopies],
                  sum_of(p, StepTerm::kRecurrence, StepTerm::kElementwise, StepTerm::kPermute,
                         StepTerm::kClipping, StepTerm::kOptimizer),
                  CauseClass::kCompute});
  rows.push_back({"exposed collectives, including waiting", kernels.exposed,
                  predicted_collectives(p), CauseClass::kLinks});
  rows.push_back(
      {"no kernel runs", kernels.idle,
       sum_of(p, StepTerm::kHostWait, StepTerm::kHostStep, StepTerm::kUncalibratedOverhead),
       CauseClass::kHost});
  return rows;
}

const KernelRow& largest_excess(const std::vector<KernelRow>& rows) {
  const auto excess = [](const KernelRow& row) { return row.measured - row.predicted; };
  return *std::max_element(rows.begin(), rows.end(), [&](const KernelRow& a, const KernelRow& b) {
    return excess(a) < excess(b);
  });
}

std::string kernel_view(const Terminal& terminal, const KernelTimes& kernels,
                        const std::vector<KernelRow>& rows) {
  const TimeScale scale = time_scale(kernels.step);
  Table table(columns_of(fmt::format("<|measured {}|predicted|off", scale.unit)));
  for (const KernelRow& row : rows) {
    const Seconds off = row.measured - row.predicted;
    table.add_row(
        {row.what, scaled_text(row.measured, scale), scaled_text(row.predicted, scale),
         Cell((off < Seconds() ? "-" : "+") + scaled_text(Seconds(std::abs(off.value())), scale),
              off > Seconds() ? Ink::kBad : Ink::kGood)});
  }
  std::string text =
      "\n" +
      heading(terminal, "KERNELS",
              fmt::format("rank {}, mean of {}; the profiler slows the host down", kernels.rank,
                          counted_text(std::ssize(kernels.steps), "step"))) +
      table.text(terminal);
  if (kernels.collectives.empty()) return text;
  Table calls(columns_of(fmt::format("<collective|calls|total {}", scale.unit)));
  for (const TracedCollective& one : kernels.collectives) {
    calls.add_row(
        {printable(one.name), fmt::format("{:.0f}", one.calls), scaled_text(one.time, scale)});
  }
  return text + "\n" + calls.text(terminal);
}

JsonValue kernel_json(const KernelTimes& kernels, const std::vector<KernelRow>& rows) {
  return json_object(
      {{"steps", std::ssize(kernels.steps)},
       {"rank", kernels.rank},
       {"parts", json_array(rows,
                            [](const KernelRow& row) {
                              return json_object({{"what", row.what},
                                                  {"measured_s", row.measured.value()},
                                                  {"predicted_s", row.predicted.value()}});
                            })},
       {"collectives", json_array(kernels.collectives, [](const TracedCollective& one) {
          return json_object(
              {{"name", one.name}, {"calls", one.calls}, {"time_s", one.time.value()}});
        })}});
}

}  // namespace tpsim::cli
