// Pages and schemas of all file formats, generated from the field lists that the readers use, and
// the page of all model families.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/json/json_value.h"

namespace tpsim {
class Catalogue;
}

namespace tpsim::app {

struct FileFormat {
  std::string_view kind;  // "cluster"
  JsonValue (*schema)();
};
std::span<const FileFormat> file_formats();

// Returns the JSON schema of a format. Its "description" texts are the meanings of the keys.
JsonValue json_schema(const FileFormat& format);

// Returns the text of docs/files.md.
std::string formats_page();

// Returns the text of docs/models.md: one row for each model family of the catalogue and each
// supported model_type. The columns state whether tpsim plans and trains the family, and which
// launchers support it.
Result<std::string> models_page(const Catalogue& catalogue);

}  // namespace tpsim::app
