#include "reference_model/training/training_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "core/json/json_document.h"
#include "core/model/model_fields.h"
#include "core/software/optimizer_kinds.h"
#include "reference_model/training/tokens.h"
#include "reference_model/training/training_run.h"

namespace tpsim {
namespace {

// Fields of the model that are not part of its identity, because they do not affect the weights.
constexpr std::array<std::string_view, 5> kBesideModel = {"name", "source", "seq", "hidden_dropout",
                                                          "attention_dropout"};

std::string plain_text(const JsonValue& value) {
  if (const auto* text = value.as<std::string>()) return *text;
  std::string text = to_text(value);
  text.pop_back();  // removes the newline
  return text;
}

void add_members(const JsonValue& object, const std::string& prefix, RunFacts& facts) {
  for (const JsonMember& member : *object.as<JsonValue::Object>()) {
    const bool is_beside =
        std::find(kBesideModel.begin(), kBesideModel.end(), member.key) != kBesideModel.end();
    if (prefix == kModelFact && is_beside) continue;
    if (member.value.as<JsonValue::Object>() != nullptr) {
      add_members(member.value, prefix + member.key + ".", facts);
    } else {
      facts.push_back({prefix + member.key, plain_text(member.value)});
    }
  }
}

std::string text(double number) { return fmt::format("{}", number); }

std::string precision_text(const Plan& plan) {
  std::string dtype(name_of(plan.dtype));
  if (plan.precision == Precision::kNone) return dtype;
  return fmt::format("{} with {}", dtype, name_of(plan.precision));
}

}  // namespace

RunFacts facts_of(const TrainingRun& run, const TokenSource& tokens) {
  RunFacts facts;
  add_members(json_from_spec(run.model, [](auto& io, auto& model) { model_fields(io, model); }),
              std::string(kModelFact), facts);
  const OptimizerSettings& optimizer = run.optimizer;
  const RunFacts rest = {
      {"seq", std::to_string(run.model.seq)},
      {"hidden dropout", text(run.model.hidden_dropout)},
      {"attention dropout", text(run.model.attention_dropout)},
      {"dtype", precision_text(run.plan)},
      {"gradient dtype", std::string(name_of(run.plan.gradient_dtype))},
      {"global batch", std::to_string(run.plan.global_batch)},
      {"optimizer", std::string(row_of(run.options.optimizer_kind).title)},
      {"lr", text(optimizer.rate)},
      {"betas", text(optimizer.beta1) + "," + text(optimizer.beta2)},
      {"eps", text(optimizer.epsilon)},
      {"weight decay", text(optimizer.weight_decay)},
      {"clip grad", text(optimizer.clip_norm)},
      {"seed", std::to_string(run.seed)},
      {"tokens", tokens.description()},
  };
  std::copy(rest.begin(), rest.end(), std::back_inserter(facts));
  if (run.options.optimizer_kind == OptimizerKind::kMuon) {
    facts.push_back({"momentum", text(optimizer.momentum)});
    facts.push_back({"muon tp mode", std::string(name_of(run.options.muon_tp_mode))});
  }
  return facts;
}

}  // namespace tpsim
