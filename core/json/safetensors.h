// Safetensors files: named tensors with a JSON header. Reads fp64, fp32, bf16, fp16 and integer
// tensors, whole or in parts; writes fp32.
//
// Format: u64 header length (little endian), JSON {name: {dtype, shape, data_offsets}}, data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

struct SafetensorEntry {
  std::string dtype;  // "F32", "BF16", "F16", "I32", "I64"
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;  // bytes from the start of the file
  std::int64_t end = 0;
};

class SafetensorsFile {
 public:
  // Checks the header against the file size: a truncated file is an error. A tensor of a supported
  // dtype whose shape and byte count disagree is an error too. No entry exceeds the file.
  static Result<SafetensorsFile> open(const std::filesystem::path& path);

  const std::map<std::string, SafetensorEntry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Error if there is no such tensor or it is not floating point. Call before allocating memory for
  // it.
  Status check_floats(const std::string& name) const;
  // Returns `count` elements from flat index `first`, in order.
  Result<std::vector<float>> read_floats(const std::string& name, std::int64_t first,
                                         std::int64_t count) const;
  Result<std::vector<std::int64_t>> read_integers(const std::string& name) const;

 private:
  Result<std::string> read_bytes(const SafetensorEntry& entry, std::int64_t first,
                                 std::int64_t count) const;

  std::filesystem::path path_;
  std::map<std::string, SafetensorEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

struct NamedFloats {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};
// Writes fp32 tensors atomically.
Status write_safetensors(const std::filesystem::path& path, const std::vector<NamedFloats>& tensors,
                         const std::map<std::string, std::string>& metadata);

// Bytes per element of a safetensors dtype; 0 if the dtype is not supported.
std::int64_t bytes_of_dtype(const std::string& dtype);

}  // namespace tpsim
