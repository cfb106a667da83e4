// The web build embeds no files: the page stores its data in its own file system (page/page.html).
#include "core/base/check.h"
#include "core/base/packed_files.h"

namespace tpsim {

std::span<const PackedFile> packed_files() { return {}; }
std::span<const unsigned char> packed_bytes() { return {}; }
std::string unpacked(const PackedFile& file) {
  TPSIM_CHECK(false, "a page has no packed file");
  return std::string(file.name);
}

}  // namespace tpsim
