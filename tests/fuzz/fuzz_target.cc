#include "tests/fuzz/fuzz_target.h"

#include <cstdio>
#include <cstdlib>

namespace tpsim::fuzz {

std::span<const FuzzTarget> targets() {
  static const std::vector<FuzzTarget> all = {
      {"model", read_model, {"data/models", "tests/golden/bloom-tiny/config.json"}},
      {"cluster", read_cluster, {"data/clusters"}},
      {"stack", read_stack, {"data/stacks"}},
      {"profile", read_profile, {"tests/cli/files/data/profiles"}},
      {"plan_file", read_plan_file},
      {"assumptions", read_assumption_file, {"data/campaigns"}},
      {"json", read_json_text, {"tests/cli/files/hostile"}},
      {"view", read_saved_view},
      {"values", read_values},
      {"run_table", read_run_table_text, {"tests/cli/files/runs.csv"}},
      {"log", read_log, {"tests/cli/files/logs"}},
      {"launch_files", read_launch_files},
      {"script",
       read_script,
       {"tests/frameworks/launch/scripts", "tests/frameworks/launch/programs"}},
      {"program", read_program, {"tests/frameworks/launch/programs"}},
      {"configuration", read_configuration, {"tests/frameworks/launch/configs"}},
      {"command_line", read_command_line},
      {"launcher", read_launcher_variables},
      {"safetensors", read_safetensors},
      {"tokens", read_tokens},
      {"checkpoint", read_checkpoint},
      {"manifest", read_manifest},
      {"rendezvous", answer_caller},
      {"predict_inputs", predict_inputs},
      {"predict_drawn", predict_drawn},
  };
  return all;
}

void demand(bool holds, const char* law) {
  if (holds) return;
  std::fprintf(stderr, "broken law: %s\n", law);
  std::abort();
}

}  // namespace tpsim::fuzz
