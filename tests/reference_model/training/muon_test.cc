// Muon in the reference model: its update against the published formula in double, and its
// trajectories in every kind of layout against those of one rank.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "core/model/model_json.h"
#include "reference_model/parallel/owners.h"
#include "tests/reference_model/expert_training.h"
#include "tests/reference_model/training/golden_layouts.h"

namespace tpsim {
namespace {

using test::Trained;
using Values = std::map<std::string, std::vector<float>>;
using Doubles = std::vector<double>;

ModelSpec tiny(const std::string& name) {
  ModelSpec model =
      *read_model(std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/golden" / name / "config.json");
  model.seq = 12;
  return model;
}

TrainingRun muon_run(const ModelSpec& model, const Plan& plan,
                     MuonTpMode mode = MuonTpMode::kDuplicated) {
  TrainingRun run = test::run_of(model, plan);
  run.plan.dtype = DType::kFloat32;
  run.plan.global_batch = 8;
  run.options.optimizer_kind = OptimizerKind::kMuon;
  run.options.muon_tp_mode = mode;
  return run;
}

// A matrix in double.
struct Slow {
  std::size_t rows = 0, cols = 0;
  Doubles x;
};

Slow transposed(const Slow& a) {
  Slow t{a.cols, a.rows, Doubles(a.x.size())};
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.cols; ++j) t.x[j * a.rows + i] = a.x[i * a.cols + j];
  }
  return t;
}

Slow product(const Slow& a, const Slow& b) {
  Slow c{a.rows, b.cols, Doubles(a.rows * b.cols)};
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t k = 0; k < a.cols; ++k) {
      for (std::size_t j = 0; j < b.cols; ++j) {
        c.x[i * b.cols + j] += a.x[i * a.cols + k] * b.x[k * b.cols + j];
      }
    }
  }
  return c;
}

Slow combined(double p, const Slow& a, double q, const Slow& b) {
  Slow c = a;
  for (std::size_t i = 0; i < c.x.size(); ++i) c.x[i] = p * a.x[i] + q * b.x[i];
  return c;
}

// Five iterations X = a X + (b A + c A A) X with A = X X' on the shorter side, after a division by
// the Frobenius norm (kellerjordan.github.io/posts/muon).
Slow orthogonalized(Slow x) {
  const bool is_tall = x.rows > x.cols;
  if (is_tall) x = transposed(x);
  const double norm = std::sqrt(std::inner_product(x.x.begin(), x.x.end(), x.x.begin(), 0.0));
  for (double& value : x.x) value /= std::max(norm, 1e-7);
  for (int i = 0; i < 5; ++i) {
    const Slow a = product(x, transposed(x));
    x = combined(3.4445, x, 1, product(combined(-4.7750, a, 2.0315, product(a, a)), x));
  }
  return is_tall ? transposed(x) : x;
}

double distance(const Doubles& a, const std::vector<float>& b) {
  double sum = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += std::pow(a[i] - static_cast<double>(b[i]), 2);
    size += a[i] * a[i];
  }
  return std::sqrt(sum) / (std::sqrt(size) + 1e-30);
}

// Returns the state that a rank saves after `steps` steps of a run.
Values state_after(TrainingRun run, std::int64_t steps, int rank = 0) {
  const test::TemporaryFolder folder;
  run.state_folder = folder.path();
  run.steps = run.save_every = steps;
  test::trained_on_cpu(run);
  const std::string step = "step-0000000" + std::to_string(steps);
  return test::dumped_gradients(folder / step /
                                ("rank-0000" + std::to_string(rank) + ".safetensors"));
}

// Extents of a rank's part of the matrices that Muon updates, with `tp` tensor-parallel ranks.
struct Extents {
  std::string name;
  std::size_t rows, cols;
};
std::vector<Extents> matrices_of(const ModelSpec& model, std::size_t tp = 1) {
  const auto h = static_cast<std::size_t>(model.hidden);
  const auto f = static_cast<std::size_t>(model.ffn_hidden);
  const auto kv = static_cast<std::size_t>(kv_width(model));
  std::vector<Extents> all;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const std::string block = "model.layers." + std::to_string(layer) + ".";
    for (const auto& [name, rows, cols] : std::vector<Extents>{{"self_attn.q_proj", h / tp, h},
                                                               {"self_attn.k_proj", kv / tp, h},
                                                               {"self_attn.o_proj", h, h / tp},
                                                               {"mlp.gate_proj", f / tp, h},
                                                               {"mlp.down_proj", h, f / tp}}) {
      all.push_back({block + name + ".weight", rows, cols});
    }
  }
  return all;
}

