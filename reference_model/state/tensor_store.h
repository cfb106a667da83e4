// Global tensors, stored as blocks. Blocks that one parallel layout wrote can be read into any
// other layout.
//
// A Hugging Face checkpoint file has whole tensors. A file written by a rank has blocks; the file's
// metadata has the position of each block in its global tensor. BlockReader reads both.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/json/safetensors.h"

namespace tpsim {

// Rows [row_begin, row_begin + rows) and columns [col_begin, col_begin + cols) of a global matrix.
// A vector has one column.
struct BlockPlace {
  std::int64_t global_rows = 0, global_cols = 1;
  std::int64_t row_begin = 0, rows = 0;
  std::int64_t col_begin = 0, cols = 1;
};

struct TensorBlock {
  std::string name;
  bool is_matrix = true;
  BlockPlace place;
  std::vector<float> values;  // rows x cols
};

Status write_blocks(const std::filesystem::path& path, const std::vector<TensorBlock>& blocks);

class BlockReader {
 public:
  // Opens all *.safetensors files of a folder, which may be shards. Drops the prefix "transformer."
  // of names. Error if a file's metadata places a tensor outside its global tensor.
  static Result<BlockReader> open(const std::filesystem::path& folder);

  bool has(const std::string& name) const { return parts_.count(name) != 0; }
  std::vector<std::string> names() const;
  // Returns the values of a region, row by row, assembled from the overlapping parts. Error if the
  // tensor is missing or has another global shape, or if parts leave a gap or overlap.
  Result<std::vector<float>> read(const std::string& name, const BlockPlace& region) const;
  // Reads a whole tensor with its own shape.
  Result<NamedFloats> read_whole(const std::string& name) const;

 private:
  struct Part {
    std::size_t file = 0;
    std::string stored_name;
    BlockPlace place;
    bool is_matrix = true;
  };
  Status add_file(const std::filesystem::path& path);
  Status check_covered(const std::string& name, const std::vector<Part>& parts,
                       const BlockPlace& region) const;
  Status copy_part(const Part& part, const BlockPlace& region, std::vector<float>& values) const;

  std::filesystem::path folder_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, std::vector<Part>> parts_;
};

}  // namespace tpsim
