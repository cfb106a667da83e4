#include "ranks/world.h"

#include "kernels/device.h"

namespace tpsim {

Status outcome_of(World& world, const RankBody& body) {
  try {
    return body(world);
  } catch (const OutOfDeviceMemory& error) {
    return Error{ErrorKind::kDoesNotFit, error.what(), "", ""};
  } catch (const CommunicatorAborted& error) {  // another rank is gone, or cannot be reached
    return Error{ErrorKind::kMissing, error.what(), "", ""};
  } catch (const std::exception& error) {
    return Error{ErrorKind::kBug, error.what(), "", ""};
  }
}

}  // namespace tpsim