Slow matrix_in(const Values& values, const std::string& name, const Extents& extents) {
  const std::vector<float>& x = values.at(name);
  REQUIRE(x.size() == extents.rows * extents.cols);
  return Slow{extents.rows, extents.cols, Doubles(x.begin(), x.end())};
}

// Checks the weights of `after`, given those of `before`, the momenta of both and the settings.
void check_update(const Values& before, const Values& after, const Extents& extents,
                  const OptimizerSettings& settings) {
  const double mu = settings.momentum;
  const Slow m = matrix_in(after, "momentum/" + extents.name, extents);
  const Slow last = matrix_in(before, "momentum/" + extents.name, extents);
  const Slow gradient = combined(1 / (1 - mu), m, -mu / (1 - mu), last);
  const Slow direction = orthogonalized(combined(1 - mu, gradient, mu, m));
  const auto longer = static_cast<double>(std::max(extents.rows, extents.cols));
  const Slow weights = combined(1 - settings.rate * settings.weight_decay,
                                matrix_in(before, "master/" + extents.name, extents),
                                -settings.rate * 0.2 * std::sqrt(longer), direction);
  CHECK(distance(weights.x, after.at("master/" + extents.name)) < 1e-5);
}

TrainingRun unclipped_run(const Plan& plan, MuonTpMode mode) {
  TrainingRun run = muon_run(tiny("llama-tiny"), plan, mode);
  run.optimizer.clip_norm = 0;
  run.optimizer.rate = 1e-2;
  return run;
}

}  // namespace

TEST_CASE("the update of Muon is the published formula, with momentum, look-ahead and decay") {
  const ModelSpec model = tiny("llama-tiny");
  const TrainingRun run =
      unclipped_run(test::golden_plan(model, {1, 1, 1, 1}, 4), MuonTpMode::kDuplicated);
  const Values gradients = test::trained_on_cpu(run).gradients;
  const Values one = state_after(run, 1), two = state_after(run, 2);
  for (const Extents& extents : matrices_of(model)) {
    INFO(extents.name);
    // The momentum starts at 0.
    const Slow gradient = matrix_in(gradients, extents.name, extents);
    const Slow momentum = combined(1 - run.optimizer.momentum, gradient, 0, gradient);
    CHECK(distance(momentum.x, one.at("momentum/" + extents.name)) < 1e-6);
    check_update(one, two, extents, run.optimizer);
    CHECK(one.count("variance/" + extents.name) == 0);
  }
  CHECK(one.count("variance/model.embed_tokens.weight") == 1);
  CHECK(one.count("variance/model.norm.weight") == 1);
  CHECK(one.count("variance/model.layers.0.input_layernorm.weight") == 1);
}

TEST_CASE("blockwise iterations orthogonalize each rank's shard") {
  const ModelSpec model = tiny("llama-tiny");
  const TrainingRun run =
      unclipped_run(test::golden_plan(model, {2, 1, 1, 1}, 4), MuonTpMode::kBlockwise);
  for (const int rank : {0, 1}) {
    const Values one = state_after(run, 1, rank), two = state_after(run, 2, rank);
    for (const Extents& extents : matrices_of(model, 2)) {
      INFO(extents.name << " of rank " << rank);
      check_update(one, two, extents, run.optimizer);
    }
  }
}

TEST_CASE("Muon in fp32 follows the slow device, which computes in double") {
  const ModelSpec model = test::mixture(24, 16);
  const TrainingRun run = muon_run(model, test::layout_of(model, {1, 1, 1, 1}, 2));
  test::check_same(test::trained_on_cpu(run), test::trained_slowly(run));
}

