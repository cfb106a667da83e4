// The host in a browser, using HTML5 events and WebGL 2. A search runs in a worker. Frames are
// drawn only after input and after messages of the worker.
#include <GLES3/gl3.h>
#include <backends/imgui_impl_opengl3.h>
#include <emscripten.h>
#include <emscripten/html5.h>
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>

#include "core/json/json_document.h"
#include "gui/panels/actions.h"
#include "gui/panels/keys.h"
#include "gui/panels/session.h"
#include "gui/views/answer.h"
#include "gui/views/facts.h"
#include "page/paths.h"
#include "page/presses.h"
#include "page/worker_search.h"

namespace tpsim::gui {
namespace {

constexpr const char* kCanvas = "#canvas";
constexpr int kFramesAfterInput = 4;  // frames to draw after input: hover and layout settle

void download(const std::filesystem::path& path) {
  EM_ASM({ give(UTF8ToString($0)); }, path.c_str());
}

// Executes requests in a page: opening a file shows a file chooser, and saving starts a download.
void perform_in_page(Request request, const ViewComputer& computer, AppState& state) {
  if (request == Request::kOpenFile) {
    EM_ASM({ chooseFile(); });
    return;
  }
  std::error_code code;
  if (request == Request::kExport) std::filesystem::remove_all(state.export_folder, code);
  perform(request, computer, state);
  if (state.notice_is_error || request == Request::kCopyCommand) return;
  if (request != Request::kExport) return download(state.view_file);
  for (const auto& entry : std::filesystem::directory_iterator(state.export_folder, code)) {
    download(entry.path());
  }
}

// Opens a file of the page's file system and displays its name without the path.
Status open_in_page(const std::filesystem::path& path, AppState& state) {
  TPSIM_TRY_STATUS(open_file(path, state));
  if (!state.opened_file.empty()) state.opened_file = path.filename().string();
  return Ok{};
}

const char* css_cursor() {
  switch (ImGui::GetMouseCursor()) {
    case ImGuiMouseCursor_TextInput: return "text";
    case ImGuiMouseCursor_ResizeEW: return "ew-resize";
    case ImGuiMouseCursor_Hand: return "pointer";
    default: return "default";
  }
}

class Page {
 public:
  explicit Page(AppState state) : session_(Catalogue(kCatalogue), search_, std::move(state)) {
    map_keys();
    session_.set_perform(perform_in_page);
    ImGui_ImplOpenGL3_Init("#version 300 es");
    ImGuiIO& io = ImGui::GetIO();
    io.MousePos = {-1, -1};
    io.SetClipboardTextFn = [](void*, const char* text) {
      EM_ASM({ navigator.clipboard&& navigator.clipboard.writeText(UTF8ToString($0)); }, text);
    };
  }

  // Draws frames in the next moments.
  void touch(int frames = kFramesAfterInput) {
    frames_left_ = std::max(frames_left_, frames);
    if (is_asleep_) emscripten_resume_main_loop();
    is_asleep_ = false;
  }
  WorkerSearch& search() { return search_; }
  Presses& presses() { return presses_; }
  void open(const char* path) {
    AppState& state = session_.state();
    const Status opened = open_in_page(path, state);
    state.notice = opened.ok() ? std::string("Opened ") + (path + 1) : to_string(opened.error());
    state.notice_is_error = !opened.ok();
    touch();
  }

