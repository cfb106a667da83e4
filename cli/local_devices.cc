#include "cli/local_devices.h"

#include <fmt/format.h>

namespace tpsim {

Result<LocalDevices> local_devices(std::string_view device) {
  if (device == "cpu") return cpu_devices();
  if (device == "cuda") return cuda_devices();
  return Error{ErrorKind::kBadInput, fmt::format("unknown device '{}'", device), "--device",
               "use cpu or cuda"};
}

}  // namespace tpsim
