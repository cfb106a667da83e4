#include "core/plan/report.h"

#include <algorithm>

#include "core/base/check.h"

namespace tpsim {

Bytes StageMemory::total() const {
  Bytes sum = context + fragmentation;
  for (const Bytes bytes : by_category) sum += bytes;
  return sum;
}

Seconds time_of(const Prediction& predicted, StepTerm term) {
  const auto found = std::find_if(predicted.breakdown.begin(), predicted.breakdown.end(),
                                  [&](const Term& row) { return row.kind == term; });
  TPSIM_CHECK(found != predicted.breakdown.end(),
              "the breakdown lacks " + std::string(name_of(term)));
  return found->time;
}

}  // namespace tpsim
