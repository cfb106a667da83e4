// Results of `calibrate` as text.
#pragma once

#include <string>

#include "app/answers/calibrate_answer.h"
#include "cli/options/options.h"
#include "cli/options/terminal.h"

namespace tpsim::cli {

std::string calibration_text(const Terminal& terminal, const Arguments& arguments,
                             const CalibrationAnswer& answer);

}  // namespace tpsim::cli
