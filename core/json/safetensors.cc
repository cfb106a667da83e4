#include "core/json/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "core/base/checked_product.h"
#include "core/base/files.h"
#include "core/base/half_floats.h"
#include "core/json/json_document.h"

namespace tpsim {
namespace {

Error bad_file(const std::filesystem::path& path, const std::string& message) {
  return bad_input(message, path.string(), "the safetensors file may be incomplete");
}

Result<SafetensorEntry> parse_entry(const std::filesystem::path& path, const std::string& name,
                                    const JsonValue& value, std::int64_t data_begin,
                                    std::int64_t file_size) {
  const auto bad = [&](const char* what) {
    return bad_file(path, fmt::format("tensor '{}': {}", name, what));
  };
  const JsonValue* dtype = value.find("dtype");
  const JsonValue* shape = value.find("shape");
  const JsonValue* offsets = value.find("data_offsets");
  if (dtype == nullptr || shape == nullptr || offsets == nullptr)
    return bad("its dtype, shape or data_offsets is missing");
  const auto* dims = shape->as<JsonValue::Array>();
  const auto* ends = offsets->as<JsonValue::Array>();
  if (dtype->as<std::string>() == nullptr || dims == nullptr || ends == nullptr ||
      ends->size() != 2) {
    return bad("its dtype, shape or data_offsets has the wrong type");
  }
  SafetensorEntry entry;
  entry.dtype = *dtype->as<std::string>();
  for (const JsonValue& dim : *dims) {
    const auto* extent = dim.as<std::int64_t>();
    if (extent == nullptr || *extent < 0 || *extent > (std::int64_t{1} << 40)) {
      return bad("the shape is invalid");
    }
    entry.shape.push_back(*extent);
  }
  const std::int64_t width = bytes_of_dtype(entry.dtype);
  std::vector<std::int64_t> factors = entry.shape;
  factors.push_back(std::max<std::int64_t>(width, 1));
  const auto bytes = checked_product(factors);
  if (!bytes) return bad("the shape is too large for any file");
  const auto* begin = (*ends)[0].as<std::int64_t>();
  const auto* end = (*ends)[1].as<std::int64_t>();
  if (begin == nullptr || end == nullptr || *begin < 0 || *end < *begin)
    return bad("the offsets are invalid");
  if (*end > file_size - data_begin) return bad("its data extend beyond the end of the file");
  entry.begin = data_begin + *begin;
  entry.end = data_begin + *end;
  // Unknown dtypes are allowed as long as they are not read.
  if (width > 0 && *bytes != *end - *begin) return bad("its shape and its size in bytes disagree");
  return entry;
}

template <class T>
T value_at(const std::string& bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

// A function that reads element i as float. It is chosen once per tensor and not per element, since
// a checkpoint has billions of elements.
using FloatAt = float (*)(const std::string& bytes, std::size_t i);
FloatAt reader_of(const std::string& dtype) {
  if (dtype == "F32") return value_at<float>;
  if (dtype == "F64") {
    return [](const std::string& bytes, std::size_t i) {
      return static_cast<float>(value_at<double>(bytes, i));
    };
  }
  if (dtype == "BF16") {
    return [](const std::string& bytes, std::size_t i) {
      return from_bfloat16(value_at<std::uint16_t>(bytes, i));
    };
  }
  return [](const std::string& bytes, std::size_t i) {
    return from_float16(value_at<std::uint16_t>(bytes, i));
  };
}

}  // namespace

std::int64_t bytes_of_dtype(const std::string& dtype) {
  if (dtype == "F32" || dtype == "I32") return 4;
  if (dtype == "BF16" || dtype == "F16") return 2;
  if (dtype == "I64" || dtype == "F64") return 8;
  return 0;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  std::error_code failed;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path, failed));
  if (failed) return bad_input("cannot read: " + failed.message(), path.string());
  std::ifstream in(path, std::ios::binary);
  std::uint64_t header_size = 0;
  in.read(reinterpret_cast<char*>(&header_size), sizeof header_size);
  if (!in || header_size > kMostJsonBytes || static_cast<std::int64_t>(header_size) + 8 > size) {
    return bad_file(path, "the header is longer than the file");
  }
  std::string header(header_size, '\0');
  in.read(header.data(), static_cast<std::streamsize>(header_size));
  if (!in) return bad_file(path, "the header cannot be read");
  TPSIM_TRY(const JsonValue root, parse_json(header, path.string()));
  const auto* members = root.as<JsonValue::Object>();
  if (members == nullptr) return bad_file(path, "the header is not an object");

