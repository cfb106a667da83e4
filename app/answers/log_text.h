// Contents of training logs.
#pragma once

#include <string>

#include "core/base/result.h"

namespace tpsim::app {

// Returns the text of a log: a plain or gzip file, or standard input for "-". Error if the text
// exceeds 256 MiB, also after decompression.
Result<std::string> read_log_text(const std::string& path);

// Contents of a log file. Standard input can be read only once, so the contents are kept.
struct OpenedLog {
  std::string path;
  std::string text;        // empty for a Nsight Systems report, which is read from its file
  bool is_report = false;  // the file is a Nsight Systems report (a database)
};
// Error for a .nsys-rep file, which must be converted with nsys export first.
Result<OpenedLog> open_log(const std::string& path);
// Returns `first` if it has this path, since standard input can be read only once. Otherwise opens
// the log.
Result<OpenedLog> open_or_reuse(const OpenedLog& first, const std::string& path);

}  // namespace tpsim::app