TEST_CASE("Muon follows the losses of one rank in every layout") {
  for (const std::string name : {"bloom-tiny", "llama-tiny"}) {
    const ModelSpec model = tiny(name);
    Trained wanted;
    for (const test::GoldenLayout& layout : test::golden_layouts(model)) {
      if (layout.plan.offload != Offload::kNone) continue;
      for (const MuonTpMode mode : {MuonTpMode::kDuplicated, MuonTpMode::kDistributed}) {
        if (mode == MuonTpMode::kDistributed && layout.plan.degrees.tp == 1) continue;
        INFO(name << " " << layout.name << " " << name_of(mode));
        TrainingRun run = muon_run(model, layout.plan, mode);
        run.options.gradient_reduction = layout.options.gradient_reduction;
        run.options.pipeline_sends = layout.options.pipeline_sends;
        const Trained found = test::trained_on_cpu(run);
        if (wanted.reports.empty()) wanted = found;
        test::check_same(found, wanted);
      }
    }
  }
}

TEST_CASE("Muon updates experts in every layout of experts and ZeRO stage") {
  const ModelSpec model = test::mixture(24, 16);
  const Trained wanted =
      test::trained_on_cpu(muon_run(model, test::layout_of(model, {1, 1, 1, 1}, 8)));
  for (const ParallelDegrees& degrees :
       {ParallelDegrees{1, 1, 2, 1, 2}, ParallelDegrees{1, 1, 4, 1, 2},
        ParallelDegrees{2, 1, 2, 1, 2}, ParallelDegrees{2, 1, 2, 1, 1}}) {
    for (const int zero : {0, 1, 2, 3}) {
      for (const MuonTpMode mode : {MuonTpMode::kDuplicated, MuonTpMode::kDistributed}) {
        TrainingRun run = muon_run(model, test::layout_of(model, degrees, 1), mode);
        run.plan.zero = zero;
        INFO(short_name(run.plan) << " " << name_of(mode));
        test::check_same(test::trained_on_cpu(run), wanted);
      }
    }
  }
}

TEST_CASE("a saved state of Muon resumes in another layout") {
  const ModelSpec model = tiny("llama-tiny");
  const Trained wanted =
      test::trained_on_cpu(muon_run(model, test::golden_plan(model, {1, 1, 1, 1}, 8)));
  for (const int first : {0, 1, 2, 3}) {
    const test::TemporaryFolder folder;
    TrainingRun before = muon_run(model, test::golden_plan(model, {1, 1, 4, 1}, 1));
    before.plan.zero = first;
    before.state_folder = folder.path();
    before.save_every = before.steps = 2;
    test::trained_on_cpu(before);
    TrainingRun after = muon_run(model, test::golden_plan(model, {2, 1, 2, 1}, 2));
    after.plan.zero = 3 - first;
    after.state_folder = folder.path();
    INFO("from ZeRO " << first);
    const std::vector<StepReport> rest = test::trained_on_cpu(after).reports;
    REQUIRE(rest.size() == 2);
    for (const StepReport& report : rest) {
      const StepReport& want = wanted.reports[static_cast<std::size_t>(report.step - 1)];
      CHECK(report.loss == Approx(want.loss).epsilon(1e-5));
    }
  }
}

TEST_CASE("bf16 iterations of Muon stay near the fp32 losses") {
  const ModelSpec model = tiny("llama-tiny");
  for (const int zero : {0, 1, 3}) {
    TrainingRun run = muon_run(model, test::golden_plan(model, {1, 1, 2, 1}, 4));
    run.plan.zero = zero;
    const Trained wide = test::trained_on_cpu(run);
    run.plan.dtype = DType::kBFloat16;
    const Trained narrow = test::trained_on_cpu(run);
    for (std::size_t i = 0; i < wide.reports.size(); ++i) {
      CHECK(narrow.reports[i].loss == Approx(wide.reports[i].loss).epsilon(1e-2));
    }
  }
}

TEST_CASE("owners balance the cost of updates") {
  const std::vector<int> owners = balanced_owners({5, 1, 4, 3, 3}, 2);
  CHECK(owners == std::vector<int>{0, 1, 1, 1, 0});
  CHECK(balanced_owners({7}, 3) == std::vector<int>{0});
  CHECK(balanced_owners({}, 2).empty());
}

}  // namespace tpsim
