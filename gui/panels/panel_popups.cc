// Popups of the buttons in the top bar: export, files, help.

#include <fmt/format.h>

#include <array>
#include <optional>

#include "frameworks/launch/framework.h"
#include "frameworks/launch/launch_files.h"
#include "gui/panels/panels.h"

namespace tpsim::gui {
namespace {

void text_field(Ui& ui, const char* label, std::string& value, float width) {
  std::array<char, 512> text{};
  value.copy(text.data(), text.size() - 1);
  ImGui::SetNextItemWidth(width);
  ImGui::PushID(label);
  if (ImGui::InputText("##text", text.data(), text.size())) value = text.data();
  ImGui::PopID();
  note_item(ui, label);
}

void ask(Ui& ui, Request request) {
  ui.requests.push_back(request);
  ImGui::CloseCurrentPopup();
}

// Returns the launch stack of the plan's software; empty if tpsim cannot write launch files for it.
std::optional<LaunchStack> own_launcher(const Ui& ui) {
  if (!ui.views.scenario) return std::nullopt;
  const Framework* const own = framework_of(ui.views.scenario->stack.launcher);
  return own == nullptr ? std::nullopt : std::optional(own->stack());
}

void draw_export(Ui& ui) {
  ImGui::TextUnformatted("Write plan A as launch files for");
  for (int i = 0; i < kLaunchStackCount; ++i) {
    const std::string name(name_of(static_cast<LaunchStack>(i)));
    ImGui::RadioButton(name.c_str(), &ui.state.export_stack, i);
    note_item(ui, name);
  }
  const std::optional<LaunchStack> own = own_launcher(ui);
  const auto chosen = static_cast<LaunchStack>(ui.state.export_stack);
  if (ui.views.scenario && own != chosen) {
    ImGui::PushTextWrapPos(ui.px(300));
    ImGui::TextUnformatted(
        fmt::format("The prediction is for {}. The step time with {} may differ.",
                    ui.views.names.stack, name_of(chosen))
            .c_str());
    ImGui::PopTextWrapPos();
  }
  ImGui::TextUnformatted("into the folder");
  text_field(ui, "export folder", ui.state.export_folder, ui.px(240));
  if (button(ui, "Write files",
             "Write the files, or show why this framework cannot express the plan.")) {
    ask(ui, Request::kExport);
  }
}

void draw_files(Ui& ui) {
  ImGui::TextUnformatted("File");
  text_field(ui, "file name", ui.state.view_file, ui.px(280));
  if (button(ui, "Save view",
             "Save the inputs, both plans, the zoom and the colors, to continue later.")) {
    ask(ui, Request::kSaveView);
  }
  ImGui::SameLine();
  if (button(ui, "Save plan", "Save plan A as a plan file, which other tpsim commands read."))
    ask(ui, Request::kSavePlan);
  ImGui::SameLine();
  if (button(ui, "Open", "Open a saved view, or a plan file of tpsim plan --save.")) {
    ask(ui, Request::kOpenFile);
  }
}

struct KeyHelp {
  const char* keys;
  const char* meaning;
};
constexpr std::array<KeyHelp, 16> kKeys = {{
    {"wheel, W, S", "zoom the timeline at the pointer (Ctrl finer, Shift coarser)"},
    {"right drag, sideways wheel, A, D", "pan"},
    {"left drag", "measure a time"},
    {"middle drag", "zoom to the dragged range"},
    {"double click", "zoom to an op"},
    {"0", "show the whole step"},
    {"C", "show the critical path"},
    {"K", "show the kernels and memory of a stage"},
    {"Ctrl+F", "find in the timeline; Enter goes to the first match"},
    {"N", "go to the next match"},
    {"Tab, arrows", "go from control to control; Space presses, Enter edits"},
    {"Ctrl+Z, Ctrl+Y", "undo and redo a change of the plan"},
    {"Ctrl++, Ctrl+−", "enlarge or shrink the interface"},
    {"= before a time", "tie: the best plan is faster with less than 90 % probability"},
    {"A, B", "blue: the selected plan; orange: the plan pinned for comparison"},
    {"F1", "show this help"},
}};

void draw_help(Ui& ui) {
  if (!ui.state.shows_help) return;
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({screen.x / 2, screen.y / 2}, ImGuiCond_Always, {0.5F, 0.5F});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ImGui::GetStyleColorVec4(ImGuiCol_PopupBg));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(ui.px(20), ui.px(16)));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1.0F);
  ImGui::Begin("help", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_AlwaysAutoResize |
                   ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings);
  ImGui::PushFont(ui.fonts.bold);
  ImGui::TextUnformatted("Keys and mouse");
  ImGui::PopFont();
  ImGui::Spacing();
  if (ImGui::BeginTable("keys", 2, ImGuiTableFlags_SizingFixedFit)) {
    for (const KeyHelp& key : kKeys) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      ImGui::PushFont(ui.fonts.bold);
      ImGui::TextUnformatted(key.keys);
      ImGui::PopFont();
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(key.meaning);
    }
    ImGui::EndTable();
  }
  if (button(ui, "Close help", "")) ui.state.shows_help = false;
  ImGui::SameLine();
  ImGui::TextUnformatted("tpsim " TPSIM_VERSION);
  ImGui::End();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
}

// Draws a popup below the button that opened it.
template <class Body>
void popup(Ui& ui, const char* name, const char* opener, Body body) {
  if (const auto found = ui.items.find(opener); found != ui.items.end()) {
    const Rect& rect = found->second;
    ImGui::SetNextWindowPos({rect.max.x, rect.max.y + ui.px(4)}, ImGuiCond_Always, {1, 0});
  }
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(ui.px(14), ui.px(12)));
  if (ImGui::BeginPopup(name)) {
    body(ui);
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace

void open_export(Ui& ui) {
  if (const auto own = own_launcher(ui)) ui.state.export_stack = static_cast<int>(*own);
  ImGui::OpenPopup("export");
}

void draw_popups(Ui& ui) {
  popup(ui, "export", "Export", draw_export);
  popup(ui, "files", "Save", draw_files);
  draw_help(ui);
}

}  // namespace tpsim::gui
