// The font files of Inter, which CMake embeds in the program.
#include "gui/draw/fonts.h"

namespace tpsim::gui {

extern const std::span<const unsigned char> kInterRegular, kInterSemiBold;

FontFiles embedded_fonts() { return {kInterRegular, kInterSemiBold}; }

}  // namespace tpsim::gui
