#include "reference_model/tensor_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace tpsim {
namespace {

constexpr std::string_view kPrefix = "transformer.";

std::string place_text(const BlockPlace& p) {
  return fmt::format("{} {} {} {}", p.global_rows, p.global_cols, p.row_begin, p.col_begin);
}

// A part of the file itself, or of a larger tensor where the metadata says so.
BlockPlace place_of(const SafetensorEntry& entry, const std::string* text) {
  BlockPlace p;
  p.rows = entry.shape.empty() ? 1 : entry.shape[0];
  for (std::size_t i = 1; i < entry.shape.size(); ++i) p.cols *= entry.shape[i];
  p.global_rows = p.rows;
  p.global_cols = p.cols;
  if (text != nullptr) {
    long long values[4] = {};
    if (std::sscanf(text->c_str(), "%lld %lld %lld %lld", values, values + 1, values + 2,
                    values + 3) == 4) {
      p.global_rows = values[0];
      p.global_cols = values[1];
      p.row_begin = values[2];
      p.col_begin = values[3];
    }
  }
  return p;
}

struct Overlap {
  std::int64_t begin = 0, end = 0;
};
Overlap overlap(std::int64_t a, std::int64_t a_size, std::int64_t b, std::int64_t b_size) {
  return {std::max(a, b), std::min(a + a_size, b + b_size)};
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
  if (failed) {
    return Error{ErrorKind::kBadInput, "cannot read the folder: " + failed.message(),
                 folder.string(), ""};
  }
  if (paths.empty()) {
    return Error{ErrorKind::kBadInput, "the folder holds no .safetensors file", folder.string(),
                 ""};
  }
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
    parts_[name].push_back(
        {files_.size(), stored,
         place_of(entry, text == file.metadata().end() ? nullptr : &text->second),
         entry.shape.size() > 1});
  }
  files_.push_back(std::move(file));
  return Ok{};
}

std::vector<std::string> BlockReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, parts] : parts_) names.push_back(name);
  return names;
}

Result<std::vector<float>> BlockReader::read(const std::string& name,
                                             const BlockPlace& region) const {
  const auto bad = [&](const std::string& why) {
    return Error{ErrorKind::kBadInput, fmt::format("tensor '{}': {}", name, why), folder_.string(),
                 ""};
  };
  const auto found = parts_.find(name);
  if (found == parts_.end()) return bad("not in the checkpoint");
  std::vector<float> values(static_cast<std::size_t>(region.rows * region.cols));
  std::int64_t filled = 0;
  for (const Part& part : found->second) {
    if (part.place.global_rows != region.global_rows ||
        part.place.global_cols != region.global_cols) {
      return bad(fmt::format("has shape [{}, {}], the model needs [{}, {}]", part.place.global_rows,
                             part.place.global_cols, region.global_rows, region.global_cols));
    }
    const Overlap rows =
        overlap(part.place.row_begin, part.place.rows, region.row_begin, region.rows);
    const Overlap cols =
        overlap(part.place.col_begin, part.place.cols, region.col_begin, region.cols);
    if (rows.begin >= rows.end || cols.begin >= cols.end) continue;
    // Whole rows of the part are read at once and the columns cut out of them.
    TPSIM_TRY(const std::vector<float> block,
              files_[part.file].read_floats(part.stored_name,
                                            (rows.begin - part.place.row_begin) * part.place.cols,
                                            (rows.end - rows.begin) * part.place.cols));
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      const auto from =
          block.begin() + (r - rows.begin) * part.place.cols + (cols.begin - part.place.col_begin);
      std::copy(
          from, from + (cols.end - cols.begin),
          values.begin() + (r - region.row_begin) * region.cols + (cols.begin - region.col_begin));
    }
    filled += (rows.end - rows.begin) * (cols.end - cols.begin);
  }
  if (filled < region.rows * region.cols) return bad("the files hold only a part of it");
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
