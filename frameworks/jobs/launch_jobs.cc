// Writes job files that embed the launch files of a stack: a script for Slurm, or a JobSet for
// Kubernetes. Kueue schedules the JobSet if its label names a queue.
//
// manifests.cc reads these files.
#include <fmt/format.h>

#include "core/base/text.h"
#include "core/scenario/plan_json.h"
#include "frameworks/jobs/job_files.h"
#include "frameworks/launch/launcher.h"

namespace tpsim {

extern const std::span<const unsigned char> kJobSet;  // jobset.txt

namespace {

using Files = std::vector<LaunchFile>;

constexpr const char* kTrainer = "node";  // name of the JobSet's only group of pods

// Returns the model's name as a job name: other characters than letters, digits, '-', '_' and '.'
// become '-'.
std::string job_name(std::string name) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  for (char& c : name) {
    if (kPlain.find(c) == std::string_view::npos) c = '-';
  }
  return name.empty() ? "tpsim" : name;
}

// Returns the name as a DNS label, which Kubernetes requires. Labels have at most 63 characters.
// The limit of 40 leaves room for the suffix with the pod's number.
std::string label_of(std::string name) {
  constexpr std::size_t kMost = 40;
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (!plain) c = '-';
  }
  if (name.size() > kMost) name.resize(kMost);
  while (!name.empty() && name.back() == '-') name.pop_back();
  const bool letter = !name.empty() && name.front() >= 'a' && name.front() <= 'z';
  return letter ? name : "job-" + name + (name.empty() ? "tpsim" : "");
}

struct NodeUse {
  std::int64_t tasks = 1;
  bool gpus = true;
};

std::string job_head(const PlanFile& file, const LaunchSize& size, const NodeUse& use) {
  std::string gpus = use.gpus ? fmt::format("#SBATCH --gres=gpu:{}\n", size.gpus_per_node) : "";
  // Slurm's topology/block then places the hosts of a segment in one NVLink domain.
  const std::int64_t hosts = size.domain_gpus / size.gpus_per_node;
  if (use.gpus && hosts > 1) gpus += fmt::format("#SBATCH --segment={}\n", hosts);
  return fmt::format(
      "#!/bin/bash\n"
      "#SBATCH --job-name={}\n#SBATCH --nodes={}\n#SBATCH --ntasks-per-node={}\n"
      "{}#SBATCH --exclusive\n#SBATCH --output=%x-%j.out\n\nset -e\n",
      job_name(file.model.name), size.nodes, use.tasks, gpus);
}

std::string indented(const std::string& text, std::size_t by) {
  std::string out;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = cut_off(rest, "\n");
    if (!line.empty()) out += std::string(by, ' ') + std::string(line);
    out += '\n';
  }
  return out;
}

// Returns the JobSet of jobset.txt.
std::string jobset_text(const std::string& name, const LaunchSize& size, const std::string& script,
                        bool has_files) {
  const std::pair<std::string_view, std::string> values[] = {
      {"{name}", name},
      {"{trainer}", kTrainer},
      {"{nodes}", std::to_string(size.nodes)},
      {"{gpus}", std::to_string(size.gpus_per_node)},
      {"{nics}", std::to_string(size.nics)}};
  const bool has_rdma = size.nodes > 1 && size.nics > 0;
  std::string text;
  std::string_view rest = as_text(kJobSet);
  while (!rest.empty()) {
    std::string line(cut_off(rest, "\n"));
    if (line.starts_with('#')) continue;
    if (line == "{script}") {
      text += indented(script, 22);
      continue;
    }
    if (line.starts_with('?')) {
      const std::size_t end = line.find(' ');
      if (line.substr(1, end - 1) == "rdma" ? !has_rdma : !has_files) continue;
      line.erase(0, end + 1);
    }
    for (const auto& [place, value] : values) {
      const std::size_t at = line.find(place);
      if (at != std::string::npos) line.replace(at, place.size(), value);
    }
    text += line + '\n';
  }
  return text;
}

}  // namespace

// Writes a Slurm job for tpsim's own ranks. NCCL ranks rendezvous through Slurm, CPU ranks through
// MPI.
Files reference_job(const PlanFile& file, const LaunchSize& size) {
  const bool on_cores = is_version_of(file.stack, "reference-cpu");
  const char* const command = on_cores ? "srun --mpi=pmix --cpu-bind=cores tpsim run plan.json\n"
                                       : "srun tpsim run plan.json --device cuda\n";
  return {{kSlurmFile,
           job_head(file, size, {.tasks = size.gpus_per_node, .gpus = !on_cores}) + command},
          {kPlanFile, to_json(file)}};
}

// Writes a Slurm job with one task per node, which starts the node's ranks with torchrun, as in
// BLOOM's training.
Files slurm_job(const Framework& own, const PlanFile& file, const LaunchSize& size, Files files) {
  const std::string start = own.start_command(file.model, "\"$SLURM_JOB_ID\"");
  files.front() = {
      kSlurmFile,
      job_head(file, size, {}) + without_shell_line(files.front().text) +
          "MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
          "# Add options of data, tokenizer, optimizer and checkpoints: sbatch job.slurm "
          "--data-path ...\n"
          "srun --wait=60 --kill-on-bad-exit=1 " +
          start};
  return files;
}

Files kubernetes_job(const Framework& own, const PlanFile& file, const LaunchSize& size,
                     const Files& files) {
  const std::string name = label_of(file.model.name);
  const bool has_files = files.size() > 1;
  std::string script = "set -e\n" + without_shell_line(files.front().text);
  if (has_files) script += "cp /launch/* .\n";
  script += fmt::format("MASTER_ADDR={0}-{1}-0-0.{0}\n", name, kTrainer);
  script += "# Add options of data, tokenizer, optimizer and checkpoints.\n" +
            own.start_command(file.model, name);
  Files out = {{kJobSetFile, jobset_text(name, size, script, has_files)}};
  if (!has_files) return out;
  std::string map =
      fmt::format("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {}\ndata:\n", name);
  for (std::size_t i = 1; i < files.size(); ++i) {
    map += fmt::format("  {}: |\n{}", files[i].name, indented(files[i].text, 4));
  }
  out.push_back({kConfigMapFile, map});
  return out;
}

}  // namespace tpsim
