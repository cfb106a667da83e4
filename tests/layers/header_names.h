// The types and free functions that a header gives a name at the level of a namespace. No parser of
// C++: it tells them apart by their tokens, as headers in the style of this project allow.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tpsim {

struct HeaderName {
  // With its namespace: "tpsim::gui::Axis"; for a function with the types of its parameters,
  // without their names and defaults: "tpsim::name_of(DType)".
  std::string name;
  int line = 0;
};

// Types that are defined (not those that are only announced), aliases, and functions, in their
// order. What stands in a class or an unnamed namespace is not among them.
std::vector<HeaderName> header_names(std::string_view text);

}  // namespace tpsim
