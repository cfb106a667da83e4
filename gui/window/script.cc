#include "gui/window/script.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "core/base/text.h"
#include "gui/panels/keys.h"
#include "gui/views/facts.h"

namespace tpsim::gui {
namespace {

struct ActionRow {
  std::string_view name;
  std::size_t least, most;  // number of words after the name
};
constexpr std::array<ActionRow, 13> kActions = {{
    {"size", 2, 2},
    {"click", 1, 2},
    {"double-click", 1, 1},
    {"move", 1, 3},
    {"slide", 2, 2},
    {"drag", 5, 6},
    {"wheel", 2, 4},
    {"press", 1, 2},
    {"type", 1, 1},
    {"wait", 0, 1},
    {"expect", 2, 3},
    {"screenshot", 1, 1},
    {"theme", 1, 1},
}};

Result<std::vector<std::string>> words_of(std::string_view line, const std::string& where) {
  std::vector<std::string> words;
  std::size_t i = 0;
  while (i < line.size() && line[i] != '#') {
    if (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
      ++i;
      continue;
    }
    if (line[i] == '"') {
      const std::size_t end = line.find('"', i + 1);
      if (end == std::string_view::npos) return bad_input("a quote is not closed", where);
      words.emplace_back(line.substr(i + 1, end - i - 1));
      i = end + 1;
      continue;
    }
    const std::size_t end = std::min(line.find_first_of(" \t\r", i), line.size());
    words.emplace_back(line.substr(i, end - i));
    i = end;
  }
  return words;
}

Status check_action(const ScriptLine& line, const std::string& where) {
  const auto index = choose("action", line.words.front(), texts_of(kActions, &ActionRow::name));
  if (!index.ok()) return bad_input(index.error().message, where, index.error().hint);
  const std::size_t given = line.words.size() - 1;
  const ActionRow& row = kActions[*index];
  if (given >= row.least && given <= row.most) return Ok{};
  return bad_input(fmt::format("the action '{}' takes {} to {} words, not {}", row.name, row.least,
                               row.most, given),
                   where, "docs/gui.md lists the actions");
}

double number_in(const std::string& word) { return std::strtod(word.c_str(), nullptr); }

class Runner {
 public:
  Runner(const std::string& file, const std::filesystem::path& folder, ScriptHost& host)
      : file_(file), folder_(folder), host_(host) {}

  Status run(const ScriptLine& line) {
    words_ = &line.words;
    Status status = act();
    if (status.ok()) return status;
    Error error = status.error();
    error.where = fmt::format("{}:{}", file_, line.number);
    return error;
  }

 private:
  const std::string& word(std::size_t i) const { return (*words_)[i]; }
  bool has(std::size_t i) const { return words_->size() > i; }
  double number(std::size_t i, double otherwise) const {
    return has(i) ? number_in(word(i)) : otherwise;
  }

  Status act() {
    const std::string& action = word(0);
    if (action == "size") {
      host_.resize(static_cast<int>(number(1, 0)), static_cast<int>(number(2, 0)));
      return frames(3), Ok{};
    }
    if (action == "click") return click(1);
    if (action == "double-click") return click(2);
    if (action == "move") return move_to(word(1), number(2, 0.5), number(3, 0.5));
    if (action == "slide") return slide();
    if (action == "drag") return drag();
    if (action == "wheel") return wheel();
    if (action == "press") return press();
    if (action == "type") return type();
    if (action == "wait") return wait();
    if (action == "expect") return expect();
    if (action == "theme") {
      host_.session().state().theme = word(1) == "dark" ? Theme::kDark : Theme::kLight;
      return frames(2), Ok{};
    }
    return screenshot();
  }

  void frames(int count) {
    for (int i = 0; i < count; ++i) host_.frame();
  }

  Result<Rect> place_of(const std::string& label) const {
    const Items& items = host_.session().items();
    if (const auto found = items.find(label); found != items.end()) return found->second;
    const std::string near = nearest(label, texts_of(items, &Items::value_type::first));
    return bad_input(fmt::format("the screen has no element '{}'", label), "",
                     near.empty() ? "" : "did you mean '" + near + "'?");
  }

  // Scrolls to a control that its panel does not show.
  void show(const std::string& label) {
    const TabStops& stops = host_.session().stops();
    const auto stop = std::find_if(stops.begin(), stops.end(),
                                   [&](const TabStop& one) { return one.label == label; });
    if (stop != stops.end() && scroll_to(*stop)) frames(2);
  }

  Status move_to(const std::string& label, double x, double y) {
    show(label);
    TPSIM_TRY(const Rect rect, place_of(label));
    ImGui::GetIO().MousePos = {rect.min.x + static_cast<float>(x) * rect.width(),
                               rect.min.y + static_cast<float>(y) * rect.height()};
    return frames(2), Ok{};
  }

  int button_of(std::size_t i) const {
    if (!has(i)) return 0;
    return word(i) == "right" ? 1 : word(i) == "middle" ? 2 : 0;
  }

  // Press and release are in different frames, because ImGui does not detect a click otherwise.
  Status click(int times) {
    TPSIM_TRY_STATUS(move_to(word(1), 0.5, 0.5));
    bool& is_down = ImGui::GetIO().MouseDown[times == 1 ? button_of(2) : 0];
    for (int i = 0; i < times; ++i) {
      is_down = true;
      frames(1);
      is_down = false;
      frames(1);
    }
    return frames(2), Ok{};
  }

