// A list of op cases, and functions in other files that add cases.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/kernels/checks/odd_cases.h"

namespace tpsim {

// Collects the cases of one storage dtype.
class CaseList {
 public:
  explicit CaseList(DType dtype) : dtype_(dtype) {}

  void add(OpKind kind, int variant, OpDims dims, std::string what = "",
           OpChange change = nullptr) {
    cases_.push_back({{kind, dtype_, static_cast<std::uint8_t>(variant), dims},
                      std::move(what),
                      std::move(change)});
  }

  template <class AnyOp, class Change>
  void add_changed(int variant, OpDims dims, std::string what, Change change) {
    add(kKindOf<AnyOp>, variant, dims, std::move(what),
        [=](Op& op) { change(std::get<AnyOp>(op)); });
  }

  DType dtype() const { return dtype_; }
  std::vector<OpCase> taken() { return std::move(cases_); }

 private:
  DType dtype_;
  std::vector<OpCase> cases_;
};

// Scores, cores and positions of attention, and norms of heads.
void add_attention(CaseList& cases);
// Chunks, score caps and sinks of attention.
void add_attention_of_today(CaseList& cases);

}  // namespace tpsim
