// The label of ops issued by tests.
#pragma once

#include "core/program/label.h"

namespace tpsim::test {

inline constexpr Label kTest{ModelPart::kMeasurement, "test"};

}  // namespace tpsim::test
