// torchtitan: writes its command-line options, and reads them and its TOML.
#include "core/base/text.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/framework.h"
#include "frameworks/torchtitan/plan_module.h"
#include "frameworks/torchtitan/titan_options.h"

namespace tpsim {
namespace {

class TorchTitan final : public Framework {
 public:
  TorchTitan() : Framework(LaunchStack::kTorchTitan, Launcher::kTorchTitan) {}

  bool detects_script(std::string_view text) const override {
    for (const std::string_view part :
         {"--parallelism.", "--training.", "--job.config_file", "--job.config-file",
          "torchtitan.train", "torchtitan/train.py"}) {
      if (text.find(part) != std::string_view::npos) return true;
    }
    return false;
  }
  bool detects_settings(const std::vector<FlatSetting>& settings) const override {
    return has_key(settings, "training.seq_len") && has_prefix(settings, "model.");
  }
  Result<ImportedPlan> read_command(LaunchCommand command, const LaunchFile& script,
                                    const std::vector<LaunchFile>&,
                                    const ImportInputs& inputs) const override {
    return import_torchtitan_command(std::move(command), script, inputs);
  }
  Result<ImportedPlan> read_settings(const std::vector<FlatSetting>& settings,
                                     const LaunchFile& file,
                                     const ImportInputs& inputs) const override {
    return located(file, import_torchtitan(settings, inputs));
  }

  Result<std::vector<LaunchFile>> write(const PlanFile& file, const LaunchSize& size,
                                        const StackSpec&) const override {
    TPSIM_TRY(const LaunchOptions options, torchtitan_settings(file, size));
    TPSIM_TRY(const std::string changes, plan_changes(file));
    const std::string module = changes.empty() ? "" : plan_module_lines();
    return std::vector<LaunchFile>{shell_file(stack(), file, size, options, module)};
  }
  // The last argument is a word that must follow all options.
  std::string start_command(const ModelSpec&, const std::string& job) const override {
    return torchrun_command(job, "-m torchtitan.train", "\"$@\" \"${TRAIN_ARGS[@]}\"");
  }

  std::string_view judge() const override { return "torchtitan"; }
  // Adds the module of plan_module.h, and the properties by which the judge finds the model in the
  // registry.
  Status prepare_check(const std::vector<LaunchFile>& written, const ModelSpec& model,
                       JudgedFiles& judged) const override {
    TPSIM_TRY(const LaunchFile script, file_named(written, files().front()));
    judged.given.set("module", std::string(plan_module_in(script.text)));
    judged.given.set("model",
                     json_object({{"layers", model.layers},
                                  {"hidden", model.hidden},
                                  {"experts", has_experts(model) ? model.experts.count : 0}}));
    return Ok{};
  }
};

}  // namespace

const Framework& torchtitan() {
  static const TorchTitan framework;
  return framework;
}

}  // namespace tpsim
