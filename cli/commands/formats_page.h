// Every kind of file that tpsim reads, told from the lists of fields that read it, and every family
// of models.
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
  std::string_view title;    // of its section
  std::string_view purpose;  // what it says, and how to begin one
  JsonValue (*schema)();
};
std::span<const FileFormat> file_formats();

// A JSON schema with what is known of each key's meaning.
JsonValue json_schema(const FileFormat& format);

// docs/files.md.
std::string formats_page();

// What keys mean, by their path in a kind of file: "cluster.intra_node.bandwidth". Those of
// settings and parts are told by their own tables.
struct KeyMeaning {
  std::string_view paths;  // with spaces between them
  std::string_view meaning;
};
std::span<const KeyMeaning> key_meanings();

// docs/models.md: one row for each family of the catalogue and each model_type that is read: how it
// is read, whether it is planned and trained, which launchers carry its models.
Result<std::string> models_page(const Catalogue& catalogue);

}  // namespace tpsim::cli
