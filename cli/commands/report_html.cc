// tpsim report: writes one HTML file with a plan or a saved view, and tpsim itself, compiled to
// WebAssembly.
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <string>

#include "cli/commands/commands.h"
#include "cli/options/values.h"
#include "core/base/files.h"
#include "core/base/shipped_data.h"
#include "core/json/json_document.h"
#include "core/scenario/plan_json.h"
#include "gui/views/saved_view.h"

namespace tpsim::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr std::string_view kPlaceOfFiles = "/*TPSIM-FILES*/null";

Error not_built() {
  return Error{ErrorKind::kMissing, "this build cannot write pages for browsers", "tpsim report",
               "run tools/install_packages.sh --web, then configure and build again"};
}

// Returns the HTML page without a plan: the file next to the program, the installed file in share/,
// or the embedded one.
Result<std::string> page_without_plan() {
  std::error_code code;
  const fs::path folder = fs::read_symlink("/proc/self/exe", code).parent_path();
  for (const fs::path& page :
       {folder / "tpsim-page.html", folder / "../share/tpsim/tpsim-page.html"}) {
    if (fs::exists(page, code)) return read_file(page, kMostBytes);
  }
  const fs::path shipped = fs::path(kShippedRoot) / "tpsim-page.html";
  if (file_is_there(shipped)) return read_file(shipped, kMostBytes);
  return not_built();
}

// Adds a file of the user, which is not in the page's catalogue, under the path that the plan
// names.
Status add_own_file(JsonValue& files, const std::string& name) {
  const bool is_path = name.find('/') != std::string::npos || name.ends_with(".json");
  if (!is_path) return Ok{};
  TPSIM_TRY(const std::string text, read_file(name, kMostBytes));
  files.set(name, text);
  return Ok{};
}

// Escapes '<', so that JSON inside of a script element cannot contain "</script>".
std::string inside_script(const std::string& json) {
  std::string text;
  for (const char c : json) text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

// The plan or view that the page shows, with the files that it names.
struct Shown {
  std::string text;
  std::array<std::string, 3> names;  // cluster, profile, stack
  std::string measured;              // report of `tpsim validate --runs`; empty: none
};

Result<Shown> shown_view(const JsonValue& root, const std::string& path) {
  gui::AppState state;
  TPSIM_TRY_STATUS(gui::read_view(root, path, state));
  const gui::Choice& choice = state.choice;
  return Shown{to_text(root), {choice.cluster, choice.profile, choice.stack}, state.measured_file};
}

Result<Shown> shown_file(const std::string& path) {
  TPSIM_TRY(const JsonValue root, read_json_file(path));
  if (gui::is_view(root)) return shown_view(root, path);
  TPSIM_TRY(const PlanFile file, read_plan(path));
  return Shown{to_json(file), {file.cluster, file.profile, file.stack}, ""};
}

// Returns the files that the program in the page reads: path -> text.
Result<JsonValue> files_of(const Shown& shown, const std::string& measured) {
  JsonValue files = json_object();
  files.set("tpsim/plan.json", shown.text);
  if (!measured.empty()) {
    TPSIM_TRY(const std::string text, read_file(measured, kMostBytes));
    files.set("tpsim/measured.json", text);
  }
  for (const std::string& name : shown.names) TPSIM_TRY_STATUS(add_own_file(files, name));
  return files;
}

}  // namespace

Result<Answer> run_report(const Arguments& arguments, const Terminal&) {
  if (!arguments.has("--html")) {
    return option_error("--html", "the file name of the page is missing",
                        "write --html report.html");
  }
  if (arguments.positional.empty()) {
    return bad_input("no plan file was given", "tpsim report",
                     "tpsim plan ... --save plan.json writes one");
  }
  TPSIM_TRY(const Shown shown, shown_file(arguments.positional));
  TPSIM_TRY(const JsonValue files,
            files_of(shown, arguments["--measured"].value_or(shown.measured)));
  TPSIM_TRY(std::string page, page_without_plan());
  const std::size_t place = page.find(kPlaceOfFiles);
  TPSIM_CHECK(place != std::string::npos, "the page has no place for a plan");
  page.replace(place, kPlaceOfFiles.size(), inside_script(to_text(files)));
  const std::string& path = *arguments["--html"];
  TPSIM_TRY_STATUS(write_file_atomically(path, page));
  return Answer{.text = fmt::format("wrote {} ({:.2f} MB): open it in any browser\n",
                                    printable(path), static_cast<double>(page.size()) / 1e6),
                .is_prose = false};
}

}  // namespace tpsim::cli
