#include "gui/picture.h"

#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>

#include "core/files.h"

namespace tpsim::gui {

namespace {

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string chunk(const std::string& kind, const std::string& data) {
  const std::string body = kind + data;
  const auto* bytes = reinterpret_cast<const Bytef*>(body.data());
  const auto check = static_cast<std::uint32_t>(crc32(0, bytes, static_cast<uInt>(body.size())));
  return big_endian(static_cast<std::uint32_t>(data.size())) + body + big_endian(check);
}

// Rows of three bytes a pixel, each behind the number of its filter: none. Flat colours compress
// best without one.
std::string rows_of(const Picture& picture) {
  std::string rows;
  rows.reserve(picture.pixels.size() * 3 + static_cast<std::size_t>(picture.height));
  for (int y = 0; y < picture.height; ++y) {
    rows += '\0';
    for (int x = 0; x < picture.width; ++x) {
      const Rgba& pixel = picture.at(x, y);
      for (const std::uint8_t channel : {pixel.r, pixel.g, pixel.b}) {
        rows += static_cast<char>(channel);
      }
    }
  }
  return rows;
}

}  // namespace

Status write_png(const std::filesystem::path& path, const Picture& picture) {
  const std::string rows = rows_of(picture);
  uLongf size = compressBound(static_cast<uLong>(rows.size()));
  std::string packed(size, '\0');
  const int code =
      compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                reinterpret_cast<const Bytef*>(rows.data()), static_cast<uLong>(rows.size()), 9);
  TPSIM_CHECK(code == Z_OK, "zlib refuses a picture");
  packed.resize(size);
  const std::string eight_bits_rgb("\x08\x02\0\0\0", 5);
  const std::string header = big_endian(static_cast<std::uint32_t>(picture.width)) +
                             big_endian(static_cast<std::uint32_t>(picture.height)) +
                             eight_bits_rgb;
  return write_file_atomically(path, "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) +
                                         chunk("IDAT", packed) + chunk("IEND", ""));
}

Result<Picture> read_png(const std::filesystem::path& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0) {
    return Error{ErrorKind::kBadInput, std::string("cannot read it: ") + image.message,
                 path.string(), ""};
  }
  image.format = PNG_FORMAT_RGBA;
  Picture picture(static_cast<int>(image.width), static_cast<int>(image.height), {});
  static_assert(sizeof(Rgba) == 4);
  if (png_image_finish_read(&image, nullptr, picture.pixels.data(), 0, nullptr) == 0) {
    png_image_free(&image);
    return Error{ErrorKind::kBadInput, std::string("cannot read it: ") + image.message,
                 path.string(), ""};
  }
  return picture;
}

double difference(const Picture& a, const Picture& b, int tolerance) {
  if (a.width != b.width || a.height != b.height) return 1;
  std::size_t different = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) {
    const Rgba& x = a.pixels[i];
    const Rgba& y = b.pixels[i];
    const int most = std::max({std::abs(x.r - y.r), std::abs(x.g - y.g), std::abs(x.b - y.b)});
    if (most > tolerance) ++different;
  }
  return static_cast<double>(different) /
         static_cast<double>(std::max<std::size_t>(1, a.pixels.size()));
}

}  // namespace tpsim::gui
