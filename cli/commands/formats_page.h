// Documentation of all file formats, generated from the field lists that read the files, and of all
// model families.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/json/json_value.h"

namespace tpsim {
class Catalogue;
}

namespace tpsim::cli {

struct FileFormat {
  std::string_view kind;     // "cluster"
  std::string_view title;    // title of the section
  std::string_view purpose;  // contents, and how to create a file
  JsonValue (*schema)();
};
std::span<const FileFormat> file_formats();

// Returns a JSON schema with the meanings of keys.
JsonValue json_schema(const FileFormat& format);

// Returns docs/files.md.
std::string formats_page();

// Meanings of keys by format and path: "cluster.intra_node.bandwidth". Settings and parts are
// documented by their own tables.
struct KeyMeaning {
  std::string_view paths;  // separated by spaces
  std::string_view meaning;
};
std::span<const KeyMeaning> key_meanings();

// Returns docs/models.md: a row for each family of the catalogue and each supported model_type.
// Columns: how it is read, whether it is planned and trained, and the launchers that support its
// models.
Result<std::string> models_page(const Catalogue& catalogue);

}  // namespace tpsim::cli
