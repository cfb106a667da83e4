#include "app/answers/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace tpsim::app {
namespace {

using Rows = std::map<std::string, ComparedTime>;

ComparedTime& row_of(Rows& rows, const std::string& what) {
  ComparedTime& row = rows[what];
  row.what = what;
  return row;
}

// Adds the times of one side. A trace and a run of the same plan have equal counts.
template <class Entry, class Name>
void add_side(Rows& rows, const std::vector<Entry>& entries, Name name,
              Seconds ComparedTime::*side) {
  std::map<std::string, std::int64_t> counts;
  for (const Entry& entry : entries) {
    ComparedTime& row = row_of(rows, name(entry));
    row.*side += entry.time;
    counts[row.what] += entry.count;
  }
  // If only one side has an op, the count is that of this side.
  for (const auto& [what, count] : counts) rows[what].count = std::max(rows[what].count, count);
}

template <class Entry, class Name>
std::vector<ComparedTime> joined(const std::vector<Entry>& predicted,
                                 const std::vector<Entry>& measured, Name name) {
  Rows rows;
  add_side(rows, predicted, name, &ComparedTime::predicted);
  add_side(rows, measured, name, &ComparedTime::measured);
  std::vector<ComparedTime> sorted;
  for (auto& [what, row] : rows) sorted.push_back(std::move(row));
  std::stable_sort(sorted.begin(), sorted.end(), [](const ComparedTime& a, const ComparedTime& b) {
    return std::fabs(a.residual().value()) > std::fabs(b.residual().value());
  });
  return sorted;
}

// Returns a name that distinguishes all keys: adds the variant bits that to_string() omits, such as
// whether a GEMM accumulates or an op has a bias.
std::string op_name(const OpTime& op) {
  const OpKey& key = op.record.key;
  const int shown = key.kind == OpKind::kMatmul ? kTransposeA | kTransposeB : 0;
  const int rest = key.variant & ~shown;
  return to_string(key) + (rest == 0 ? "" : fmt::format(" variant {}", rest));
}

std::string call_name(const CollectiveTime& call) {
  const CollectiveRecord& r = call.record;
  return fmt::format("{} of {} over {} ranks, {} group", name_of(r.kind),
                     to_string(Bytes(static_cast<double>(r.bytes))), r.ranks, name_of(r.group));
}

}  // namespace

double ComparedTime::error() const { return measured.value() > 0 ? predicted / measured - 1 : 0; }

Comparison compare(const StepTimes& predicted, const StepTimes& measured) {
  return {joined(predicted.ops, measured.ops,
                 [](const OpTime& op) { return std::string(name_of(op.record.key.kind)); }),
          joined(predicted.ops, measured.ops, op_name),
          joined(predicted.collectives, measured.collectives, call_name)};
}

std::vector<ComparedTime> worth_measuring_again(const Comparison& comparison, Seconds step,
                                                double share, std::size_t most, Seconds shortest) {
  std::vector<ComparedTime> worth;
  for (const ComparedTime& op : comparison.ops) {
    if (worth.size() == most) break;
    const auto runs = static_cast<double>(std::max<std::int64_t>(1, op.count));
    if (op.measured < runs * shortest) continue;
    if (std::fabs(op.residual().value()) > share * step.value()) worth.push_back(op);
  }
  return worth;
}

}  // namespace tpsim::app
