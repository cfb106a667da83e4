#include "gui/window/window.h"

// ImGui's loader finds OpenGL at run time, so that the program is not linked to OpenGL.
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_opengl3.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "gui/panels/key_queue.h"
#include "gui/window/background_search.h"

namespace tpsim::gui {
namespace {

constexpr unsigned kColorBuffer = 0x4000, kRgba = 0x1908, kUnsignedByte = 0x1401,
                   kPackAlign = 0x0D05;

// OpenGL functions that this file calls in addition to ImGui's backend.
struct OpenGl {
  void (*viewport)(int, int, int, int);
  void (*clear_color)(float, float, float, float);
  void (*clear)(unsigned);
  void (*read_pixels)(int, int, int, int, unsigned, unsigned, void*);
  void (*pixel_store)(unsigned, int);

  template <class Function>
  static void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(glfwGetProcAddress(name));  // NOLINT
  }
  static OpenGl loaded() {
    OpenGl gl{};
    load(gl.viewport, "glViewport");
    load(gl.clear_color, "glClearColor");
    load(gl.clear, "glClear");
    load(gl.read_pixels, "glReadPixels");
    load(gl.pixel_store, "glPixelStorei");
    return gl;
  }
};

std::string last_glfw_error() {
  const char* text = nullptr;
  glfwGetError(&text);
  return text != nullptr ? text : "no reason given";
}

Error no_window(const std::string& what) {
  return Error{ErrorKind::kMissing, what + ": " + last_glfw_error(), "tpsim gui",
               "without a display, write a picture with --screenshot out.png"};
}

constexpr const char* kTitle = "tpsim " TPSIM_VERSION;

// Owns GLFW and its single window.
class Window {
 public:
  static Result<std::unique_ptr<Window>> open(const StartOptions& options) {
    if (glfwInit() == GLFW_FALSE) return no_window("no window can be opened");
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    GLFWwindow* window = glfwCreateWindow(options.width, options.height, kTitle, nullptr, nullptr);
    if (window == nullptr) {
      const Error error = no_window("no window with OpenGL 3.3 can be opened");
      glfwTerminate();
      return error;
    }
    return std::unique_ptr<Window>(new Window(window));
  }
  ~Window() {
    glfwDestroyWindow(window_);
    glfwTerminate();
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  GLFWwindow* get() const { return window_; }
  const OpenGl& gl() const { return gl_; }

 private:
  explicit Window(GLFWwindow* window) : window_(window) {
    glfwMakeContextCurrent(window_);
    glfwSetInputMode(window_, GLFW_STICKY_MOUSE_BUTTONS, GLFW_TRUE);  // keep short clicks
    glfwSwapInterval(1);
    gl_ = OpenGl::loaded();
  }
  GLFWwindow* window_;
  OpenGl gl_{};
};

class WindowHost : public ScriptHost {
 public:
  WindowHost(Window& window, Catalogue catalogue, AppState state)
      : window_(window),
        search_([] { glfwPostEmptyEvent(); }),
        session_(std::move(catalogue), search_, std::move(state)) {
    ImGui_ImplGlfw_InitForOpenGL(window.get(), true);
    // Replaces the backend's key callbacks, which lose a key that is pressed and released within
    // one frame.
    glfwSetWindowUserPointer(window.get(), &keys_);
    glfwSetKeyCallback(window.get(), [](GLFWwindow* from, int key, int, int action, int) {
      if (action != GLFW_REPEAT) queue_of(from).add_key(key, action == GLFW_PRESS);
    });
    glfwSetCharCallback(window.get(), [](GLFWwindow* from, unsigned character) {
      queue_of(from).add_character(character);
    });
    ImGui_ImplOpenGL3_Init("#version 330");
  }
  ~WindowHost() override {
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
  }
  WindowHost(const WindowHost&) = delete;
  WindowHost& operator=(const WindowHost&) = delete;

  Session& session() override { return session_; }
  void resize(int width, int height) override { glfwSetWindowSize(window_.get(), width, height); }

