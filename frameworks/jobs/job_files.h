// Writers and readers of Slurm and Kubernetes jobs, and of manifests that people wrote.
#pragma once

#include <vector>

#include "frameworks/launch/framework.h"

namespace tpsim {

inline constexpr const char* kPlanFile = "plan.json";

// Writers of job files. The first of `files` is the launcher's shell script, which becomes part of
// the job file.
std::vector<LaunchFile> reference_job(const PlanFile& file, const LaunchSize& size);
std::vector<LaunchFile> slurm_job(const Framework& own, const PlanFile& file,
                                  const LaunchSize& size, std::vector<LaunchFile> files);
std::vector<LaunchFile> kubernetes_job(const Framework& own, const PlanFile& file,
                                       const LaunchSize& size,
                                       const std::vector<LaunchFile>& files);

// The files of the Slurm job that Kubernetes files embed: the script of the containers under the
// name of a Slurm job, and the files of ConfigMaps.
struct KubernetesFiles {
  std::vector<LaunchFile> files;
  std::int64_t gpus = 0;
};
Result<KubernetesFiles> files_of_kubernetes(const std::vector<LaunchFile>& files);

}  // namespace tpsim
