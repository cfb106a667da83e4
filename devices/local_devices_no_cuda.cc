#include "devices/local_devices.h"

namespace tpsim::app {

Result<LocalDevices> cuda_devices() {
  return Error{ErrorKind::kMissing, "this build has no CUDA device", "--device cuda",
               "install the CUDA Toolkit, then configure with -DTPSIM_CUDA=ON and build again"};
}

}  // namespace tpsim::app
