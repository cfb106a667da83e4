// The overlaps of communication that Megatron-Bridge's comm_overlap section enables. Source:
// training/comm_overlap.py of Megatron-Bridge 067f987.
#include <fmt/format.h>

#include "core/base/text.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/nemo/nemo_run.h"

namespace tpsim {
namespace {

// Adds the overlap of transfers between pipeline stages, which a comm_overlap section sets: on with
// virtual stages.
void add_p2p_overlap(std::vector<FlatSetting>& settings) {
  constexpr const char* kStated = "comm_overlap.overlap_p2p_comm";
  if (has_key(settings, kStated)) return;
  const bool is_interleaved = !matches_any(
      setting_value(settings, "model.virtual_pipeline_model_parallel_size", "none"), "1 none");
  std::erase_if(settings,
                [](const FlatSetting& one) { return one.key == "model.overlap_p2p_comm"; });
  settings.push_back({kStated, is_interleaved ? "true" : "false", 0});
}

}  // namespace

void add_comm_overlap(std::vector<FlatSetting>& settings) {
  if (!has_key(settings, fmt::format("comm_overlap.{}", kMadeBy))) return;
  add_p2p_overlap(settings);
  const bool has_fsdp =
      is_on(settings, "ddp.use_megatron_fsdp") || is_on(settings, "dist.use_megatron_fsdp");
  if (setting_value(settings, "ddp.use_distributed_optimizer") == "false" && !has_fsdp) {
    // The section has no effect.
    std::erase_if(settings, [](const FlatSetting& one) {
      return matches_any(one.key,
                         "comm_overlap.overlap_grad_reduce comm_overlap.overlap_param_gather");
    });
    return;
  }
  std::string value = "true";  // the parameter overlap requires the gradient overlap
  for (const char* name : {"overlap_grad_reduce", "overlap_param_gather"}) {
    const std::string stated = setting_value(settings, fmt::format("comm_overlap.{}", name));
    if (!stated.empty()) value = stated;
    std::erase_if(settings, [&](const FlatSetting& one) {
      return one.key == fmt::format("comm_overlap.{}", name) ||
             one.key == fmt::format("ddp.{}", name);
    });
    settings.push_back({fmt::format("ddp.{}", name), value, 0});
  }
}

}  // namespace tpsim
