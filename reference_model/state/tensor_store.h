// Global tensors as blocks: what a rank holds of a tensor, and how any layout's blocks are read
// back into any other.
//
// A checkpoint file of Hugging Face holds whole tensors; a file that a rank writes holds its
// blocks, with their place in the global tensor in the metadata. Both are read through BlockReader.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/json/safetensors.h"

namespace tpsim {

// Rows [row_begin, row_begin + rows) and likewise columns of a global matrix (a vector has one
// column).
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
  // All *.safetensors files of a folder, which may be shards. A prefix
  // "transformer." of names is dropped. A file whose metadata places a tensor where it cannot lie
  // is an error.
  static Result<BlockReader> open(const std::filesystem::path& folder);

  bool has(const std::string& name) const { return parts_.count(name) != 0; }
  std::vector<std::string> names() const;
  // Values of a region, row by row, put together from the parts that overlap it. Fails when the
  // tensor is missing, has another global shape, or parts leave a hole or overlap.
  Result<std::vector<float>> read(const std::string& name, const BlockPlace& region) const;
  // A whole tensor with its own shape.
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
