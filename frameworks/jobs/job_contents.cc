// The launch files inside a job.
#include "frameworks/launch/job_files.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {
namespace {

using Files = std::vector<LaunchFile>;

// Returns the stack of a job script: determined by the accompanying files if possible, otherwise by
// its text.
LaunchStack stack_of_job(const LaunchFile& job, const Files& files) {
  if (file_named(files, kDeepSpeedConfigFile).ok()) {
    const bool is_trainer = job.text.find("--per_device_train_batch_size") != std::string::npos;
    return is_trainer ? LaunchStack::kDeepSpeed : LaunchStack::kMegatronDeepSpeed;
  }
  if (file_named(files, kNemoYamlFile).ok()) return LaunchStack::kNemo;
  if (file_named(files, kNanotronYamlFile).ok()) return LaunchStack::kNanotron;
  if (file_named(files, kAccelerateYamlFile).ok()) return LaunchStack::kAccelerate;
  return stack_of_text(job.text);
}

}  // namespace

Result<JobContents> contents_of_job(LaunchStack job, const Files& files) {
  if (job == LaunchStack::kKubernetes) {
    TPSIM_TRY(const Files slurm, files_of_kubernetes(files));
    return contents_of_job(LaunchStack::kSlurm, slurm);
  }
  TPSIM_TRY(const LaunchFile script, file_named(files, kSlurmFile));
  JobContents inside{stack_of_job(script, files), files};
  for (LaunchFile& file : inside.files) {
    if (file.name != kSlurmFile) continue;
    file.path = path_of(file);
    file.name = launch_file_names(inside.stack).front();
  }
  return inside;
}

}  // namespace tpsim
