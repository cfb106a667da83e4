#include "core/report.h"

namespace tpsim {

Bytes StageMemory::total() const {
  Bytes sum = context + fragmentation;
  for (const Bytes bytes : by_category) sum += bytes;
  return sum;
}

std::string_view name_of(Provenance provenance) {
  switch (provenance) {
    case Provenance::kMeasuredHere: return "measured";
    case Provenance::kPublished: return "published";
    case Provenance::kDatasheet: return "datasheet";
  }
  return "?";
}

}  // namespace tpsim
