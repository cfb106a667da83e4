#include "tests/kernels/checks/case_list.h"

namespace tpsim {
namespace {

void add_softmaxes(CaseList& cases) {
  for (const auto& [matrices, seq] : {std::pair{1, 1}, {6, 5}, {3, 17}, {2, 48}, {1, 130}}) {
    for (const int alibi : {0, 1}) cases.add(OpKind::kSoftmaxForward, alibi, {matrices, seq, seq});
    cases.add(OpKind::kSoftmaxBackward, 0, {matrices, seq, seq});
  }
  cases.add_changed<SoftmaxForward>(1, {6, 9, 9}, "two samples", [](SoftmaxForward& op) {
    op.heads = 3;
    op.slopes = op.slopes.slice(0, 3);
  });
  for (const Visibility& limit : {Visibility{3, 0}, Visibility{0, 7}, Visibility{40, 0}}) {
    cases.add_changed<SoftmaxForward>(1, {3, 17, 48}, "windows and chunks",
                                      [=](SoftmaxForward& op) { op.visibility = limit; });
    cases.add_changed<SoftmaxForward>(0, {2, 48, 48}, "windows and chunks",
                                      [=](SoftmaxForward& op) { op.visibility = limit; });
  }
  // The queries are the last positions of more keys.
  for (const auto& [matrices, queries, keys] :
       {std::tuple{1, 1, 9}, {6, 5, 10}, {3, 17, 48}, {2, 64, 257}}) {
    for (const int alibi : {0, 1}) {
      cases.add(OpKind::kSoftmaxForward, alibi, {matrices, queries, keys});
    }
    // For a single row in few bits only rounding errors remain.
    if (queries > 1) cases.add(OpKind::kSoftmaxBackward, 0, {matrices, queries, keys});
  }
}

// Strides of the layout [sample][head][position][d].
void lay_by_head(Heads& x, std::int64_t positions, std::int64_t heads, std::int64_t head_dim) {
  x.position_stride = head_dim;
  x.head_stride = positions * head_dim;
  x.sample_stride = heads * x.head_stride;
}

void add_flash(CaseList& cases, OpDims dims) {
  for (const int alibi : {0, 1}) {
    cases.add(OpKind::kFlashForward, alibi, dims);
    // For a single position the gradient is zero and only rounding errors remain.
    if (dims[1] > 1 || dims[5] > 1) cases.add(OpKind::kFlashBackward, alibi, dims);
  }
  // Backward needs statistics of a forward with the same limits (add_limited_flash).
  cases.add_changed<FlashForward>(1, dims, "window and cap", [](FlashForward& op) {
    op.visibility.window = 5;
    op.cap = 2;
  });
  cases.add_changed<FlashForward>(0, dims, "chunks",
                                  [](FlashForward& op) { op.visibility.chunk = 6; });
  cases.add_changed<FlashForward>(1, dims, "head by head", [](FlashForward& op) {
    const AttentionDims& d = op.dims;
    for (Heads* x : {&op.q, &op.o}) {
      lay_by_head(*x, d.seq, d.heads, d.head_dim);
    }
    for (Heads* x : {&op.k, &op.v}) {
      lay_by_head(*x, key_count(d), d.kv_heads, d.head_dim);
    }
  });
}

void add_rotaries(CaseList& cases) {
  for (const bool inverse : {false, true}) {
    cases.add_changed<Rotary>(0, {1, 1, 2}, "one pair", [=](Rotary& op) { op.inverse = inverse; });
    cases.add_changed<Rotary>(0, {34, 3, 16}, "two samples", [=](Rotary& op) {
      op.inverse = inverse;
      op.dims.batch = 2;
      op.dims.seq = 17;
      op.x.position_stride *= 2;
    });
    cases.add_changed<Rotary>(0, {17, 3, 16}, "later positions", [=](Rotary& op) {
      op.inverse = inverse;
      op.first_position = 29;
    });
    cases.add_changed<Rotary>(1, {17, 3, 16}, "neighbours, longer", [=](Rotary& op) {
      op.inverse = inverse;
      op.first_position = 4000;
      op.magnitude = 1.25F;
    });
    cases.add_changed<Rotary>(0, {17, 3, 16}, "half of a head", [=](Rotary& op) {
      op.inverse = inverse;
      op.dims.head_dim = 8;
      op.x.head_stride = 16;
    });
  }
}

// Norms of one vector per token, of several heads with a shared gain or separate gains, and without
// gain.
void add_head_ops(CaseList& cases) {
  for (const OpDims& dims :
       {OpDims{1, 1, 4}, {17, 3, 16}, {5, 2, 80}, {33, 1, 257}, {300, 4, 128}}) {
    cases.add(OpKind::kHeadNormForward, 0, dims);
    cases.add(OpKind::kHeadNormBackward, 0, dims);
    cases.add_changed<HeadNormForward>(0, dims, "centred, 1 + gain", [](HeadNormForward& op) {
      op.kind = NormKind::kLayerNorm;
      op.offset = 1;
    });
    cases.add_changed<HeadNormBackward>(0, dims, "centred, 1 + gain", [](HeadNormBackward& op) {
      op.kind = NormKind::kLayerNorm;
      op.offset = 1;
    });
    cases.add_changed<HeadNormForward>(0, dims, "no gain",
                                       [](HeadNormForward& op) { op.gain = Tensor(); });
    cases.add_changed<HeadNormBackward>(0, dims, "no gain", [](HeadNormBackward& op) {
      op.gain = Tensor();
      op.dgain = Tensor();
    });
    cases.add(OpKind::kPositionScale, 0, dims);
    cases.add(OpKind::kHeadSum, 0, dims);
  }
  // The key describes the heads of a token as one vector; here each head has a gain.
  cases.add_changed<HeadNormForward>(0, {17, 1, 48}, "a gain for each head",
                                     [](HeadNormForward& op) {
                                       op.dims.heads = 3;
                                       op.dims.head_dim = op.x.head_stride = 16;
                                     });
  cases.add_changed<HeadNormBackward>(0, {17, 1, 48}, "a gain for each head",
                                      [](HeadNormBackward& op) {
                                        op.dims.heads = 3;
                                        op.dims.head_dim = op.dx.head_stride = 16;
                                      });
  cases.add_changed<PositionScale>(0, {17, 3, 16}, "later positions",
                                   [](PositionScale& op) { op.first_position = 29; });
}

}  // namespace

void add_attention(CaseList& cases) {
  add_softmaxes(cases);
  for (const auto& dims : {OpDims{1, 1, 1, 1, 2},
                           {2, 17, 3, 3, 16},
                           {1, 130, 6, 2, 8},
                           {2, 65, 4, 1, 5},
                           {1, 1, 2, 2, 8, 9},
                           {2, 17, 3, 3, 16, 34},
                           {2, 70, 4, 2, 8, 140}}) {
    add_flash(cases, dims);
  }
  add_rotaries(cases);
  add_head_ops(cases);
}

void add_attention_of_today(CaseList& cases) {
  for (const int variant : {0, kChunked + 0, kCapped + 0, kSinks + 0, kSinks | kCapped}) {
    // A sink's gradient sums rounding errors of outputs and probabilities: checked in fp32 only.
    const bool adds_roundings = (variant & kSinks) != 0 && cases.dtype() != DType::kFloat32;
    for (const OpKind kind : {OpKind::kFlashForward, OpKind::kFlashBackward}) {
      if (adds_roundings && kind == OpKind::kFlashBackward) continue;
      cases.add(kind, variant, {2, 17, 3, 3, 16, 17, 5});
      cases.add(kind, variant, {1, 70, 4, 2, 8, 140, 33});
      cases.add(kind, variant & ~kChunked, {1, 9, 2, 1, 8, 9, 9, 6});
    }
    if ((variant & kCapped) != 0) continue;
    for (const OpKind kind : {OpKind::kSoftmaxForward, OpKind::kSoftmaxBackward}) {
      if (adds_roundings && kind == OpKind::kSoftmaxBackward) continue;
      cases.add(kind, variant, {3, 17, 17, 5});
      cases.add(kind, variant, {2, 7, 20, 4});
    }
  }
}

}  // namespace tpsim