  SafetensorsFile file;
  file.path_ = path;
  for (const JsonMember& member : *members) {
    if (member.key == "__metadata__") {
      const auto* pairs = member.value.as<JsonValue::Object>();
      if (pairs == nullptr) return bad_file(path, "__metadata__ is not an object");
      for (const JsonMember& pair : *pairs) {
        if (const auto* text = pair.value.as<std::string>()) file.metadata_[pair.key] = *text;
      }
      continue;
    }
    TPSIM_TRY(file.entries_[member.key],
              parse_entry(path, member.key, member.value,
                          static_cast<std::int64_t>(header_size) + 8, size));
  }
  return file;
}

Result<std::string> SafetensorsFile::read_bytes(const SafetensorEntry& entry, std::int64_t first,
                                                std::int64_t count) const {
  const std::int64_t width = bytes_of_dtype(entry.dtype);
  TPSIM_CHECK(first >= 0 && entry.begin + (first + count) * width <= entry.end, "outside a tensor");
  std::string bytes(static_cast<std::size_t>(count * width), '\0');
  std::ifstream in(path_, std::ios::binary);
  in.seekg(entry.begin + first * width);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!in) return bad_file(path_, "cannot read the data");
  return bytes;
}

Status SafetensorsFile::check_floats(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end())
    return bad_file(path_, fmt::format("the file has no tensor '{}'", name));
  const std::string& dtype = found->second.dtype;
  if (dtype != "F32" && dtype != "F64" && dtype != "BF16" && dtype != "F16") {
    return bad_file(path_, fmt::format("tensor '{}' has dtype {}, not a float", name, dtype));
  }
  return Ok{};
}

Result<std::vector<float>> SafetensorsFile::read_floats(const std::string& name, std::int64_t first,
                                                        std::int64_t count) const {
  TPSIM_TRY_STATUS(check_floats(name));
  const SafetensorEntry& entry = entries_.at(name);
  TPSIM_TRY(const std::string bytes, read_bytes(entry, first, count));
  std::vector<float> values(static_cast<std::size_t>(count));
  const FloatAt float_at = reader_of(entry.dtype);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float_at(bytes, i);
  return values;
}

Result<std::vector<std::int64_t>> SafetensorsFile::read_integers(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end())
    return bad_file(path_, fmt::format("the file has no tensor '{}'", name));
  const SafetensorEntry& entry = found->second;
  if (entry.dtype != "I64" && entry.dtype != "I32") {
    return bad_file(path_,
                    fmt::format("tensor '{}' has dtype {}, not I32 or I64", name, entry.dtype));
  }
  const std::int64_t count = (entry.end - entry.begin) / bytes_of_dtype(entry.dtype);
  TPSIM_TRY(const std::string bytes, read_bytes(entry, 0, count));
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] =
        entry.dtype == "I64" ? value_at<std::int64_t>(bytes, i) : value_at<std::int32_t>(bytes, i);
  }
  return values;
}

Status write_safetensors(const std::filesystem::path& path, const std::vector<NamedFloats>& tensors,
                         const std::map<std::string, std::string>& metadata) {
  JsonValue header = json_object();
  if (!metadata.empty()) {
    JsonValue pairs = json_object();
    for (const auto& [key, value] : metadata) pairs.set(key, value);
    header.set("__metadata__", pairs);
  }
  std::int64_t at = 0;
  for (const NamedFloats& tensor : tensors) {
    const auto bytes = static_cast<std::int64_t>(tensor.values.size() * sizeof(float));
    header.set(tensor.name,
               json_object({{"dtype", "F32"},
                            {"shape", json_array(tensor.shape)},
                            {"data_offsets", json_array(std::vector{at, at + bytes})}}));
    at += bytes;
  }
  std::string text = to_text(header);
  // The format requires data to begin at a multiple of 8.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = text.size();
  std::vector<std::string_view> pieces = {{reinterpret_cast<const char*>(&size), sizeof size},
                                          text};
  for (const NamedFloats& tensor : tensors) {
    pieces.emplace_back(reinterpret_cast<const char*>(tensor.values.data()),
                        tensor.values.size() * sizeof(float));
  }
  return write_file_atomically(path, pieces);
}

}  // namespace tpsim
