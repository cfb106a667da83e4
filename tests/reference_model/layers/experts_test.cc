// Experts: the layer compared with a dense loop that sends every token to every expert, and
// training in every layout compared with one rank in float64.
#include "reference_model/layers/experts.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <numeric>

#include "kernels/slow/slow_device.h"
#include "ranks/meta/lone_world.h"
#include "reference_model/layers/norm.h"
#include "reference_model/parallel/process_groups.h"
#include "tests/reference_model/expert_training.h"
#include "tests/temporary_folder.h"
#include "tests/test_label.h"

namespace tpsim {
namespace {

using Values = std::vector<double>;
using test::check_same, test::mixture, test::layout_of, test::run_of, test::switch_model;
using test::Trained, test::trained_on_cpu, test::trained_slowly;

// A single MoE layer on the slow device.
class Layer {
 public:
  explicit Layer(const ModelSpec& model)
      : plan_(layout_of(model, {1, 1, 1, 1, 1}, 2)),
        owned_(form_groups(world_, device_, plan_)),
        context_{device_, owned_.groups(), {}, model, plan_, {}},
        store_(context_) {
    SpecList router(context_, "b.");
    Experts::specify_router(router);
    block_ = &store_.add_unit(router.take());
    unit_ = &Experts::add_to(context_, store_, "b.");
    store_.materialize(3);
    experts_.emplace(context_, store_, *block_, *unit_, "b.");
  }

  SlowDevice& device() { return device_; }
  Tensor tokens(const char* label) {
    return device_.allocate(residual_shape(context_), DType::kFloat32, MemoryCategory::kWorkspace,
                            label);
  }
  Values forward(const Tensor& x) {
    ExpertsSaved saved;
    return values(experts_->forward(x, saved));
  }
  Values backward(const Tensor& x, const Tensor& dy) {
    for (ParameterUnit* unit : {block_, unit_}) store_.begin_backward(*unit);
    ExpertsSaved saved;
    experts_->forward(x, saved);
    return values(experts_->backward(dy, std::move(saved)));
  }
  Values values(const Tensor& x) const {
    const auto all = device_.values(x);
    return {all.begin(), all.end()};
  }
  std::vector<Parameter*> parameters() {
    std::vector<Parameter*> all;
    for (ParameterUnit* unit : {block_, unit_}) {
      for (Parameter& p : unit->parameters()) all.push_back(&p);
    }
    return all;
  }

  // Sends every token through every expert, with weight zero for experts that were not chosen.
  Values dense(const Tensor& x) {
    const ModelSpec& model = context_.model;
    const std::int64_t h = model.hidden, f = model.ffn_hidden, e = model.experts.count;
    const Values in = values(x);
    Values out(in.size(), 0.0);
    for (std::size_t t = 0; t < in.size() / static_cast<std::size_t>(h); ++t) {
      const double* token = in.data() + t * static_cast<std::size_t>(h);
      const Values weights = weights_of(token);
      for (std::int64_t i = 0; i < e; ++i) {
        const double* gate = matrix(i, "w1");
        const double* up = matrix(i, "w3");
        const double* down = matrix(i, "w2");
        for (std::int64_t k = 0; k < f; ++k) {
          const double g = dot(gate + k * h, token, h), u = dot(up + k * h, token, h);
          const double active = g / (1 + std::exp(-g)) * u;
          for (std::int64_t c = 0; c < h; ++c) {
            out[t * static_cast<std::size_t>(h) + static_cast<std::size_t>(c)] +=
                weights[static_cast<std::size_t>(i)] * down[c * f + k] * active;
          }
        }
      }
    }
    return out;
  }

