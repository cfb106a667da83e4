// tpsim export: a plan as the launch files of a training stack.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <system_error>

#include "cli/answers.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/values.h"
#include "core/catalogue.h"
#include "core/files.h"
#include "stacks/launch_files.h"

namespace tpsim::cli {
namespace {

Status write_all(const std::filesystem::path& folder, const std::vector<LaunchFile>& files) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) {
    return option_error(
        Opt::kOutputFolder,
        fmt::format("cannot make the folder '{}': {}", folder.string(),
                    std::filesystem::exists(folder) ? "a file has that name" : code.message()));
  }
  std::string said;
  for (const LaunchFile& file : files) {
    TPSIM_TRY_STATUS(write_file_atomically(folder / file.name, file.text));
    said += fmt::format("wrote {}\n", printable((folder / file.name).string()));
  }
  return print(said);
}

}  // namespace

Result<LaunchStack> launch_stack_of(const Arguments& arguments, Opt opt) {
  if (arguments.has(opt)) return choice_of(arguments, opt, LaunchStack{});
  return option_error(opt, "is missing: which stack?",
                      fmt::format("{}", fmt::join(kWordsOf<LaunchStack>, ", ")));
}

Result<std::vector<LaunchFile>> export_answer(const Arguments& arguments, const PlanFile& file) {
  TPSIM_TRY(const LaunchStack stack, launch_stack_of(arguments, Opt::kTo));
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  say_changed_contents(arguments, catalogue, file);
  TPSIM_TRY(const ClusterSpec cluster, catalogue.load_cluster(file.cluster));
  TPSIM_TRY(const StackSpec software, catalogue.load_stack(file.stack));
  return export_plan(stack, file, host_size(cluster), software);
}

Status run_export(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY_STATUS(launch_stack_of(arguments, Opt::kTo));
  TPSIM_TRY(const auto file, read_plan_argument(arguments));
  if (!file) {
    return bad_input("which plan? No plan file was given", "export",
                     "tpsim plan ... --save plan.json writes one");
  }
  TPSIM_TRY(const std::vector<LaunchFile> files, export_answer(arguments, *file));
  if (arguments.has(Opt::kOutputFolder)) return write_all(*arguments[Opt::kOutputFolder], files);
  std::string text;
  for (const LaunchFile& launch : files) {
    if (files.size() > 1) text += terminal.paint("# " + launch.name, Ink::kDim) + "\n";
    text += launch.text;
  }
  return print(text);
}

}  // namespace tpsim::cli
