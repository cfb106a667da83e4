// The current date.
#pragma once

#include <string>

namespace tpsim {

// Returns the date in UTC: "2026-11-23".
std::string utc_date();

}  // namespace tpsim
