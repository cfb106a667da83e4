// Default relative standard deviations of predicted times by cause, for stacks and clusters without
// calibration.
#pragma once

namespace tpsim {

inline constexpr double kModelSpread = 0.05;  // computed prices, measured device constants
// Computed prices with device constants from a datasheet or a similar device.
inline constexpr double kDatasheetSpread = 0.12;
inline constexpr double kInterpolatedSpread = 0.02;  // prices between measured sizes
inline constexpr double kHostSpread = 0.12;          // host time: other CPUs, versions and settings
// Network time: other topologies, neighboring jobs and settings.
inline constexpr double kNetworkSpread = 0.2;
// Kernel time: sizes outside the fit of a stack's factor.
inline constexpr double kKernelSpread = 0.1;
// Step time with software that was calibrated on another table of runs.
inline constexpr double kForeignSpread = 0.08;

}  // namespace tpsim
