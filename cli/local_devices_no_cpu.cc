#include "cli/local_devices.h"

namespace tpsim::cli {

Result<LocalDevices> cpu_devices() {
  return Error{ErrorKind::kMissing, "this build has no CPU device", "--device cpu",
               "apt-get install libdnnl-dev, then configure and build again"};
}

}  // namespace tpsim::cli
