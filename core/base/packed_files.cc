#include "core/base/packed_files.h"

#include <zlib.h>

#include "core/base/check.h"

namespace tpsim {
namespace {

constexpr int kRawDeflate = -15;  // for zlib: largest window, no header

}  // namespace

std::string unpacked(const PackedFile& file) {
  std::string text(file.bytes, '\0');
  const auto packed = packed_bytes().subspan(file.offset, file.packed_bytes);
  z_stream stream{};
  stream.next_in = const_cast<unsigned char*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<unsigned char*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  const bool ready = inflateInit2(&stream, kRawDeflate) == Z_OK;
  const bool whole = ready && inflate(&stream, Z_FINISH) == Z_STREAM_END;
  if (ready) inflateEnd(&stream);
  TPSIM_CHECK(whole && stream.total_out == text.size(), "a packed file does not unpack");
  return text;
}

}  // namespace tpsim