  void frame() {
    const Views* const views = frames_drawn_ > 0 ? &session_.views() : nullptr;
    if (frames_left_ == 0 && views != nullptr && !views->is_pricing) {
      is_asleep_ = true;
      return emscripten_pause_main_loop();
    }
    if (frames_left_ > 0) --frames_left_;
    const auto [columns, rows] = fitted_canvas();
    const double now = emscripten_get_now() / 1000;
    const double seconds = std::clamp(now - last_, 1e-4, 0.1);
    last_ = now;
    session_.set_density(static_cast<float>(emscripten_get_device_pixel_ratio()));
    session_.frame(static_cast<float>(columns), static_cast<float>(rows),
                   static_cast<float>(seconds));
    if (presses_.settle()) touch();
    upload_atlas();
    const Rgba c = session_.colors().window;
    glViewport(0, 0, columns, rows);
    glClearColor(static_cast<float>(c.r) / 255, static_cast<float>(c.g) / 255,
                 static_cast<float>(c.b) / 255, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    EM_ASM({ document.getElementById('canvas').style.cursor = UTF8ToString($0); }, css_cursor());
    ++frames_drawn_;
    mark_times();
    write_text();
  }

  const char* facts_json() {
    JsonValue object = json_object({{"frames", frames_drawn_}});
    for (const auto& [name, value] : facts(session_.state(), session_.views())) {
      object.set(name, value);
    }
    for (const auto& [name, rect] : session_.items()) {
      object.set("at:" + name, fmt::format("{:.1f} {:.1f} {:.1f} {:.1f}", rect.min.x, rect.min.y,
                                           rect.max.x, rect.max.y));
    }
    facts_ = to_text(object);
    return facts_.c_str();
  }

 private:
  // Records the times of the first picture of a plan and of the end of its search, for
  // tests/page/page_speed.py.
  void mark_times() {
    const Views& views = session_.views();
    if (!has_shown_plan_ && views.a && !views.a->error) {
      has_shown_plan_ = true;
      EM_ASM({ performance.mark('tpsim-first'); });
    }
    if (!has_found_all_ && !views.is_searching && !views.is_pricing) {
      has_found_all_ = true;
      EM_ASM({ performance.mark('tpsim-found'); });
    }
  }

  // Writes the recommendation as text of the page, for screen readers, searches and printing.
  void write_text() {
    const Answer answer = answer_of(session_.views());
    std::string text;
    for (const std::string* one : {&answer.use, &answer.cost, &answer.limits, &answer.assumed,
                                   &answer.others, &answer.setup}) {
      if (!one->empty()) text += (text.empty() ? "" : "\n") + *one;
    }
    if (text == text_) return;
    text_ = std::move(text);
    EM_ASM({ document.getElementById('answer').textContent = UTF8ToString($0); }, text_.c_str());
  }

  // Resizes the canvas to the number of screen pixels that it covers, and returns the size.
  static std::array<int, 2> fitted_canvas() {
    const double ratio = emscripten_get_device_pixel_ratio();
    double width = 0, height = 0;
    emscripten_get_element_css_size(kCanvas, &width, &height);
    const std::array<int, 2> size = {static_cast<int>(width * ratio),
                                     static_cast<int>(height * ratio)};
    std::array<int, 2> before{};
    emscripten_get_canvas_element_size(kCanvas, &before[0], &before[1]);
    if (size != before) emscripten_set_canvas_element_size(kCanvas, size[0], size[1]);
    return size;
  }

  void upload_atlas() {
    if (uploaded_ == session_.atlas_revision()) return;
    uploaded_ = session_.atlas_revision();
    ImGui_ImplOpenGL3_DestroyFontsTexture();
    ImGui_ImplOpenGL3_NewFrame();
    if (ImGui::GetIO().Fonts->TexID == nullptr) ImGui_ImplOpenGL3_CreateFontsTexture();
  }

  WorkerSearch search_;
  Session session_;
  Presses presses_;
  std::string facts_, text_;
  double last_ = 0;
  int frames_left_ = kFramesAfterInput;
  int frames_drawn_ = 0;
  int uploaded_ = 0;
  bool is_asleep_ = false;  // the browser calls frame() only after touch()
  bool has_shown_plan_ = false, has_found_all_ = false;
};

// The page is global, because the exported C functions cannot receive a pointer to it.
std::unique_ptr<Page>& page() {
  static std::unique_ptr<Page> the_page;
  return the_page;
}

EM_BOOL on_mouse(int type, const EmscriptenMouseEvent* event, void*) {
  ImGuiIO& io = ImGui::GetIO();
  const auto ratio = static_cast<float>(emscripten_get_device_pixel_ratio());
  io.MousePos = {static_cast<float>(event->clientX) * ratio,
                 static_cast<float>(event->clientY) * ratio};
  constexpr int kImGuiButton[] = {0, 2, 1};  // the browser's order is left, middle, right
  if (event->button <= 2 && type != EMSCRIPTEN_EVENT_MOUSEMOVE) {
    page()->presses().set(io.MouseDown[kImGuiButton[event->button]],
                          type == EMSCRIPTEN_EVENT_MOUSEDOWN);
  }
  page()->touch();
  return type == EMSCRIPTEN_EVENT_MOUSEDOWN ? EM_FALSE : EM_TRUE;
}

EM_BOOL on_wheel(int, const EmscriptenWheelEvent* event, void*) {
  const double notch = event->deltaMode == DOM_DELTA_PIXEL  ? 0.01
                       : event->deltaMode == DOM_DELTA_LINE ? 1.0 / 3
                                                            : 1.0;
  ImGuiIO& io = ImGui::GetIO();
  double sideways = event->deltaX, down = event->deltaY;
  // Some browsers report the wheel as sideways while Shift is held.
  if (event->mouse.shiftKey && down == 0) std::swap(sideways, down);
  io.MouseWheel -= static_cast<float>(down * notch);
  io.MouseWheelH -= static_cast<float>(sideways * notch);
  page()->touch();
  return EM_TRUE;
}

// Returns the key number. A character is its own key name; other keys have the names of keys.cc.
int key_of(const EmscriptenKeyboardEvent* event) {
  std::string name = event->key;
  if (name.starts_with("Arrow")) name.erase(0, 5);
  if (name == " ") name = "Space";
  const Result<KeyChord> chord = parse_key(name);
  return chord.ok() ? chord->key : 0;
}

// Whether the browser handles the key: its zoom, all shortcuts but Ctrl+F, and the first Tab after
// Escape, which moves the focus out of the page.
bool is_browsers(const EmscriptenKeyboardEvent* event, int key) {
  static bool was_escape = false;
  const std::string name = event->key;
  const bool leaves = was_escape && name == "Tab";
  if (name != "Shift") was_escape = name == "Escape";
  const bool is_shortcut = event->ctrlKey || event->metaKey;
  return key == 0 || leaves || (is_shortcut && name != "f");
}

EM_BOOL on_key(int type, const EmscriptenKeyboardEvent* event, void*) {
  ImGuiIO& io = ImGui::GetIO();
  io.KeyCtrl = event->ctrlKey || event->metaKey;
  io.KeyShift = event->shiftKey;
  io.KeyAlt = event->altKey;
  const bool is_down = type == EMSCRIPTEN_EVENT_KEYDOWN;
  const int key = key_of(event);
  const std::string text = event->key;
  const bool is_zoom = io.KeyCtrl && (text == "=" || text == "+" || text == "-" || text == "0");
  const bool is_given_up = is_down && is_browsers(event, key);
  const bool is_tab = text == "Tab";
  if (key > 0 && key < IM_ARRAYSIZE(io.KeysDown) && !is_zoom && !(is_given_up && is_tab)) {
    page()->presses().set(io.KeysDown[key], is_down);
  }
  const bool is_character = text.size() == 1 || static_cast<unsigned char>(text[0]) >= 0x80;
  if (is_down && is_character && !io.KeyCtrl) io.AddInputCharactersUTF8(text.c_str());
  page()->touch();
  return is_down && !is_given_up ? EM_TRUE : EM_FALSE;
}

// Releases all keys, because the page does not receive key releases after it has lost the focus.
EM_BOOL on_blur(int, const EmscriptenFocusEvent*, void*) {
  ImGuiIO& io = ImGui::GetIO();
  std::fill(std::begin(io.KeysDown), std::end(io.KeysDown), false);
  std::fill(std::begin(io.MouseDown), std::end(io.MouseDown), false);
  io.KeyCtrl = io.KeyShift = io.KeyAlt = false;
  page()->touch();
  return EM_TRUE;
}

EM_BOOL on_resize(int, const EmscriptenUiEvent*, void*) {
  page()->touch();
  return EM_TRUE;
}

bool make_context() {
  EmscriptenWebGLContextAttributes attributes;
  emscripten_webgl_init_context_attributes(&attributes);
  attributes.majorVersion = 2;
  attributes.alpha = EM_FALSE;
  attributes.antialias = EM_FALSE;
  attributes.preserveDrawingBuffer = EM_TRUE;  // allows screenshots at any time
  const auto context = emscripten_webgl_create_context(kCanvas, &attributes);
  const bool is_current =
      context > 0 && emscripten_webgl_make_context_current(context) == EMSCRIPTEN_RESULT_SUCCESS;
  if (is_current) EM_ASM({ rememberState(GLctx); });
  return is_current;
}

void listen() {
  const char* const window = EMSCRIPTEN_EVENT_TARGET_WINDOW;
  emscripten_set_mousemove_callback(window, nullptr, EM_FALSE, on_mouse);
  emscripten_set_mousedown_callback(kCanvas, nullptr, EM_FALSE, on_mouse);
  emscripten_set_mouseup_callback(window, nullptr, EM_FALSE, on_mouse);
  emscripten_set_wheel_callback(kCanvas, nullptr, EM_FALSE, on_wheel);
  emscripten_set_keydown_callback(window, nullptr, EM_FALSE, on_key);
  emscripten_set_keyup_callback(window, nullptr, EM_FALSE, on_key);
  emscripten_set_blur_callback(window, nullptr, EM_FALSE, on_blur);
  emscripten_set_resize_callback(window, nullptr, EM_FALSE, on_resize);
}

AppState first_state() {
  AppState state;
  const bool is_dark = EM_ASM_INT({ return matchMedia('(prefers-color-scheme: dark)').matches; });
  state.theme = is_dark ? Theme::kDark : Theme::kLight;
  std::error_code code;
  if (!std::filesystem::exists(kPlan, code)) return state;
  const Status opened = open_in_page(kPlan, state);
  if (!opened.ok()) {
    state.notice = to_string(opened.error());
    state.notice_is_error = true;
  }
  const bool has_measured = std::filesystem::exists(kMeasured, code);
  state.measured_file = has_measured ? kMeasured : "";  // not the path that a view has
  if (has_measured) state.detail = DetailTab::kMeasured;
  EM_ASM(
      { document.title = UTF8ToString($0); },
      fmt::format("tpsim " TPSIM_VERSION ": {} on {} GPUs", state.choice.model, state.choice.gpus)
          .c_str());
  return state;
}

}  // namespace
}  // namespace tpsim::gui

extern "C" {

const char* tpsim_facts() { return tpsim::gui::page() ? tpsim::gui::page()->facts_json() : "{}"; }

void tpsim_open(const char* path) { tpsim::gui::page()->open(path); }

// Messages of the worker to the page.
void tpsim_progress(double share) {
  tpsim::gui::page()->search().hear_progress(share);
  tpsim::gui::page()->touch(1);
}
void tpsim_news(const char* message) {
  tpsim::gui::page()->search().hear_news(message);
  tpsim::gui::page()->touch();
}
void tpsim_failure(const char* reason) {
  tpsim::gui::page()->search().hear_failure(reason);
  tpsim::gui::page()->touch();
}

void tpsim_search(const char* request) { tpsim::gui::search_in_worker(request); }

void tpsim_paste(const char* text) {
  ImGui::GetIO().AddInputCharactersUTF8(text);
  tpsim::gui::page()->touch();
}
}

int main() {
  using namespace tpsim::gui;
  const bool is_worker = EM_ASM_INT({ return typeof document == 'undefined'; }) != 0;
  if (is_worker) return 0;  // tpsim_search() follows
  if (!make_context()) {
    EM_ASM({ say('This page needs WebGL 2, which this browser does not offer.'); });
    return 0;
  }
  page() = std::make_unique<Page>(first_state());
  listen();
  EM_ASM({ say(String()); });
  emscripten_set_main_loop([] { page()->frame(); }, 0, 0);
  return 0;
}