  Status drag_over(const std::string& label, ImVec2 from, ImVec2 to, int button) {
    constexpr int kFrames = 8;
    show(label);
    TPSIM_TRY(const Rect rect, place_of(label));
    const auto at = [&](float share) {
      const float x = from.x + (to.x - from.x) * share, y = from.y + (to.y - from.y) * share;
      return ImVec2{rect.min.x + x * rect.width(), rect.min.y + y * rect.height()};
    };
    ImGuiIO& io = ImGui::GetIO();
    io.MousePos = at(0);
    frames(2);
    io.MouseDown[button] = true;
    frames(1);
    for (int i = 1; i <= kFrames; ++i) {
      io.MousePos = at(static_cast<float>(i) / kFrames);
      frames(1);
    }
    io.MouseDown[button] = false;
    return frames(3), Ok{};
  }

  Status slide() {
    return drag_over(word(1), {0.5F, 0.5F}, {static_cast<float>(number(2, 0.5)), 0.5F}, 0);
  }

  Status drag() {
    const auto share = [&](std::size_t i) { return static_cast<float>(number(i, 0.5)); };
    return drag_over(word(1), {share(2), share(3)}, {share(4), share(5)}, button_of(6));
  }

  Status wheel() {
    TPSIM_TRY_STATUS(move_to(word(1), number(3, 0.5), number(4, 0.5)));
    const double notches = number(2, 0);
    for (int i = 0; i < static_cast<int>(std::abs(notches)); ++i) {
      ImGui::GetIO().MouseWheel = notches > 0 ? 1.0F : -1.0F;
      frames(1);
    }
    return frames(1), Ok{};
  }

  Status press() {
    TPSIM_TRY(const KeyChord chord, parse_key(word(1)));
    ImGuiIO& io = ImGui::GetIO();
    io.KeyCtrl = chord.ctrl;
    io.KeyShift = chord.shift;
    io.KeysDown[chord.key] = true;
    frames(std::max(1, static_cast<int>(number(2, 1))));
    io.KeysDown[chord.key] = false;
    io.KeyCtrl = io.KeyShift = false;
    return frames(2), Ok{};
  }

  Status type() {
    ImGui::GetIO().AddInputCharactersUTF8(word(1).c_str());
    return frames(2), Ok{};
  }

  Status wait() {
    if (has(1)) return frames(static_cast<int>(number(1, 1))), Ok{};
    TPSIM_TRY_STATUS(wait_for_search(host_));
    return frames(2), Ok{};
  }

  Status expect() {
    frames(1);
    Session& session = host_.session();
    const auto all = facts(session.state(), session.views());
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const auto& fact) { return fact.first == word(1); });
    if (found == all.end()) {
      const auto names = texts_of(all, &std::pair<std::string, std::string>::first);
      const auto known = choose("fact", word(1), names);
      return bad_input(known.error().message, "", known.error().hint);
    }
    const bool has_op = has(3);
    const std::string& wanted = word(has_op ? 3 : 2);
    const std::string op = has_op ? word(2) : "is";
    const double left = number_in(found->second), right = number_in(wanted);
    const bool is_true = op == "is"    ? found->second == wanted
                         : op == "not" ? found->second != wanted
                         : op == "<"   ? left < right
                         : op == ">"   ? left > right
                                       : false;
    if (is_true) return Ok{};
    return bad_input(
        fmt::format("expected {} {} {}, but it is '{}'", word(1), op, wanted, found->second), "",
        op == "is" || op == "not" || op == "<" || op == ">" ? ""
                                                            : "valid operators: is, not, <, >");
  }

  Status screenshot() {
    frames(1);
    const std::filesystem::path path = folder_ / word(1);
    return write_png(path, host_.picture());
  }

  const std::string& file_;
  const std::filesystem::path& folder_;
  ScriptHost& host_;
  const std::vector<std::string>* words_ = nullptr;
};

}  // namespace

Result<std::vector<ScriptLine>> parse_script(std::string_view text, const std::string& file) {
  std::vector<ScriptLine> lines;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string where = fmt::format("{}:{}", file, number);
    TPSIM_TRY(std::vector<std::string> words, words_of(text.substr(0, end), where));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty()) continue;
    lines.push_back({number, std::move(words)});
    TPSIM_TRY_STATUS(check_action(lines.back(), where));
  }
  return lines;
}

Status run_script(const std::vector<ScriptLine>& lines, const std::string& file,
                  const std::filesystem::path& folder, ScriptHost& host) {
  Runner runner(file, folder, host);
  for (const ScriptLine& line : lines) TPSIM_TRY_STATUS(runner.run(line));
  return Ok{};
}

Status wait_for_search(ScriptHost& host) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kPatience = std::chrono::minutes(2);
  const auto start = Clock::now();
  host.frame();
  while (host.session().needs_frames()) {
    if (Clock::now() - start > kPatience) {
      return bad_input("the search did not end within two minutes");
    }
    host.frame();
  }
  host.frame();
  return Ok{};
}

}  // namespace tpsim::gui
