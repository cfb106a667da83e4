// The host without a window. Frames are 1/60 s apart, and pictures are rendered on the CPU.
#pragma once

#include "gui/window/script.h"

namespace tpsim::gui {

class WindowlessHost : public ScriptHost {
 public:
  WindowlessHost(Catalogue catalogue, AppState state, int width, int height);

  Session& session() override { return session_; }
  void frame() override;
  void resize(int width, int height) override;
  Picture picture() override;

 private:
  FrameSearchHost search_;
  Session session_;
  int width_, height_;
};

}  // namespace tpsim::gui
