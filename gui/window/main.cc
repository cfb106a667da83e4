// The program that `tpsim gui` starts. `tpsim` checks all options before it passes them, so this
// program has no help of its own.
#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <string>

#include "core/base/files.h"
#include "core/base/standard_streams.h"
#include "gui/window/start_options.h"
#include "gui/window/window.h"
#include "gui/window/windowless.h"

namespace tpsim::gui {
namespace {

constexpr std::size_t kMostScriptBytes = std::size_t{1} << 20;

Status run_options_script(const StartOptions& options, ScriptHost& host) {
  const std::filesystem::path folder = std::filesystem::path(options.screenshot).parent_path();
  if (!options.script.empty()) {
    TPSIM_TRY(const std::string text, read_file(options.script, kMostScriptBytes));
    TPSIM_TRY(const auto lines, parse_script(text, options.script));
    TPSIM_TRY_STATUS(run_script(lines, options.script, folder, host));
  } else {
    TPSIM_TRY_STATUS(wait_for_search(host));
  }
  if (options.screenshot.empty()) return Ok{};
  return write_png(options.screenshot, host.picture());
}

Status run(int argc, char** argv) {
  TPSIM_TRY(const StartOptions options, start_options(argc, argv));
  TPSIM_TRY(Catalogue catalogue, Catalogue::open());
  TPSIM_TRY(AppState state, start_state(options, catalogue));
  if (!options.screenshot.empty()) {
    WindowlessHost host(std::move(catalogue), std::move(state), options.width, options.height);
    return run_options_script(options, host);
  }
  return run_window(std::move(catalogue), std::move(state), options,
                    [&](ScriptHost& host) { return run_options_script(options, host); });
}

int run_and_report(int argc, char** argv) {
  try {
    const Status status = run(argc, argv);
    if (status.ok()) return 0;
    say(fmt::format("tpsim: error: {}\n", to_string(status.error())));
    return static_cast<int>(status.error().kind);
  } catch (const std::exception& error) {
    const Error said = error_from(error);
    say(said.kind == ErrorKind::kBug
            ? fmt::format("tpsim: bug: {} (please report it with the steps that led here)\n",
                          said.message)
            : fmt::format("tpsim: error: {}\n", to_string(said)));
    return static_cast<int>(said.kind);
  }
}

}  // namespace
}  // namespace tpsim::gui

int main(int argc, char** argv) { return tpsim::gui::run_and_report(argc, argv); }
