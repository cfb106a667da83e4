#include "reference_model/step/muon.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tpsim {
namespace {

constexpr Label kMomentum{ModelPart::kOptimizer, "muon.momentum"};
constexpr Label kNormalize{ModelPart::kOptimizer, "muon.normalize"};
constexpr Label kNewtonSchulz{ModelPart::kOptimizer, "muon.newton_schulz"};
constexpr Label kUpdate{ModelPart::kOptimizer, "muon.update"};
constexpr Label kGatherUpdates{ModelPart::kOptimizer, "muon.gather_updates"};
constexpr Label kGatherShards{ModelPart::kOptimizer, "muon.gather_shards"};

constexpr int kIterations = 5;
// Coefficients a, b, c of an iteration.
constexpr float kLinear = 3.4445F, kCubic = -4.7750F, kQuintic = 2.0315F;
constexpr float kLeastNorm = 1e-7F;
constexpr double kRmsOfAdamW = 0.2;

}  // namespace

Tensor Muon::allocate(const Shape& shape, DType dtype, const char* label) const {
  return context_.device.allocate(shape, dtype, MemoryCategory::kWorkspace, label);
}

bool Muon::is_sharded(const ParameterUnit& unit, const Parameter& p) const {
  const bool is_cut = p.spec.sharding == Sharding::kRows || p.spec.sharding == Sharding::kColumns;
  return is_cut && store_.tensor_group(unit).size() > 1 &&
         context_.options.muon_tp_mode != MuonTpMode::kBlockwise;
}

double Muon::scale_of(const ParameterUnit& unit, const Parameter& p) const {
  const std::int64_t ranks = is_sharded(unit, p) ? store_.tensor_group(unit).size() : 1;
  const bool by_rows = p.spec.sharding == Sharding::kRows;
  const std::int64_t rows = p.spec.shape.rows() * (by_rows ? ranks : 1);
  const std::int64_t cols = p.spec.shape.cols() * (by_rows ? 1 : ranks);
  return kRmsOfAdamW * std::sqrt(static_cast<double>(std::max(rows, cols)));
}

void Muon::update(const ParameterUnit& unit, const OptimizerState& state,
                  const MuonOperands& with) {
  const auto is_its = [](const Parameter& p) { return p.updater == OptimizerKind::kMuon; };
  if (std::none_of(unit.parameters().begin(), unit.parameters().end(), is_its)) return;
  const std::int64_t share_begin = store_.share_begin(unit);
  const std::int64_t share_end = share_begin + store_.share_size(unit);
  const bool gathers = store_.zero_stage(unit) > 0;
  const Tensor whole = gathers ? gathered(unit, state, with) : Tensor();
  for (const Parameter& p : unit.parameters()) {
    if (!is_its(p) || !store_.owns(unit, p)) continue;
    const std::int64_t begin = std::max(p.offset, share_begin);
    const std::int64_t count = std::min(p.offset + p.spec.shape.elements(), share_end) - begin;
    if (count <= 0) continue;
    const auto in_share = [&](const Tensor& x) { return x.slice(begin - share_begin, count); };
    Tensor x;
    if (gathers) {
      x = whole.slice(p.offset, p.spec.shape);
    } else {
      x = allocate(p.spec.shape, DType::kFloat32, "muon_update");
      look_ahead({begin, count, p.updater}, state, in_share(with.gradients), with.gradient_scale,
                 x);
    }
    const Tensor direction = orthogonalized(unit, p, x);
    const Tensor master = state.master.slice(begin, count), weights = in_share(with.weights);
    context_.device.run(
        Axpby{.x = direction.slice(begin - p.offset, count),
              .y = master,
              .alpha = static_cast<float>(-settings_.rate * scale_of(unit, p)),
              .beta = static_cast<float>(1 - settings_.rate * settings_.weight_decay),
              .label = kUpdate});
    if (weights.dtype() != master.dtype()) context_.device.run(Cast{master, weights, kUpdate});
  }
}

void Muon::look_ahead(const UpdatedRange& range, const OptimizerState& state,
                      const Tensor& gradients, double gradient_scale, const Tensor& x) {
  const auto kept = static_cast<float>(settings_.momentum);
  const auto added = static_cast<float>((1 - settings_.momentum) * gradient_scale);
  const Tensor momentum = state.momentum.slice(range.begin, range.count);
  Device& device = context_.device;
  device.run(Axpby{gradients, momentum, added, kept, {}, 0, kMomentum});
  device.run(Axpby{gradients, x, added, 0, {}, 0, kMomentum});
  device.run(Axpby{momentum, x, kept, 1, {}, 0, kMomentum});
}

