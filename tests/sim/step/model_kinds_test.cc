// Every kind of model that files can describe is planned, or refused with a reason.
#include <catch2/catch.hpp>
#include <string>

#include "core/base/check.h"
#include "core/model/model_json.h"
#include "core/model/model_support.h"
#include "sim/step/simulate.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

// Checks that the model is planned or refused without a bug. Returns whether it is planned.
bool is_planned(const ModelSpec& model) {
  const Scenario scenario = test::small_scenario(model);
  Plan plan = test::plan_of(model, {.tp = 2, .dp = 2}, 2);
  plan.sequence_parallel = true;
  plan.attention = AttentionKind::kFlash;
  try {
    if (!check_plannable(model).ok()) return false;
    return simulate(scenario, plan).ok();
  } catch (const BugError& error) {
    FAIL_CHECK(error.what());
    return false;
  }
}

ModelSpec with_mlp(ModelSpec model, MlpKind mlp, const std::string& family) {
  model.mlp = mlp;
  model.mlp_limit = mlp == MlpKind::kClampedSwiglu ? 7 : 0;
  model.family = family;
  return model;
}

}  // namespace

TEST_CASE("models of every feed-forward kind and family are planned, with experts and without") {
  for (const MlpKind mlp : all_of<MlpKind>()) {
    for (const std::string family : {"", "gpt2", "bloom", "llama", "mixtral", "llama4_text",
                                     "gpt_oss", "starcoder2", "glm4", "unheard_of"}) {
      for (const ModelSpec& model :
           {test::small_bloom(), test::small_llama(), test::small_mixture()}) {
        INFO(model.name << " " << name_of(mlp) << " " << family);
        CHECK(is_planned(with_mlp(model, mlp, family)));
      }
    }
  }
}

TEST_CASE("models of every position, norm and place of norms are planned") {
  for (const std::string family : {"", "llama", "glm4"}) {
    for (const PositionKind position : all_of<PositionKind>()) {
      for (const NormKind norm : all_of<NormKind>()) {
        for (const NormPlace place : all_of<NormPlace>()) {
          for (const MlpKind mlp : {MlpKind::kGelu, MlpKind::kGeglu}) {
            ModelSpec model = with_mlp(test::small_llama(), mlp, family);
            model.attention.position = position;
            model.norm = norm;
            model.norm_place = place;
            INFO(family << " " << name_of(position) << " " << name_of(norm) << " " << name_of(place)
                        << " " << name_of(mlp));
            CHECK(is_planned(model));
          }
        }
      }
    }
  }
}

TEST_CASE("models of every norm of queries, latent, gate, sink and mixer are planned or refused") {
  std::int64_t planned = 0;
  for (const std::string family : {"", "bloom", "llama"}) {
    for (const MlpKind mlp : {MlpKind::kGelu, MlpKind::kGeglu}) {
      for (const QkNorm norm : all_of<QkNorm>()) {
        for (const MixerKind mixer : all_of<MixerKind>()) {
          for (int parts = 0; parts < 16; ++parts) {
            ModelSpec model = with_mlp(test::small_llama(), mlp, family);
            model.mixer = mixer;
            if (mixer != MixerKind::kAttention && mixer != MixerKind::kNone) {
              model.recurrent = {.heads = 8,
                                 .key_heads = 4,
                                 .key_dim = 32,
                                 .value_dim = 32,
                                 .convolution = 4,
                                 .chunk = 64};
            }
            AttentionShape& attention = model.attention;
            attention.qk_norm = norm;
            attention.score.sinks = (parts & 1) != 0;
            attention.output_gate = (parts & 2) != 0;
            model.fused_qkv = (parts & 8) != 0;
            if ((parts & 4) != 0) {
              attention.kv_heads = attention.heads;
              attention.head_dim = 48;
              attention.latent = {
                  .q_rank = 96, .kv_rank = 64, .nope_dim = 32, .rope_dim = 16, .value_dim = 32};
            }
            INFO(family << " " << name_of(mlp) << " " << name_of(norm) << " " << name_of(mixer)
                        << " " << parts);
            planned += is_planned(model) ? 1 : 0;
          }
        }
      }
    }
  }
  CHECK(planned > 100);
}

}  // namespace tpsim
