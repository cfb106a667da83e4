// Classes of the terms of a step, for pictures and for the causes of a slow step.
#pragma once

#include <cstdint>

#include "core/plan/step_term.h"

namespace tpsim {

// kWaiting: for the host, for other ranks or for other stages.
enum class TermClass : std::uint8_t { kCompute, kCommunication, kWaiting, kUpdate };
inline constexpr int kTermClassCount = 4;
TermClass class_of(StepTerm term);

}  // namespace tpsim
