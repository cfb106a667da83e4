// A link between GPUs, and its fields in cluster and profile files.
#pragma once

#include <string>

#include "core/base/units.h"

namespace tpsim {

// `efficiency` is the share of the stated bandwidth that large collectives reach; `latency` is the
// time of one hop of a small message.
struct LinkSpec {
  std::string kind;          // "nvlink3 through nvswitch", "4 x omni-path 100"
  BytesPerSecond bandwidth;  // one direction; per GPU inside a node, per NIC between nodes
  Seconds latency;
  double efficiency = 1.0;
};

inline constexpr auto kLinkFields = [](auto& io, auto& link) {
  io.text("kind", link.kind);
  io.quantity("bandwidth", link.bandwidth);
  io.quantity("latency", link.latency);
  io.number("efficiency", link.efficiency, {1e-6, 1});
  io.require(link.bandwidth.value() > 0, "bandwidth", "it must be above zero");
};

}  // namespace tpsim
