// Reading blocks of tensors from files: complete, or an error. Includes integers near their limits.
#include "reference_model/state/tensor_store.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "reference_model/training/tokens.h"
#include "tests/temporary_folder.h"

namespace tpsim {
namespace {

using Folder = test::TemporaryFolder;

TensorBlock rows_of(std::int64_t first, std::int64_t count) {
  TensorBlock block{"head", true, {4, 2, first, count, 0, 2}, {}};
  block.values.assign(static_cast<std::size_t>(2 * count), static_cast<float>(first + 1));
  return block;
}

Result<std::vector<float>> read_head(const Folder& folder) {
  TPSIM_TRY(const BlockReader reader, BlockReader::open(folder.path()));
  return reader.read("head", {4, 2, 0, 4, 0, 2});
}

// Writes a file with the given header and some bytes of data.
std::filesystem::path file_of(const Folder& folder, const std::string& header,
                              std::size_t bytes = 16) {
  const std::filesystem::path path = folder / "tokens.safetensors";
  const std::uint64_t size = header.size();
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&size), sizeof size);
  out << header << std::string(bytes, '\0');
  return path;
}

std::string tokens_header(const std::string& shape, const std::string& offsets) {
  return R"({"tokens": {"dtype": "I64", "shape": [)" + shape + R"(], "data_offsets": [)" + offsets +
         "]}}";
}

std::string placed_header(const std::string& place) {
  return R"({"__metadata__": {"head": ")" + place +
         R"("}, "head": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}})";
}

}  // namespace

TEST_CASE("blocks of several files make up the tensor") {
  const Folder folder;
  REQUIRE(write_blocks(folder / "a.safetensors", {rows_of(0, 1)}).ok());
  REQUIRE(write_blocks(folder / "b.safetensors", {rows_of(1, 3)}).ok());
  const auto head = read_head(folder);
  REQUIRE(head.ok());
  CHECK(*head == std::vector<float>{1, 1, 2, 2, 2, 2, 2, 2});
}

TEST_CASE("the same half twice is not a complete tensor") {
  const Folder folder;
  for (const char* name : {"a.safetensors", "b.safetensors"}) {
    REQUIRE(write_blocks(folder / name, {rows_of(0, 2)}).ok());
  }
  const auto head = read_head(folder);
  REQUIRE_FALSE(head.ok());
  CHECK_THAT(head.error().message, Catch::Contains("stored more than once"));
}

TEST_CASE("overlapping parts do not hide a gap") {
  const Folder folder;
  REQUIRE(write_blocks(folder / "a.safetensors", {rows_of(0, 2)}).ok());
  REQUIRE(write_blocks(folder / "b.safetensors", {rows_of(1, 2)}).ok());
  CHECK_FALSE(read_head(folder).ok());
}

TEST_CASE("places outside their tensor, and beyond 64 bits, are refused") {
  for (const char* place :
       {"4 2 3 0", "4 2 -1 0", "4 2 0 1", "4 2 9223372036854775807 0", "0 0 0 0", "4 2",
        "4 2 0 0 x", "4611686018427387904 4611686018427387904 0 0", "99999999999999999999 2 0 0",
        ""}) {
    const Folder folder;
    file_of(folder, placed_header(place));
    INFO(place);
    CHECK_FALSE(BlockReader::open(folder.path()).ok());
  }
  const Folder folder;
  file_of(folder, placed_header("4 2 2 0"));
  CHECK(BlockReader::open(folder.path()).ok());
}

// For an unsupported dtype the shape is not checked against the data.
TEST_CASE("a tensor that is not a float is refused before its memory is allocated") {
  const Folder folder;
  file_of(folder, R"({"w": {"dtype": "F4", "shape": [4294967296, 2], "data_offsets": [0, 16]}})");
  const auto reader = BlockReader::open(folder.path());
  REQUIRE(reader.ok());
  const auto whole = reader->read_whole("w");
  REQUIRE_FALSE(whole.ok());
  CHECK_THAT(whole.error().message, Catch::Contains("not a float"));
}

TEST_CASE("tokens whose shape or offsets overflow 64 bits are refused") {
  for (const auto& [shape, offsets] :
       {std::pair<const char*, const char*>{"4294967296, 2147483648, 2", "0, 0"},
        {"1, 1, 2", "9223372036854775800, 9223372036854775807"},
        {"1, 1, 1073741824", "0, 8589934592"},
        {"1099511627776, 1099511627776, 1099511627776", "0, 16"}}) {
    const Folder folder;
    INFO(shape << " at " << offsets);
    CHECK_FALSE(TokenSource::open(file_of(folder, tokens_header(shape, offsets))).ok());
  }
  const Folder folder;
  CHECK(TokenSource::open(file_of(folder, tokens_header("1, 1, 2", "0, 16"))).ok());
}

}  // namespace tpsim