 private:
  static double dot(const double* a, const double* b, std::int64_t n) {
    return std::inner_product(a, a + n, b, 0.0);
  }
  const double* matrix(std::int64_t expert, const char* name) {
    const std::string full =
        "b.block_sparse_moe.experts." + std::to_string(expert) + "." + name + ".weight";
    return device_.values(get_parameter(*unit_, full).weight).data();
  }
  // Softmax over the largest logits, zero elsewhere.
  Values weights_of(const double* token) {
    const ModelSpec& model = context_.model;
    const double* router =
        device_.values(get_parameter(*block_, "b.block_sparse_moe.gate.weight").weight).data();
    Values logits;
    for (std::int64_t i = 0; i < model.experts.count; ++i) {
      logits.push_back(dot(router + i * model.hidden, token, model.hidden));
    }
    Values sorted = logits;
    std::sort(sorted.rbegin(), sorted.rend());
    const double least = sorted[static_cast<std::size_t>(model.experts.per_token - 1)];
    double sum = 0;
    for (double& logit : logits) sum += logit = logit >= least ? std::exp(logit) : 0.0;
    for (double& weight : logits) weight /= sum;
    return logits;
  }

  SlowDevice device_;
  LoneWorld world_;
  Plan plan_;
  OwnedGroups owned_;
  RankContext context_;
  ParameterStore store_;
  ParameterUnit* block_ = nullptr;
  ParameterUnit* unit_ = nullptr;
  std::optional<Experts> experts_;
};

void draw(SlowDevice& device, const Tensor& x, std::uint64_t id) {
  device.run(InitNormal{.x = x.reshaped({x.rows(), x.cols()}),
                        .seed = 5,
                        .tensor_id = id,
                        .global_cols = x.cols(),
                        .label = test::kTest});
}

void check_equal(const Values& a, const Values& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i] == Approx(b[i]).epsilon(tolerance).margin(tolerance));
  }
}

}  // namespace

TEST_CASE("experts equal a dense loop over all experts") {
  for (const std::int64_t ffn : {5, 16}) {
    ModelSpec model = mixture(8, ffn);
    model.attention = {1, 1, 8, PositionKind::kRotary, 10000.0};
    model.seq = 3;
    Layer layer(model);
    const Tensor x = layer.tokens("x"), dy = layer.tokens("dy");
    draw(layer.device(), x, 1);
    draw(layer.device(), dy, 2);
    check_equal(layer.forward(x), layer.dense(x), 1e-12);

    const Values dx = layer.backward(x, dy), weights = layer.values(dy);
    const auto slope = [&](const Tensor& of, std::size_t i) {
      double& value = layer.device().values(of)[i];
      const double before = value, step = 1e-5;
      const auto at = [&](double moved) {
        value = moved;
        const Values y = layer.dense(x);
        return std::inner_product(y.begin(), y.end(), weights.begin(), 0.0);
      };
      const double difference = at(before + step) - at(before - step);
      value = before;
      return difference / (2 * step);
    };
    for (std::size_t i = 0; i < dx.size(); ++i) {
      CHECK(dx[i] == Approx(slope(x, i)).epsilon(1e-6).margin(1e-8));
    }
    for (Parameter* p : layer.parameters()) {
      const Values gradient = layer.values(p->gradient);
      INFO(p->spec.name);
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        CHECK(gradient[i] == Approx(slope(p->weight, i)).epsilon(1e-6).margin(1e-8));
      }
    }
  }
}

TEST_CASE("a single expert equals a dense MLP") {
  ModelSpec model = mixture(8, 16);
  model.attention = {1, 1, 8, PositionKind::kRotary, 10000.0};
  model.experts = {1, 1, 1.0};
  Layer layer(model);
  const Tensor x = layer.tokens("x");
  draw(layer.device(), x, 1);
  check_equal(layer.forward(x), layer.dense(x), 1e-12);
}

