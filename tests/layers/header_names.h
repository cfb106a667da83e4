// Types and free functions that a header declares at namespace level. Not a C++ parser: it
// distinguishes them by tokens, which suffices for the style of this project.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tpsim {

struct HeaderName {
  // With namespace: "tpsim::gui::Axis". Functions have the types of their parameters, without names
  // and defaults: "tpsim::name_of(DType)".
  std::string name;
  int line = 0;
};

// Returns defined types (not forward declarations), aliases and functions, in order. Excludes
// members of classes and of unnamed namespaces.
std::vector<HeaderName> header_names(std::string_view text);

}  // namespace tpsim
