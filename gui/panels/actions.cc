#include "gui/panels/actions.h"

#include <fmt/format.h>

#include "core/base/files.h"
#include "core/json/json_document.h"
#include "core/scenario/plan_contents.h"
#include "core/scenario/plan_json.h"
#include "frameworks/launch/launch_files.h"
#include "gui/views/plan_command.h"
#include "gui/views/saved_view.h"

namespace tpsim::gui {
namespace {

// Each of the functions below returns a message for a completed action.
Result<std::string> save_view(const ViewComputer& computer, const AppState& state) {
  TPSIM_TRY_STATUS(
      write_file_atomically(state.view_file, to_text(view_to_json(state, computer.plan_file()))));
  return "Saved the view to " + state.view_file;
}

Result<std::string> save_plan(const ViewComputer& computer, const AppState& state) {
  const auto file = computer.plan_file();
  if (!file) return no_plan();
  TPSIM_TRY_STATUS(save_with_contents(state.view_file, *file));
  return "Saved the plan to " + state.view_file;
}

Result<std::string> open_named_file(AppState& state) {
  const std::string name = state.view_file;
  TPSIM_TRY_STATUS(open_file(name, state));
  return "Opened " + name;
}

Result<std::string> export_files(const ViewComputer& computer, const AppState& state) {
  const auto file = computer.plan_file();
  const ClusterSpec* const cluster = computer.cluster();
  if (!file || cluster == nullptr) return no_plan();
  const auto stack = static_cast<LaunchStack>(state.export_stack);
  TPSIM_TRY(
      const std::vector<LaunchFile> files,
      export_plan(stack, *file, launch_hosts(*cluster, gpu_count(file->plan)), computer.stack()));
  const std::filesystem::path folder = state.export_folder;
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) return bad_input("cannot be created as a folder: " + code.message(), folder.string());
  std::string names;
  for (const LaunchFile& launch : files) {
    TPSIM_TRY_STATUS(write_file_atomically(folder / launch.name, launch.text));
    names += (names.empty() ? "" : ", ") + launch.name;
  }
  return fmt::format("Wrote {} into {}", names, folder.string());
}

Result<std::string> copy_command(const ViewComputer& computer, const AppState& state) {
  TPSIM_TRY(const std::string command, shown_command(computer, state));
  ImGui::SetClipboardText(command.c_str());
  const bool is_as_it_is = state.choice.intra_node == 1;  // the command cannot state this factor
  return (is_as_it_is ? "Copied: "
                      : "Copied without the bandwidth factor inside a node, which a command cannot "
                        "state: ") +
         command;
}

Result<std::string> done_by(Request request, const ViewComputer& computer, AppState& state) {
  switch (request) {
    case Request::kSaveView: return save_view(computer, state);
    case Request::kSavePlan: return save_plan(computer, state);
    case Request::kOpenFile: return open_named_file(state);
    case Request::kCopyCommand: return copy_command(computer, state);
    case Request::kExport: return export_files(computer, state);
    case Request::kStopSearch:
    case Request::kSearch: break;  // performed by the session
  }
  return std::string();
}

}  // namespace

void perform(Request request, const ViewComputer& computer, AppState& state) {
  const Result<std::string> done = done_by(request, computer, state);
  state.notice_is_error = !done.ok();
  state.notice = done.ok() ? *done : to_string(done.error());
}

Status open_file(const std::filesystem::path& path, AppState& state) {
  TPSIM_TRY(const JsonValue root, read_json_file(path));
  if (is_view(root)) return read_view(root, path.string(), state);
  TPSIM_TRY(const PlanFile file, read_plan(path));
  show_plan(file, state);
  state.opened_file = path.string();
  return Ok{};
}

}  // namespace tpsim::gui
