#include "app/answers/log_text.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cstdio>
#include <fstream>

#include "core/base/files.h"
#include "evidence/logs/profiler_files.h"

namespace tpsim::app {
namespace {

constexpr std::size_t kMostLogBytes = std::size_t{256} << 20;
constexpr std::size_t kPiece = std::size_t{1} << 16;
// Window bits for zlib: the maximum window, plus detection of zlib and gzip headers.
constexpr int kGzip = 15 + 32;

Error too_long(const std::string& path) {
  return bad_input(fmt::format("is larger than {} MiB", kMostLogBytes >> 20), path,
                   "the end of the log is enough: use tail -c 200M");
}

bool is_gzip(const std::string& bytes) {
  return bytes.size() > 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

class GzipUnpacker {
 public:
  GzipUnpacker() : ready_(inflateInit2(&stream_, kGzip) == Z_OK) {}
  ~GzipUnpacker() {
    if (ready_) inflateEnd(&stream_);
  }
  GzipUnpacker(const GzipUnpacker&) = delete;
  GzipUnpacker& operator=(const GzipUnpacker&) = delete;

  // Decompresses a gzip file, which may consist of several members.
  Result<std::string> text(std::string packed, const std::string& path) {
    std::string text;
    std::string piece(kPiece, '\0');
    stream_.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream_.avail_in = static_cast<uInt>(packed.size());
    while (ready_ && stream_.avail_in > 0) {
      stream_.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream_.avail_out = static_cast<uInt>(piece.size());
      const int state = inflate(&stream_, Z_NO_FLUSH);
      text.append(piece, 0, piece.size() - stream_.avail_out);
      if (text.size() > kMostLogBytes) return too_long(path);
      if (state == Z_STREAM_END && inflateReset(&stream_) == Z_OK) continue;
      // A log that is still being written may be truncated: the text so far is returned.
      if (state == Z_BUF_ERROR || (state == Z_OK && stream_.avail_in == 0)) break;
      if (state != Z_OK) {
        const char* why = stream_.msg == nullptr ? zError(state) : stream_.msg;
        return bad_input(fmt::format("is a damaged gzip file: {}", why), path,
                         "check it with gzip -t, or decompress it first");
      }
    }
    return text;
  }

 private:
  z_stream stream_{};
  bool ready_;
};

// Converts UTF-16 to bytes, since PowerShell redirects output as UTF-16. Characters outside of
// ASCII are irrelevant to logs.
std::string without_wide_letters(std::string bytes) {
  const bool is_little = bytes.starts_with("\xff\xfe");
  if (!is_little && !bytes.starts_with("\xfe\xff")) return bytes;
  std::string text;
  text.reserve(bytes.size() / 2);
  for (std::size_t i = 2; i + 1 < bytes.size(); i += 2) {
    const char low = bytes[is_little ? i : i + 1];
    const char high = bytes[is_little ? i + 1 : i];
    text += high == 0 ? low : '?';
  }
  return text;
}

// Whether the file is a database of Nsight Systems.
bool is_report_file(const std::string& path) {
  if (path == "-") return false;
  std::ifstream file(path, std::ios::binary);
  std::string head(16, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return file.gcount() == static_cast<std::streamsize>(head.size()) && is_nsys_report(head);
}

Status refuse_reports(const std::string& file) {
  if (!file.ends_with(".nsys-rep")) return Ok{};
  return bad_input("is a report of Nsight Systems in its own binary format", file,
                   "convert it with nsys export --type sqlite, then give that file and plan.json");
}

}  // namespace

Result<std::string> read_log_text(const std::string& path) {
  TPSIM_TRY(std::string bytes, read_file(path, kMostLogBytes));
  if (!is_gzip(bytes)) return without_wide_letters(std::move(bytes));
  TPSIM_TRY(std::string text, GzipUnpacker().text(std::move(bytes), path));
  return without_wide_letters(std::move(text));
}

Result<OpenedLog> open_or_reuse(const OpenedLog& first, const std::string& path) {
  return path == first.path ? Result(first) : open_log(path);
}

Result<OpenedLog> open_log(const std::string& path) {
  TPSIM_TRY_STATUS(refuse_reports(path));
  OpenedLog log;
  log.path = path;
  log.is_report = is_report_file(path);
  if (!log.is_report) {
    TPSIM_TRY(log.text, read_log_text(path));
  }
  return log;
}

}  // namespace tpsim::app
