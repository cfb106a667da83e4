// Parts of a model that a launch file does not train, or that a prediction does not have.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/text.h"
#include "core/software/launched_models.h"
#include "frameworks/launch/launch_command.h"
#include "frameworks/launch/megatron_options.h"

namespace tpsim {

void leave_out_flash_dropout(std::vector<LaunchOption>& options, ImportedPlan& plan) {
  if (plan.model.attention_dropout == 0 || !runs_flash(options)) return;
  plan.model.attention_dropout = 0;
  put_setting(options, "--attention-dropout", "0");
  plan.notes.emplace_back(kNoFlashDropout);
}

void leave_out_shared_overlap(std::vector<LaunchOption>& options, ImportedPlan& plan) {
  constexpr const char* kOverlap = "--moe-shared-expert-overlap";
  if (!drop_settings(options, kOverlap) || plan.model.experts.shared_ffn == 0) return;
  plan.notes.push_back(
      fmt::format("{}: the prediction does not overlap the shared expert with the dispatch, so the "
                  "step time is an upper bound",
                  kOverlap));
}

std::string unmodelled_savings_note(const std::vector<std::string>& names) {
  return fmt::format("tpsim does not model {}: the predicted step and memory are upper bounds",
                     fmt::join(names, ", "));
}

void leave_out_savings(std::vector<LaunchOption>& options, ImportedPlan& plan) {
  std::vector<std::string> found;
  for (const char* name :
       {"--use-nccl-ub", "--fsdp-double-buffer", "--fsdp-manual-registration",
        "--overlap-p2p-communication-warmup-flush", "--reuse-grad-buf-for-mxfp8-param-ag",
        "--quantize.linear.float8.enable_fsdp_float8_all_gather"}) {
    if (drop_settings(options, name)) found.emplace_back(name);
  }
  if (!found.empty()) plan.notes.push_back(unmodelled_savings_note(found));
}

void leave_out_predictions(bool is_trained, ImportedPlan& plan) {
  std::int64_t& layers = plan.model.ends.prediction_layers;
  if (is_trained || layers == 0) return;
  plan.notes.push_back(
      fmt::format("the prediction leaves out {}'s {} of multi-token prediction (MTP), because the "
                  "file does not enable MTP",
                  plan.model.name.empty() ? "the model" : plan.model.name,
                  layers == 1 ? "layer" : fmt::format("{} layers", layers)));
  layers = 0;
}

bool is_text_training(std::string_view program) {
  program.remove_prefix(std::min(program.rfind('/') + 1, program.size()));
  return program.empty() || matches_any(program, "pretrain_gpt.py pretrain_hybrid.py");
}

void leave_out_encoders(ImportedPlan& plan) {
  std::vector<std::string> names;
  std::erase_if(plan.model.ends.parts, [&](const OuterPart& part) {
    if (is_encoder(part)) names.push_back(part.name);
    return is_encoder(part);
  });
  if (names.empty()) return;
  plan.notes.push_back(
      fmt::format("the prediction leaves out {}'s encoder ({}), because pretrain_gpt.py trains the "
                  "text model",
                  plan.model.name, fmt::join(names, ", ")));
}

}  // namespace tpsim
