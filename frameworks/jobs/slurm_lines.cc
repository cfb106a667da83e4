
#include "core/base/text.h"
#include "formats/shell_script.h"

namespace tpsim {

// Reads lines such as "#SBATCH --nodes=4" and "#SBATCH -N 4" into script.batch.
void read_batch_lines(std::string_view text, ShellScript& script) {
  while (!text.empty()) {
    std::string_view line = cut_off(text, "\n");
    if (!line.starts_with("#SBATCH")) continue;
    line = trimmed(line.substr(7));
    line = trimmed(line.substr(0, line.find('#')));
    const std::size_t dash = line.find_first_not_of('-');
    const std::size_t cut = line.find_first_of("= \t");
    if (dash == std::string_view::npos || cut == std::string_view::npos || cut < dash) continue;
    script.batch[std::string(line.substr(dash, cut - dash))] = trimmed(line.substr(cut + 1));
  }
}

// Sets the variables in which Slurm provides the job's size, such as SLURM_NNODES, from
// script.batch.
void set_slurm_variables(ShellScript& script) {
  const auto copy = [&](std::initializer_list<const char*> keys,
                        std::initializer_list<const char*> names) {
    for (const char* key : keys) {
      const auto found = script.batch.find(key);
      if (found == script.batch.end()) continue;
      const std::string value = found->second.substr(found->second.rfind(':') + 1);
      for (const char* name : names) script.variables.set(name, {value});
      return;
    }
  };
  copy({"nodes", "N"}, {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"});
  copy({"ntasks-per-node"}, {"SLURM_NTASKS_PER_NODE"});
  copy({"gpus-per-node", "gres"}, {"SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"});
}

}  // namespace tpsim
