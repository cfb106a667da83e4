#include "gui/draw/picture.h"

#include <png.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/base/files.h"

namespace tpsim::gui {

Status write_png(const std::filesystem::path& path, const Picture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_RGB;
  std::vector<std::uint8_t> rgb;  // without transparency
  rgb.reserve(3 * picture.pixels.size());
  for (const Rgba& pixel : picture.pixels) rgb.insert(rgb.end(), {pixel.r, pixel.g, pixel.b});
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size = bytes.size();
  const int written =
      png_image_write_to_memory(&image, bytes.data(), &size, 0, rgb.data(), 0, nullptr);
  TPSIM_CHECK(written != 0, std::string("libpng refuses a picture: ") + image.message);
  bytes.resize(size);
  return write_file_atomically(path, bytes);
}

Result<Picture> read_png(const std::filesystem::path& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0) {
    return bad_input(std::string("is not a readable PNG file: ") + image.message, path.string());
  }
  image.format = PNG_FORMAT_RGBA;
  Picture picture(static_cast<int>(image.width), static_cast<int>(image.height), {});
  static_assert(sizeof(Rgba) == 4);
  if (png_image_finish_read(&image, nullptr, picture.pixels.data(), 0, nullptr) == 0) {
    png_image_free(&image);
    return bad_input(std::string("is not a readable PNG file: ") + image.message, path.string());
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