Tensor Muon::gathered(const ParameterUnit& unit, const OptimizerState& state,
                      const MuonOperands& with) {
  const std::int64_t share_begin = store_.share_begin(unit);
  Tensor whole = allocate({unit.size()}, DType::kFloat32, "muon_updates");
  const Tensor share = whole.slice(share_begin, store_.share_size(unit));
  for (const UpdatedRange& range : updated_ranges(store_, unit)) {
    const std::int64_t at = range.begin - share_begin;
    const Tensor x = share.slice(at, range.count);
    if (range.updater == OptimizerKind::kMuon) {
      look_ahead(range, state, with.gradients.slice(at, range.count), with.gradient_scale, x);
    } else {
      context_.device.run(Fill{x, 0.0F, kMomentum});
    }
  }
  store_.data_group(unit).all_gather(share, whole, kGatherUpdates);
  return whole;
}

Tensor Muon::orthogonalized(const ParameterUnit& unit, const Parameter& p, const Tensor& x) {
  if (!is_sharded(unit, p)) return iterated(x, nullptr, Sharding::kReplicated);
  if (context_.options.muon_tp_mode == MuonTpMode::kDistributed) {
    return iterated(x, &store_.tensor_group(unit), p.spec.sharding);
  }
  return in_duplicate(unit, p, x);
}

// All-gathers the shards, iterates on the whole matrix, and returns this rank's shard.
Tensor Muon::in_duplicate(const ParameterUnit& unit, const Parameter& p, const Tensor& x) {
  Communicator& group = store_.tensor_group(unit);
  Device& device = context_.device;
  const std::int64_t ranks = group.size(), rows = x.rows(), cols = x.cols();
  Tensor all = allocate({ranks * rows, cols}, DType::kFloat32, "muon_shards");
  group.all_gather(x, all, kGatherShards);
  if (p.spec.sharding == Sharding::kRows) {
    return iterated(all, nullptr, p.spec.sharding).slice(group.rank() * rows * cols, p.spec.shape);
  }
  // The shards of columns [ranks, rows, cols], and the same columns inside the whole matrix.
  const auto shards = [&](const Tensor& tensor) {
    Matrix matrix = matrix_of(tensor);
    matrix.rows = rows;
    matrix.outer_stride = rows * cols;
    return matrix;
  };
  const auto columns = [&](const Tensor& tensor) {
    Matrix matrix = matrix_of(tensor);
    matrix.cols = cols;
    matrix.outer_stride = cols;
    return matrix;
  };
  const Tensor whole = allocate({rows, ranks * cols}, DType::kFloat32, "muon_matrix");
  device.run(CopyMatrices{shards(all), columns(whole), ranks, 1, kGatherShards});
  all = Tensor();
  const Tensor direction = iterated(whole, nullptr, p.spec.sharding);
  Tensor own = allocate(p.spec.shape, direction.dtype(), "muon_direction");
  Matrix own_columns = columns(direction);
  own_columns.offset = group.rank() * cols;
  device.run(CopyMatrices{own_columns, shards(own), 1, 1, kGatherShards});
  return own;
}

Tensor Muon::iterated(const Tensor& x, Communicator* group, Sharding sharding) {
  Device& device = context_.device;
  const DType dtype = context_.plan.dtype;
  const std::int64_t rows = x.rows(), cols = x.cols();
  const Tensor squares = allocate({1}, DType::kFloat32, "muon_norm");
  device.run(Fill{squares, 0.0F, kNormalize});
  device.run(SumSquares{x, squares, kNormalize});
  if (group != nullptr) group->all_reduce(squares, ReduceOp::kSum, kNormalize);
  Tensor now = allocate({rows, cols}, dtype, "muon_iterate");
  Tensor next = allocate({rows, cols}, dtype, "muon_iterate");
  device.run(Axpby{x, now, 1, 0, squares, kLeastNorm, kNormalize});
  // Shards are multiplied along the sharded extent, whole matrices along the longer one.
  const bool from_left = group != nullptr ? sharding == Sharding::kColumns : rows <= cols;
  const std::int64_t side = from_left ? rows : cols;
  const Tensor product = allocate({side, side}, dtype, "muon_product");
  const Tensor polynomial = allocate({side, side}, dtype, "muon_polynomial");
  const auto multiply = [&](const Matrix& a, const Matrix& b, const Tensor& c, float alpha,
                            float beta) {
    device.run(Matmul{
        .a = a, .b = b, .c = matrix_of(c), .alpha = alpha, .beta = beta, .label = kNewtonSchulz});
  };
  for (int i = 0; i < kIterations; ++i) {
    multiply(matrix_of(now, !from_left), matrix_of(now, from_left), product, 1, 0);
    if (group != nullptr) group->all_reduce(product, ReduceOp::kSum, kNewtonSchulz);
    device.run(Copy{product, polynomial, kNewtonSchulz});
    multiply(matrix_of(product), matrix_of(product), polynomial, kQuintic, kCubic);
    device.run(Copy{now, next, kNewtonSchulz});
    if (from_left) {
      multiply(matrix_of(polynomial), matrix_of(now), next, 1, kLinear);
    } else {
      multiply(matrix_of(now), matrix_of(polynomial), next, 1, kLinear);
    }
    std::swap(now, next);
  }
  return now;
}

}  // namespace tpsim
