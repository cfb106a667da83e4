// Standard deviations of what a prediction hangs on, as long as nobody has measured there: of the
// sum, relative.
#pragma once

namespace tpsim {

inline constexpr double kHostSpread = 0.12;    // other processors, versions and settings
inline constexpr double kNetworkSpread = 0.2;  // other topology, neighbours and settings
inline constexpr double kKernelSpread = 0.1;   // of sizes that a stack's factor was not fitted on
// Software that was calibrated on runs of another table than the one it is held against.
inline constexpr double kForeignSpread = 0.08;

}  // namespace tpsim
