// Paths in the file system of the WebAssembly program, which page/page.html fills.
#pragma once

namespace tpsim::gui {

inline constexpr const char* kCatalogue = "/tpsim";
inline constexpr const char* kPlan = "/tpsim/plan.json";
inline constexpr const char* kMeasured = "/tpsim/measured.json";

}  // namespace tpsim::gui
