#include "tests/kernels/checks/odd_cases.h"

#include <array>

#include "tests/kernels/checks/case_list.h"

namespace tpsim {
namespace {

constexpr std::int64_t kRows[] = {1, 3, 17};
constexpr std::int64_t kCols[] = {1, 5, 48, 257};

std::uint8_t code(DType dtype) { return static_cast<std::uint8_t>(dtype); }

// A batched operand with the batches adjacent within a row, like heads.
void lay_side_by_side(Matrix& m, std::int64_t outer, std::int64_t inner) {
  m.row_stride = outer * inner * m.cols;
  m.outer_stride = inner * m.cols;
  m.inner_stride = m.cols;
}

void add_matmuls(CaseList& cases) {
  const bool narrow = cases.dtype() != DType::kFloat32;
  for (int variant = 0; variant < (narrow ? 16 : 8); ++variant) {
    cases.add(OpKind::kMatmul, variant, {1, 17, 48, 257});
    cases.add(OpKind::kMatmul, variant, {3, 5, 3, 17});
    cases.add(OpKind::kMatmul, variant, {1, 5, 257, 1});
    cases.add_changed<Matmul>(variant, {6, 7, 9, 5}, "batches side by side", [](Matmul& op) {
      op.outer = 2;
      op.inner = 3;
      for (Matrix* m : {&op.a, &op.b, &op.c}) lay_side_by_side(*m, 2, 3);
    });
    cases.add_changed<Matmul>(variant, {1, 3, 5, 4}, "scaled", [](Matmul& op) {
      op.alpha = -0.5F;
      op.beta *= 0.25F;
    });
  }
  cases.add(OpKind::kMatmul, 0, {1, 1, 1, 1});
}

void add_norms(CaseList& cases, std::int64_t rows, std::int64_t cols) {
  for (int kind = 0; kind < 2; ++kind) {
    cases.add(OpKind::kNormForward, kind, {rows, cols});
    cases.add_changed<NormForward>(kind, {rows, cols}, "1 + gain",
                                   [](NormForward& op) { op.offset = 1; });
    if (cols == 1) continue;  // the gradient is zero, and only rounding errors remain
    for (const DType gradients : {DType::kFloat32, cases.dtype()}) {
      for (const int residual : {0, 2}) {
        const int variant = kind | residual | (code(gradients) << 2);
        cases.add(OpKind::kNormBackward, variant, {rows, cols});
        cases.add_changed<NormBackward>(variant, {rows, cols}, "1 + gain",
                                        [](NormBackward& op) { op.offset = 1; });
        cases.add_changed<NormBackward>(variant, {rows, cols}, "in place",
                                        [](NormBackward& op) { op.dx = op.dy; });
      }
    }
  }
}

void add_rowwise(CaseList& cases, std::int64_t rows, std::int64_t cols) {
  for (const int with_bias : {0, 1}) {
    cases.add(OpKind::kBiasGeluForward, with_bias, {rows, cols});
    cases.add(OpKind::kBiasGeluBackward, with_bias, {rows, cols});
  }
  cases.add(OpKind::kSwigluForward, 0, {rows, cols});
  cases.add(OpKind::kSwigluBackward, 0, {rows, cols});
  for (int variant = 0; variant < 4; ++variant) {
    cases.add(OpKind::kBiasResidual, variant, {rows, cols});
    cases.add_changed<BiasResidual>(variant, {rows, cols}, "in place",
                                    [](BiasResidual& op) { op.y = op.x; });
  }
  for (int variant = 0; variant < 4; ++variant) {
    cases.add(OpKind::kDropoutForward, variant, {rows, cols});
  }
  cases.add(OpKind::kDropoutBackward, 0, {rows, cols});
  for (const DType sums : {DType::kFloat32, cases.dtype()}) {
    cases.add(OpKind::kColumnSum, code(sums), {rows, cols});
    cases.add(OpKind::kPositionBackward, code(sums), {rows, cols});
    cases.add(OpKind::kEmbeddingBackward, code(sums), {rows, cols, 7});
    cases.add_changed<EmbeddingBackward>(code(sums), {rows, cols, 7}, "a later shard",
                                         [](EmbeddingBackward& op) { op.vocab_begin = 3; });
  }
  cases.add(OpKind::kPositionForward, 0, {rows, cols});
  cases.add(OpKind::kEmbeddingForward, 0, {rows, cols, 7});
  cases.add_changed<EmbeddingForward>(0, {rows, cols, 7}, "a later shard",
                                      [](EmbeddingForward& op) { op.vocab_begin = 3; });
  cases.add(OpKind::kInitNormal, 0, {rows, cols});
}

// Slots for all choices, for few choices, and more slots than choices.
void add_experts(CaseList& cases) {
  for (const auto& [tokens, experts, capacity, per_token] :
       {std::array<std::int64_t, 4>{1, 1, 1, 1},
        {13, 4, 13, 2},
        {13, 4, 3, 2},
        {40, 5, 6, 1},
        {700, 3, 700, 3},
        {1100, 8, 200, 2},
        {9, 300, 4, 40}}) {
    if (cases.dtype() == DType::kFloat32) {
      cases.add(OpKind::kRouteForward, 0, {tokens, experts, capacity, per_token});
    }
    if (experts > 1) cases.add(OpKind::kRouteBackward, 0, {tokens, experts, per_token});
    for (const std::int64_t cols : {5, 64}) {
      const OpDims dims{tokens, cols, experts, capacity, per_token};
      for (const int weighted : {0, 1}) {
        cases.add(OpKind::kPermuteTokens, weighted, dims);
        cases.add(OpKind::kUnpermuteTokens, weighted, dims);
      }
      cases.add(OpKind::kRouteWeightGradient, 1, dims);
    }
  }
}

void add_samples_per_position(CaseList& cases) {
  cases.add_changed<PositionForward>(0, {12, 5}, "three samples", [](PositionForward& op) {
    op.x = op.x.reshaped({4, 3, 5});
  });
  cases.add_changed<PositionBackward>(0, {12, 5}, "three samples", [](PositionBackward& op) {
    op.dy = op.dy.reshaped({4, 3, 5});
  });
}

void add_losses(CaseList& cases, std::int64_t rows, std::int64_t cols) {
  for (const int with_sums : {0, 1}) cases.add(OpKind::kVocabMax, with_sums, {rows, cols});
  if (cases.dtype() == DType::kFloat32) cases.add(OpKind::kVocabRescale, 0, {rows});
  cases.add(OpKind::kVocabSums, 0, {rows, cols});
  cases.add(OpKind::kCrossEntropyBackward, 0, {rows, cols});
  for (const std::int64_t columns : {std::int64_t{0}, cols / 2}) {
    cases.add_changed<VocabMax>(0, {rows, cols}, "padded",
                                [=](VocabMax& op) { op.columns = columns; });
    cases.add_changed<VocabMax>(1, {rows, cols}, "with sums, padded, a later shard",
                                [=](VocabMax& op) {
                                  op.columns = columns;
                                  op.vocab_begin = 2;
                                });
    cases.add_changed<VocabSums>(0, {rows, cols}, "padded, a later shard", [=](VocabSums& op) {
      op.columns = columns;
      op.vocab_begin = 2;
    });
    cases.add_changed<CrossEntropyBackward>(0, {rows, cols}, "padded, a later shard",
                                            [=](CrossEntropyBackward& op) {
                                              op.columns = columns;
                                              op.vocab_begin = 2;
                                            });
  }
}

void add_column_biases(CaseList& cases, std::int64_t rows, std::int64_t cols) {
  cases.add(OpKind::kColumnBias, 0, {rows, cols});
  cases.add(OpKind::kColumnBiasGradient, code(DType::kFloat32), {rows, cols});
  cases.add(OpKind::kColumnBiasGradient, code(cases.dtype()), {rows, cols});
  if (cols < 48) return;
  const auto narrow = [](Matrix& x) {
    x.cols = 16;
    x.offset = 8;
  };
  cases.add_changed<ColumnBias>(0, {rows, cols}, "some columns", [=](ColumnBias& op) {
    narrow(op.x);
    op.bias = op.bias.slice(0, 16);
  });
  cases.add_changed<ColumnBiasGradient>(code(DType::kFloat32), {rows, cols}, "some columns",
                                        [=](ColumnBiasGradient& op) {
                                          narrow(op.dy);
                                          op.sums = op.sums.slice(0, 16);
                                        });
}

void add_matrix_copies(CaseList& cases) {
  for (const OpDims& dims : {OpDims{1, 1, 1}, {1, 17, 48}, {6, 5, 257}}) {
    cases.add(OpKind::kCopyMatrices, 0, dims);
  }
  cases.add_changed<CopyMatrices>(0, {6, 7, 5}, "batches side by side", [](CopyMatrices& op) {
    op.outer = 2;
    op.inner = 3;
    lay_side_by_side(op.from, 2, 3);
    op.to.outer_stride = 3 * 35;
    op.to.inner_stride = 35;
  });
  cases.add_changed<CopyMatrices>(0, {1, 7, 48}, "last row first", [](CopyMatrices& op) {
    op.to.offset = 6 * 48;
    op.to.row_stride = -48;
  });
}

void add_flat(CaseList& cases, std::int64_t n) {
  for (const OpKind kind : {OpKind::kScale, OpKind::kFill, OpKind::kCopy, OpKind::kSumSquares,
                            OpKind::kSoftCapForward, OpKind::kSoftCapBackward}) {
    cases.add(kind, 0, {n});
  }
  for (const DType other : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    cases.add(OpKind::kAdd, code(other), {n});
    cases.add(OpKind::kCast, code(other), {n});
    cases.add(OpKind::kAdamW, code(other), {n});
    cases.add(OpKind::kAxpby, code(other), {n});
    cases.add(OpKind::kAxpby, code(other) | kReadsY, {n});
  }
  cases.add_changed<Axpby>(code(DType::kFloat32) | kReadsY, {n}, "without a norm",
                           [](Axpby& op) { op.squares = Tensor(); });
}

}  // namespace

std::vector<OpCase> odd_cases(const std::vector<DType>& dtypes) {
  std::vector<OpCase> all;
  for (const DType dtype : dtypes) {
    CaseList cases(dtype);
    add_matmuls(cases);
    for (const std::int64_t rows : kRows) {
      for (const std::int64_t cols : kCols) {
        add_norms(cases, rows, cols);
        add_rowwise(cases, rows, cols);
        add_column_biases(cases, rows, cols);
        add_losses(cases, rows, cols);
      }
    }
    add_samples_per_position(cases);
    add_experts(cases);
    add_attention(cases);
    add_matrix_copies(cases);
    for (const std::int64_t n : {1, 5, 1023, 1025, 4099}) add_flat(cases, n);
    if (dtype == DType::kFloat32) cases.add(OpKind::kCrossEntropyLoss, 0, {17});
    for (OpCase& one : cases.taken()) all.push_back(std::move(one));
  }
  return all;
}

std::vector<OpCase> cases_of_today(const std::vector<DType>& dtypes) {
  std::vector<OpCase> all;
  for (const DType dtype : dtypes) {
    CaseList cases(dtype);
    add_attention_of_today(cases);
    for (const OpKind kind : {OpKind::kHeadNormForward, OpKind::kHeadNormBackward,
                              OpKind::kPositionScale, OpKind::kHeadSum}) {
      cases.add(kind, 0, {5, 3, 8});
      cases.add(kind, 0, {17, 1, 6});
    }
    for (const int rotary : {1, 2, 3}) cases.add(OpKind::kRotary, rotary, {7, 3, 8});
    for (const int offset : {1, 3}) {
      const int gradients = code(DType::kFloat32) << 2;
      cases.add(OpKind::kNormBackward, kOffsetNorm | gradients | offset, {5, 33});
    }
    for (const OpKind kind : {OpKind::kSoftCapForward, OpKind::kSoftCapBackward}) {
      cases.add(kind, 0, {1023});
    }
    cases.add(OpKind::kColumnBias, 0, {7, 5});
    cases.add(OpKind::kColumnBiasGradient, code(DType::kFloat32), {7, 5});
    for (const int kind : {2, 3, 4}) {
      for (const int bias : {0, 1}) {
        cases.add(OpKind::kBiasGeluForward, kind << 1 | bias, {7, 33});
        cases.add(OpKind::kBiasGeluBackward, kind << 1 | bias, {7, 33});
      }
    }
    for (const int kind : {5, 6}) {
      cases.add(OpKind::kSwigluForward, kind, {7, 33});
      cases.add(OpKind::kSwigluBackward, kind, {7, 33});
    }
    if (dtype == DType::kFloat32) {
      for (const int variant : {1, 5, 2, 6, 14, 18, 30}) {
        cases.add(OpKind::kRouteForward, variant, {9, 8, 9, 2});
        cases.add(OpKind::kRouteBackward, variant & ~8, {9, 8, 2});
      }
    }
    for (OpCase& one : cases.taken()) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace tpsim
