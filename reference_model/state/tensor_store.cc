#include "reference_model/state/tensor_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <sstream>

#include "core/base/checked_product.h"

namespace tpsim {
namespace {

constexpr std::string_view kPrefix = "transformer.";

std::string place_text(const BlockPlace& p) {
  return fmt::format("{} {} {} {}", p.global_rows, p.global_cols, p.row_begin, p.col_begin);
}

bool lies_inside(std::int64_t begin, std::int64_t size, std::int64_t whole) {
  return begin >= 0 && size <= whole && begin <= whole - size;
}

// Returns the position of a file's tensor in its global tensor, from the metadata if present. Empty
// if the position is invalid: outside the tensor, or too large for memory.
std::optional<BlockPlace> place_of(const SafetensorEntry& entry, const std::string* text) {
  BlockPlace p;
  p.rows = entry.shape.empty() ? 1 : entry.shape[0];
  if (entry.shape.size() > 1) {
    const auto cols = checked_product(std::span(entry.shape).subspan(1));
    if (!cols) return std::nullopt;
    p.cols = *cols;
  }
  p.global_rows = p.rows;
  p.global_cols = p.cols;
  if (text != nullptr) {
    std::istringstream numbers(*text);
    numbers >> p.global_rows >> p.global_cols >> p.row_begin >> p.col_begin;
    if (numbers.fail() || !(numbers >> std::ws).eof()) return std::nullopt;
  }
  const bool is_inside = lies_inside(p.row_begin, p.rows, p.global_rows) &&
                         lies_inside(p.col_begin, p.cols, p.global_cols);
  const bool is_countable =
      is_inside && checked_product({p.global_rows, p.global_cols, sizeof(float)}).has_value();
  return is_countable ? std::optional(p) : std::nullopt;
}

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return std::max<std::int64_t>(0, end - begin); }
};
struct Overlap {
  Range rows, cols;
  std::int64_t elements() const { return rows.size() * cols.size(); }
};
Overlap overlap(const BlockPlace& a, const BlockPlace& b) {
  const auto common = [](std::int64_t x, std::int64_t x_size, std::int64_t y, std::int64_t y_size) {
    return Range{std::max(x, y), std::min(x + x_size, y + y_size)};
  };
  return {common(a.row_begin, a.rows, b.row_begin, b.rows),
          common(a.col_begin, a.cols, b.col_begin, b.cols)};
}

}  // namespace

Status write_blocks(const std::filesystem::path& path, const std::vector<TensorBlock>& blocks) {
  std::vector<NamedFloats> tensors;
  std::map<std::string, std::string> metadata;
  for (const TensorBlock& block : blocks) {
    std::vector<std::int64_t> shape = {block.place.rows};
    if (block.is_matrix) shape.push_back(block.place.cols);
    tensors.push_back({block.name, shape, block.values});
    metadata[block.name] = place_text(block.place);
  }
  return write_safetensors(path, tensors, metadata);
}

Result<BlockReader> BlockReader::open(const std::filesystem::path& folder) {
  BlockReader reader;
  reader.folder_ = folder;
  std::error_code failed;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    if (entry.path().extension() == ".safetensors") paths.push_back(entry.path());
  }
  if (failed) return bad_input("cannot read the folder: " + failed.message(), folder.string());
  if (paths.empty()) return bad_input("the folder contains no .safetensors file", folder.string());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) TPSIM_TRY_STATUS(reader.add_file(path));
  return reader;
}

Status BlockReader::add_file(const std::filesystem::path& path) {
  TPSIM_TRY(SafetensorsFile file, SafetensorsFile::open(path));
  for (const auto& [stored, entry] : file.entries()) {
    std::string name = stored;
    if (name.compare(0, kPrefix.size(), kPrefix) == 0) name.erase(0, kPrefix.size());
    const auto text = file.metadata().find(stored);
    const auto place = place_of(entry, text == file.metadata().end() ? nullptr : &text->second);
    if (!place) {
      return bad_input(
          fmt::format("tensor '{}' has an invalid shape, or an invalid position in the full tensor",
                      stored),
          path.string());
    }
    parts_[name].push_back({files_.size(), stored, *place, entry.shape.size() > 1});
  }
  files_.push_back(std::move(file));
  return Ok{};
}

std::vector<std::string> BlockReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, parts] : parts_) names.push_back(name);
  return names;
}

// Checks that the parts have the region's global shape and cover the region: parts must not
// overlap, and must contain all elements of the region.
Status BlockReader::check_covered(const std::string& name, const std::vector<Part>& parts,
                                  const BlockPlace& region) const {
  const auto bad = [&](const std::string& why) {
    return bad_input(fmt::format("tensor '{}' {}", name, why), folder_.string());
  };
  std::int64_t missing = region.rows * region.cols;
  for (const Part& part : parts) {
    if (part.place.global_rows != region.global_rows ||
        part.place.global_cols != region.global_cols) {
      return bad(fmt::format("has shape [{}, {}], but the model needs [{}, {}]",
                             part.place.global_rows, part.place.global_cols, region.global_rows,
                             region.global_cols));
    }
    const auto meets = [&](const Part& other) {
      return &other != &part && overlap(part.place, other.place).elements() > 0;
    };
    if (std::any_of(parts.begin(), parts.end(), meets)) {
      return bad("has elements that are stored more than once");
    }
    missing -= overlap(part.place, region).elements();
  }
  if (missing > 0) return bad("is incomplete: some elements are in none of the files");
  return Ok{};
}

Status BlockReader::copy_part(const Part& part, const BlockPlace& region,
                              std::vector<float>& values) const {
  const auto [rows, cols] = overlap(part.place, region);
  if (rows.size() == 0 || cols.size() == 0) return Ok{};
  // Reads whole rows of the part and copies the requested columns.
  TPSIM_TRY(const std::vector<float> block,
            files_[part.file].read_floats(part.stored_name,
                                          (rows.begin - part.place.row_begin) * part.place.cols,
                                          rows.size() * part.place.cols));
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const auto from =
        block.begin() + (r - rows.begin) * part.place.cols + (cols.begin - part.place.col_begin);
    std::copy(
        from, from + cols.size(),
        values.begin() + (r - region.row_begin) * region.cols + (cols.begin - region.col_begin));
  }
  return Ok{};
}

Result<std::vector<float>> BlockReader::read(const std::string& name,
                                             const BlockPlace& region) const {
  const auto found = parts_.find(name);
  if (found == parts_.end()) {
    return bad_input(fmt::format("the checkpoint does not contain tensor '{}'", name),
                     folder_.string());
  }
  TPSIM_TRY_STATUS(check_covered(name, found->second, region));
  for (const Part& part : found->second) {
    TPSIM_TRY_STATUS(files_[part.file].check_floats(part.stored_name));
  }
  std::vector<float> values(static_cast<std::size_t>(region.rows * region.cols));
  for (const Part& part : found->second) TPSIM_TRY_STATUS(copy_part(part, region, values));
  return values;
}

Result<NamedFloats> BlockReader::read_whole(const std::string& name) const {
  const Part& part = parts_.at(name).front();
  BlockPlace whole{part.place.global_rows, part.place.global_cols, 0, part.place.global_rows, 0,
                   part.place.global_cols};
  TPSIM_TRY(std::vector<float> values, read(name, whole));
  std::vector<std::int64_t> shape = {whole.rows};
  if (part.is_matrix) shape.push_back(whole.cols);
  return NamedFloats{name, shape, std::move(values)};
}

}  // namespace tpsim
