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
  io.text({"kind", "name of the link, e.g. NVLink 4 or InfiniBand NDR"}, link.kind);
  io.quantity(
      {"bandwidth", "bandwidth in one direction: per GPU inside a node, per NIC between nodes"},
      link.bandwidth);
  io.quantity({"latency", "time of one hop of a small message"}, link.latency);
  io.number({"efficiency", "share of the bandwidth that large messages achieve"}, link.efficiency,
            {1e-6, 1});
  io.require(link.bandwidth.value() > 0, "bandwidth", "it must be above zero");
};

}  // namespace tpsim
