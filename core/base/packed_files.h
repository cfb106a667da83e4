// Data files of the catalogue, embedded in the executable by cmake/PackData.cmake.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tpsim {

// One file as a raw deflate stream (RFC 1951): `packed_bytes` bytes at `offset` of packed_bytes().
struct PackedFile {
  std::string_view name;  // "models/bloom-176b.json"
  std::size_t offset;
  std::size_t packed_bytes;
  std::size_t bytes;
};

std::span<const PackedFile> packed_files();  // sorted by name
std::span<const unsigned char> packed_bytes();

std::string unpacked(const PackedFile& file);

}  // namespace tpsim
