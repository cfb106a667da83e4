// Ops of small, unusual sizes and layouts, which every device must compute correctly.
#pragma once

#include <string>
#include <vector>

#include "kernels/checks/op_check.h"

namespace tpsim {

struct OpCase {
  OpKey key;
  std::string what;  // effect of `change`
  OpChange change;   // null: the op as make_op() creates it
};

// Every kind of op, with these storage dtypes.
std::vector<OpCase> odd_cases(const std::vector<DType>& dtypes);
// Ops and settings that only recent models have.
std::vector<OpCase> cases_of_today(const std::vector<DType>& dtypes);

}  // namespace tpsim
