// Default relative standard deviations of the causes of uncertainty, until measured.
#pragma once

namespace tpsim {

inline constexpr double kHostSpread = 0.12;    // other processors, versions and settings
inline constexpr double kNetworkSpread = 0.2;  // other topology, neighbours and settings
inline constexpr double kKernelSpread = 0.1;   // sizes outside the fit of a stack's factor
// Software calibrated on runs of another table.
inline constexpr double kForeignSpread = 0.08;

}  // namespace tpsim
