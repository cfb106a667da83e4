// Writers and readers of Slurm and Kubernetes jobs.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/scenario/plan_file.h"
#include "frameworks/launch/shell_files.h"

namespace tpsim {

// Writers of job files. The first of `files` is the launcher's shell script, which becomes part of
// the job file.
std::vector<LaunchFile> reference_job(const PlanFile& file, const LaunchSize& size);
std::vector<LaunchFile> slurm_job(LaunchStack own, const PlanFile& file, const LaunchSize& size,
                                  std::vector<LaunchFile> files);
std::vector<LaunchFile> kubernetes_job(LaunchStack own, const PlanFile& file,
                                       const LaunchSize& size,
                                       const std::vector<LaunchFile>& files);
// The launch files that a job starts.
struct JobContents {
  LaunchStack stack{};
  std::vector<LaunchFile> files;
};
// Returns the launch files inside the job, under the names that their stack gives them.
Result<JobContents> contents_of_job(LaunchStack job, const std::vector<LaunchFile>& files);
// Returns the files of the Slurm job that the Kubernetes files embed.
Result<std::vector<LaunchFile>> files_of_kubernetes(const std::vector<LaunchFile>& files);

}  // namespace tpsim