TEST_CASE("every layout of experts trains like one rank in float64") {
  ModelSpec latent = mixture(24, 20);
  latent.experts.latent = 12;
  for (const ModelSpec& model : {mixture(24, 20), switch_model(), latent}) {
    const Trained wanted = trained_slowly(run_of(model, layout_of(model, {1, 1, 1, 1, 1}, 8)));
    const auto check = [&](ParallelDegrees degrees, std::int64_t micro_batch, auto change) {
      Plan plan = layout_of(model, degrees, micro_batch);
      change(plan);
      INFO(model.experts.per_token << " of " << model.experts.count << " " << short_name(plan));
      REQUIRE(validate(plan, model).ok());
      check_same(trained_on_cpu(run_of(model, plan)), wanted);
    };
    const auto nothing = [](Plan&) {};
    check({1, 1, 1, 1, 1}, 2, nothing);
    check({2, 1, 1, 1, 1}, 4, nothing);
    check({1, 2, 1, 1, 1}, 2, [](Plan& p) { p.recompute = Recompute::kFull; });
    check({2, 1, 2, 1, 2}, 2, [](Plan& p) { p.recompute = Recompute::kFull; });
    for (const int zero : {0, 1, 2, 3}) {
      const auto set = [zero](Plan& p) { p.zero = zero; };
      check({1, 1, 2, 1, 1}, 2, set);
      check({1, 1, 2, 1, 2}, 4, set);
      check({1, 1, 4, 1, 2}, 1, set);
      check({1, 1, 4, 1, 4}, 2, set);
      check({2, 1, 2, 1, 2}, 2, set);
      check({1, 2, 2, 1, 2}, 2, set);
    }
    check({1, 2, 4, 1, 2}, 1, [](Plan& p) {
      p.zero = 1;
      p.rank_order = RankOrder::kTpPpDp;
    });
    check({1, 1, 2, 2, 2}, 2, [](Plan& p) { p.zero = 1; });
    check({1, 1, 4, 2, 2}, 1, [](Plan& p) {
      p.zero = 2;
      p.rank_order = RankOrder::kTpPpDp;
    });
  }
}

TEST_CASE("separate and bf16 gradients train experts too") {
  const ModelSpec model = mixture(32, 16);
  const Trained wanted = trained_slowly(run_of(model, layout_of(model, {1, 1, 1, 1, 1}, 8)));
  for (const int zero : {0, 1, 2}) {
    TrainingRun run = run_of(model, layout_of(model, {2, 1, 2, 1, 2}, 2));
    run.plan.zero = zero;
    run.options.gradient_accumulation = GradientAccumulation::kSeparate;
    check_same(trained_on_cpu(run), wanted);
    run.plan.dtype = DType::kBFloat16;
    for (const StepReport& report : trained_on_cpu(run).reports) {
      const StepReport& want = wanted.reports[static_cast<std::size_t>(report.step - 1)];
      CHECK(report.loss == Approx(want.loss).epsilon(2e-2));
    }
  }
}

TEST_CASE("tokens beyond the capacity are dropped, in any layout") {
  ModelSpec model = mixture(24, 20);
  const Plan whole = layout_of(model, {1, 1, 2, 1, 1}, 4);
  const Trained all = trained_on_cpu(run_of(model, whole));
  model.experts.capacity_factor = 0.5;
  const Trained few = trained_on_cpu(run_of(model, whole));
  CHECK(std::fabs(few.reports[0].loss - all.reports[0].loss) > 1e-3);
  Plan plan = layout_of(model, {1, 1, 2, 1, 2}, 4);
  check_same(trained_on_cpu(run_of(model, plan)), few);
  plan.zero = 1;
  plan.recompute = Recompute::kFull;
  check_same(trained_on_cpu(run_of(model, plan)), few);
}

TEST_CASE("training of experts resumes in another layout") {
  const ModelSpec model = mixture(24, 20);
  const Trained wanted = trained_slowly(run_of(model, layout_of(model, {1, 1, 1, 1, 1}, 8)));
  test::check_resumes(model, layout_of(model, {2, 1, 4, 1, 2}, 2),
                      {{1, 1, 4, 1, 4}, {1, 2, 2, 1, 1}, {1, 1, 1, 1, 1}}, wanted);
}

}  // namespace tpsim
