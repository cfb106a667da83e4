#include "gui/panels/keys.h"

#include <imgui.h>

#include <array>
#include <cctype>

#include "core/base/text.h"

namespace tpsim::gui {
namespace {

struct NamedKey {
  std::string_view name;
  int code;
  ImGuiKey key;
};
constexpr std::array<NamedKey, 15> kNamedKeys = {{{"Tab", 258, ImGuiKey_Tab},
                                                  {"Left", 263, ImGuiKey_LeftArrow},
                                                  {"Right", 262, ImGuiKey_RightArrow},
                                                  {"Up", 265, ImGuiKey_UpArrow},
                                                  {"Down", 264, ImGuiKey_DownArrow},
                                                  {"PageUp", 266, ImGuiKey_PageUp},
                                                  {"PageDown", 267, ImGuiKey_PageDown},
                                                  {"Home", 268, ImGuiKey_Home},
                                                  {"End", 269, ImGuiKey_End},
                                                  {"Delete", 261, ImGuiKey_Delete},
                                                  {"Backspace", 259, ImGuiKey_Backspace},
                                                  {"Space", 32, ImGuiKey_Space},
                                                  {"Enter", 257, ImGuiKey_Enter},
                                                  {"Escape", 256, ImGuiKey_Escape},
                                                  {"F1", 290, ImGuiKey_COUNT}}};
// Letters of ImGui's own shortcuts in text fields.
constexpr std::array<std::pair<char, ImGuiKey>, 6> kLetters = {{{'A', ImGuiKey_A},
                                                                {'C', ImGuiKey_C},
                                                                {'V', ImGuiKey_V},
                                                                {'X', ImGuiKey_X},
                                                                {'Y', ImGuiKey_Y},
                                                                {'Z', ImGuiKey_Z}}};

}  // namespace

Result<KeyChord> parse_key(std::string_view name) {
  KeyChord chord;
  if (name.starts_with("Ctrl+")) chord.ctrl = true, name.remove_prefix(5);
  if (name.starts_with("Shift+")) chord.shift = true, name.remove_prefix(6);
  if (name.size() == 1) {
    chord.key = std::toupper(static_cast<unsigned char>(name.front()));
    return chord;
  }
  TPSIM_TRY(const std::size_t index, choose("key", name, texts_of(kNamedKeys, &NamedKey::name)));
  chord.key = kNamedKeys[index].code;
  return chord;
}

void map_keys() {
  ImGuiIO& io = ImGui::GetIO();
  for (const NamedKey& named : kNamedKeys) {
    if (named.key != ImGuiKey_COUNT) io.KeyMap[named.key] = named.code;
  }
  for (const auto& [letter, key] : kLetters) io.KeyMap[key] = static_cast<unsigned char>(letter);
}

}  // namespace tpsim::gui