  void frame() override {
    glfwPollEvents();
    int width = 0, height = 0, pixels = 0, rows = 0;
    glfwGetWindowSize(window_.get(), &width, &height);
    glfwGetFramebufferSize(window_.get(), &pixels, &rows);
    const double now = glfwGetTime();
    const double seconds = std::clamp(now - last_, 1e-4, 0.1);
    last_ = now;
    keep_mouse();
    keys_.pass_to(ImGui::GetIO());
    ImGui::GetIO().DisplayFramebufferScale = {1, 1};
    // One point of the interface is one pixel. On high-density screens the interface is scaled by
    // the screen's density.
    float density = 1;
    glfwGetWindowContentScale(window_.get(), &density, nullptr);
    session_.set_density(std::max(1.0F, std::round(density * 8) / 8));
    session_.frame(static_cast<float>(pixels), static_cast<float>(rows),
                   static_cast<float>(seconds));
    upload_atlas();
    const Rgba c = session_.colors().window;
    window_.gl().viewport(0, 0, pixels, rows);
    window_.gl().clear_color(static_cast<float>(c.r) / 255, static_cast<float>(c.g) / 255,
                             static_cast<float>(c.b) / 255, 1);
    window_.gl().clear(kColorBuffer);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    glfwSwapBuffers(window_.get());
  }

  Picture picture() override {
    int width = 0, height = 0;
    glfwGetFramebufferSize(window_.get(), &width, &height);
    Picture picture(width, height, {});
    window_.gl().pixel_store(kPackAlign, 1);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    window_.gl().read_pixels(0, 0, width, height, kRgba, kUnsignedByte, picture.pixels.data());
    for (int y = 0; y < height / 2; ++y) {  // OpenGL's first row is at the bottom
      for (int x = 0; x < width; ++x) std::swap(picture.at(x, y), picture.at(x, height - 1 - y));
    }
    return picture;
  }

  bool is_open() const { return glfwWindowShouldClose(window_.get()) == GLFW_FALSE; }

  // Sleeps until there is input or a search result, unless frames must be drawn.
  void wait_for_work() {
    if (session_.is_animated() || !keys_.is_empty()) {
      return glfwWaitEventsTimeout(1.0 / 60);
    }
    glfwWaitEvents();
  }

 private:
  // Reads the pointer and the mouse buttons here, so that a script can set them instead. The wheel
  // is reported by the backend's callbacks.
  void keep_mouse() {
    if (is_scripted_) return;
    double x = 0, y = 0;
    glfwGetCursorPos(window_.get(), &x, &y);
    ImGuiIO& io = ImGui::GetIO();
    io.MousePos = {static_cast<float>(x), static_cast<float>(y)};
    for (int i = 0; i < 3; ++i) {
      io.MouseDown[i] = glfwGetMouseButton(window_.get(), i) == GLFW_PRESS;
    }
  }

  void upload_atlas() {
    if (uploaded_ == session_.atlas_revision()) return;
    uploaded_ = session_.atlas_revision();
    ImGui_ImplOpenGL3_DestroyFontsTexture();
    ImGui_ImplOpenGL3_NewFrame();
  }

  static KeyQueue& queue_of(GLFWwindow* window) {
    return *static_cast<KeyQueue*>(glfwGetWindowUserPointer(window));
  }

  Window& window_;
  KeyQueue keys_;
  BackgroundSearch search_;
  Session session_;
  double last_ = 0;
  int uploaded_ = 0;

 public:
  bool is_scripted_ = false;
};

}  // namespace

Status run_window(Catalogue catalogue, AppState state, const StartOptions& options,
                  const std::function<Status(ScriptHost&)>& script) {
  TPSIM_TRY(const std::unique_ptr<Window> window, Window::open(options));
  WindowHost host(*window, std::move(catalogue), std::move(state));
  if (!options.script.empty()) {
    host.is_scripted_ = true;
    return script(host);
  }
  while (host.is_open()) {
    for (int i = 0; i < 3; ++i) host.frame();
    host.wait_for_work();
  }
  return Ok{};
}

}  // namespace tpsim::gui
