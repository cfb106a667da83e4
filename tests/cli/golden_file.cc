#include "tests/cli/golden_file.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <stdexcept>

namespace tpsim::test {
namespace {

std::string with_times_hidden(const std::string& text) {
  static const std::regex taken(R"re(( considered in |"seconds": )[0-9][0-9.e-]*( m?s| us)?)re");
  return std::regex_replace(text, taken, "$1TIME");
}

std::string with_six_digits(const std::string& text) {
  static const std::regex fraction(R"(-?[0-9]+\.[0-9]{5,}(e[-+]?[0-9]+)?|[0-9]e-[0-9]+)");
  std::string out;
  auto last = text.begin();
  for (std::sregex_iterator it(text.begin(), text.end(), fraction), end; it != end; ++it) {
    out.append(last, (*it)[0].first);
    out += fmt::format("{:.6g}", std::strtod(it->str().c_str(), nullptr));
    last = (*it)[0].second;
  }
  return out.append(last, text.end());
}

}  // namespace

GoldenFile parse_golden(std::string_view text) {
  GoldenFile file;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    if (line.starts_with("$ ")) {
      file.commands.push_back({std::string(line.substr(2, line.find('\n') - 2)), ""});
    } else if (file.commands.empty()) {
      file.comment += line;
    } else {
      file.commands.back().printed += line;
    }
  }
  return file;
}

std::string to_string(const GoldenFile& file) {
  std::string text = file.comment;
  for (const GoldenCommand& one : file.commands) text += "$ " + one.command + "\n" + one.printed;
  return text;
}

std::string run_golden(const std::string& command, const std::filesystem::path& folder) {
  const std::string line = fmt::format(
      "unset COLUMNS && cd '{}' && export TPSIM_DATA=files/data LC_ALL=C NO_COLOR=1 "
      "PATH='{}':\"$PATH\" && "
      "{{ {}\n}} 2>&1 </dev/null",
      folder.string(), TPSIM_BINARY_DIR, command);
  FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start a shell");
  std::string printed;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) {
    printed.append(buffer.data(), got);
  }
  const int status = pclose(pipe);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code != 0) printed += fmt::format("[exit {}]\n", code);
  return with_six_digits(with_times_hidden(printed));
}

}  // namespace tpsim::test
