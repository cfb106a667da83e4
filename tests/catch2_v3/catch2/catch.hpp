// Catch2 3 under the header and the names of Catch2 2, which the tests are written for: Debian 12 has
// version 2, Debian 13 version 3.
#pragma once

#include <catch2/catch_all.hpp>

namespace Catch {

using Matchers::EndsWith;
using Matchers::StartsWith;
inline auto Contains(const std::string& text) { return Matchers::ContainsSubstring(text); }

}  // namespace Catch

using Catch::Approx;
