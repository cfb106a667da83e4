#include "gui/draw/picture.h"

#include <png.h>

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

}  // namespace tpsim::gui
