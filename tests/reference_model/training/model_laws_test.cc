// Trains layers with equivalent shapes and compares the losses.
#include "tests/reference_model/expert_training.h"

namespace tpsim {
namespace {

using test::check_same, test::layout_of, test::run_of, test::trained_on_cpu;

ModelSpec dense_model() {
  ModelSpec model = test::mixture(24, 40);
  model.experts = {};
  return model;
}

test::Trained trained_with(const ModelSpec& model, AttentionKind kind) {
  Plan plan = layout_of(model, {1, 1, 1, 1}, 2);
  plan.attention = kind;
  return trained_on_cpu(run_of(model, plan));
}

}  // namespace

TEST_CASE("windows and chunks of the sequence length equal full attention, shorter ones differ") {
  for (const AttentionKind kind : {AttentionKind::kFlash, AttentionKind::kUnfused}) {
    const ModelSpec full = dense_model();
    const test::Trained wanted = trained_with(full, kind);
    ModelSpec windowed = full, chunked = full;
    windowed.attention.window = full.seq;
    chunked.attention.chunk = full.seq;
    check_same(trained_with(windowed, kind), wanted);
    check_same(trained_with(chunked, kind), wanted);
    windowed.attention.window = full.seq / 2;
    CHECK(trained_with(windowed, kind).reports.back().loss != wanted.reports.back().loss);
  }
}

TEST_CASE("two equal kinds of blocks train like one kind") {
  const ModelSpec one = dense_model();
  ModelSpec two = one;
  // Another kind of block that is equivalent for sequences of this length.
  BlockShape other = block_of_kind(two, 0);
  other.attention.window = two.seq;
  set_blocks(two, {block_of_kind(one, 0), other});
  REQUIRE(block_kind_count(two) == 2);
  check_same(trained_with(two, AttentionKind::kFlash), trained_with(one, AttentionKind::kFlash));
}

}  // namespace tpsim
