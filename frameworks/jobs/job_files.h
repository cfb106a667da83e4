// Writers and readers of Slurm and Kubernetes jobs.
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
// Returns the files of the Slurm job that the Kubernetes files embed.
Result<std::vector<LaunchFile>> files_of_kubernetes(const std::vector<LaunchFile>& files);

}  // namespace tpsim
