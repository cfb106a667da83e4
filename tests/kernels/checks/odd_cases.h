// Ops of small, awkward sizes and layouts: what every device must get right.
#pragma once

#include <string>
#include <vector>

#include "kernels/checks/op_check.h"

namespace tpsim {

struct OpCase {
  OpKey key;
  std::string what;  // what `change` does
  OpChange change;   // none: the op as make_op() builds it
};

// Every kind of op, in these dtypes for storage.
std::vector<OpCase> odd_cases(const std::vector<DType>& dtypes);
// Of ops and settings that models of today brought.
std::vector<OpCase> cases_of_today(const std::vector<DType>& dtypes);

}  // namespace tpsim
