// Latent attention with the identity as down projection equals multi-head attention.
#include "reference_model/layers/latent_attention.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>

#include "ranks/meta/lone_world.h"
#include "reference_model/layers/attention.h"
#include "reference_model/parallel/process_groups.h"
#include "tests/reference_model/expert_training.h"
#include "tests/test_label.h"

namespace tpsim {
namespace {

constexpr std::int64_t kHidden = 16, kHeads = 4, kWidth = 4, kTurned = 2;

using Values = std::vector<double>;

// A single attention layer on the slow device.
class Layer {
 public:
  Layer(const ModelSpec& model, AttentionKind kind)
      : plan_(plan_for(model, kind)),
        owned_(form_groups(world_, device_, plan_)),
        context_{device_, owned_.groups(), {}, model, plan_, {}},
        store_(context_) {
    SpecList specs(context_, "b.");
    ParallelAttention::specify(specs);
    unit_ = &store_.add_unit(specs.take());
    store_.materialize(3);
    attention_.emplace(context_, *unit_, "b.");
  }

  std::span<double> weight(const std::string& name) {
    return device_.values(get_parameter(*unit_, "b.self_attn." + name + ".weight").weight);
  }
  std::span<const double> gradient(const std::string& name) {
    return device_.values(get_parameter(*unit_, "b.self_attn." + name + ".weight").gradient);
  }
  // Runs forward, and backward with the output gradient `dy`.
  Values pass(const Values& x, const Values& dy) {
    const Tensor in = tensor_of(x, "x"), slope = tensor_of(dy, "dy");
    store_.begin_backward(*unit_);
    AttentionSaved saved;
    const Tensor out = attention_->forward(in, saved);
    const auto y = device_.values(out);
    Values passed(y.begin(), y.end());
    attention_->backward(slope, std::move(saved));
    return passed;
  }

 private:
  static Plan plan_for(const ModelSpec& model, AttentionKind kind) {
    Plan plan = test::layout_of(model, {1, 1, 1, 1, 1}, 2);
    plan.attention = kind;
    return plan;
  }
  Tensor tensor_of(const Values& values, const char* label) {
    const Tensor tensor = device_.allocate(residual_shape(context_), DType::kFloat32,
                                           MemoryCategory::kWorkspace, label);
    std::copy(values.begin(), values.end(), device_.values(tensor).begin());
    return tensor;
  }

  SlowDevice device_;
  LoneWorld world_;
  Plan plan_;
  OwnedGroups owned_;
  RankContext context_;
  ParameterStore store_;
  ParameterUnit* unit_ = nullptr;
  std::optional<ParallelAttention> attention_;
};

ModelSpec multi_head() {
  ModelSpec model = test::mixture(kHidden, 16);
  model.experts = {};
  model.attention = {kHeads, kHeads, kWidth, PositionKind::kNone};
  model.attention.score.scale = 0.4;
  return model;
}

ModelSpec latent() {
  ModelSpec model = multi_head();
  model.attention.position = PositionKind::kRotary;
  model.attention.head_dim = kWidth + kTurned;
  model.attention.latent = {0, kHidden, kWidth, kTurned, kWidth};
  return model;
}

// Rows of root mean square 1, which the latent norm does not change.
Values normed_rows(std::int64_t rows) {
  Values x;
  for (std::int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (std::int64_t c = 0; c < kHidden; ++c) {
      x.push_back(std::sin(static_cast<double>(1 + 7 * r + 3 * c * c)));
      squares += x.back() * x.back();
    }
    for (std::int64_t c = 0; c < kHidden; ++c) {
      x[static_cast<std::size_t>(r * kHidden + c)] /= std::sqrt(squares / kHidden);
    }
  }
  return x;
}

// Visits the rows of every head: `width` rows from `first` in each `stride` rows.
template <class Visit>
void visit_heads(std::int64_t stride, std::int64_t first, const Visit& visit) {
  for (std::int64_t head = 0; head < kHeads; ++head) {
    for (std::int64_t i = 0; i < kWidth * kHidden; ++i) {
      visit(static_cast<std::size_t>(head * kWidth * kHidden + i),
            static_cast<std::size_t>((head * stride + first) * kHidden + i));
    }
  }
}

// Names of q, k and v in both models, and their rows in latent attention.
struct Place {
  const char *whole, *latent;
  std::int64_t stride, first;
};
constexpr Place kPlaces[] = {{"q_proj", "q_proj", kWidth + kTurned, 0},
                             {"k_proj", "kv_b_proj", 2 * kWidth, 0},
                             {"v_proj", "kv_b_proj", 2 * kWidth, kWidth}};

// Copies weights. The shared key, the only part with positions, is zero.
void give_weights(Layer& from, Layer& to) {
  const auto down = to.weight("kv_a_proj_with_mqa");
  std::fill(down.begin(), down.end(), 0.0);
  for (std::int64_t i = 0; i < kHidden; ++i) down[static_cast<std::size_t>(i * (kHidden + 1))] = 1;
  for (const Place& place : kPlaces) {
    const auto whole = from.weight(place.whole), latent = to.weight(place.latent);
    visit_heads(place.stride, place.first,
                [&](std::size_t i, std::size_t j) { latent[j] = whole[i]; });
  }
  const auto output = from.weight("o_proj");
  std::copy(output.begin(), output.end(), to.weight("o_proj").begin());
}

}  // namespace

TEST_CASE("latent attention with the identity as down projection equals multi-head attention") {
  for (const AttentionKind kind : {AttentionKind::kUnfused, AttentionKind::kFlash}) {
    const ModelSpec full = multi_head(), low = latent();
    Layer heads(full, kind), latents(low, kind);
    give_weights(heads, latents);
    const std::int64_t rows = 2 * full.seq;
    const Values x = normed_rows(rows);
    Values dy(x.size());
    for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = std::cos(static_cast<double>(i));
    const Values wanted = heads.pass(x, dy), got = latents.pass(x, dy);
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(got[i] == Approx(wanted[i]).margin(1e-5));
    for (const Place& place : kPlaces) {
      INFO(place.whole);
      const auto whole = heads.gradient(place.whole), latent = latents.gradient(place.latent);
      visit_heads(place.stride, place.first, [&](std::size_t i, std::size_t j) {
        CHECK(latent[j] == Approx(whole[i]).epsilon(1e-5).margin(1e-5));
      });
    }
  }
}

}  // namespace tpsim
