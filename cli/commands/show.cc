// tpsim show: prints catalogue entries as editable files, schemas of files, and the page of all
// formats.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>
#include <vector>

#include "app/documents/formats_page.h"
#include "app/documents/report_keys.h"
#include "campaigns/assumptions.h"
#include "cli/commands/commands.h"
#include "cli/commands/request_schema.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/json/json_document.h"
#include "core/machine/cluster_json.h"
#include "core/machine/profile_json.h"
#include "core/model/model_json.h"
#include "core/scenario/catalogue.h"
#include "core/software/stack_json.h"

namespace tpsim::cli {
namespace {

Error not_named(std::string_view kind, std::string hint) {
  return bad_input(fmt::format("the name of the {} is missing", kind), "show", std::move(hint));
}

// Returns the kind without plural: "cluster" for "clusters".
std::string singular(std::string kind) {
  if (kind.ends_with('s') && kind != "formats" && kind != "families" && kind != "reports" &&
      kind != "assumptions") {
    kind.pop_back();
  }
  return kind;
}

Result<std::string> schema_text(const std::string& kind) {
  const auto files = file_formats();
  const auto& reports = report_formats();
  std::vector<std::string_view> names;
  for (const FileFormat& format : files) names.push_back(format.kind);
  for (const ReportFormat& format : reports) names.push_back(format.kind);
  const std::vector<std::string> requests = request_kinds();
  names.insert(names.end(), requests.begin(), requests.end());
  if (kind.empty()) {
    return not_named("schema", fmt::format("choose from {}", fmt::join(names, ", ")));
  }
  TPSIM_TRY(const std::size_t index, choose("kind of file", singular(kind), names));
  const std::size_t documents = files.size() + reports.size();
  if (index >= documents) return to_text(request_schema(requests[index - documents]));
  return to_text(index < files.size() ? json_schema(files[index])
                                      : report_schema(reports[index - files.size()]));
}

template <class Spec>
Result<std::string> file_text(const Result<Spec>& entry) {
  if (!entry.ok()) return entry.error();
  return to_json(*entry);
}

// Returns a page, or an entry of the catalogue as a file.
Result<std::string> entry_text(const std::string& kind, const std::string& name) {
  if (kind == "formats") return formats_page();
  if (kind == "reports") return std::string(reports_page());
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  if (kind == "families") return models_page(catalogue);
  if (name.empty())
    return not_named(kind, fmt::format("tpsim list {}{} shows the names", kind,
                                       kind == "assumptions" ? "" : "s"));
  if (kind == "model") return file_text(catalogue.load_model(name));
  if (kind == "cluster") return file_text(catalogue.load_cluster(name));
  if (kind == "profile") return file_text(catalogue.load_profile(name));
  if (kind == "assumptions") {
    TPSIM_TRY(const std::filesystem::path path, find_assumptions(catalogue, name));
    return read_file(path, kMostJsonBytes);
  }
  return file_text(catalogue.load_stack(name));
}

}  // namespace

Result<Answer> run_show(const Arguments& arguments, const Terminal&) {
  constexpr std::array<std::string_view, 9> kKinds = {"model",   "cluster",     "profile",
                                                      "stack",   "assumptions", "schema",
                                                      "formats", "reports",     "families"};
  if (arguments.positional.empty()) {
    return bad_input("the kind of entry is missing", "show",
                     fmt::format("choose from {}", fmt::join(kKinds, ", ")));
  }
  const std::string kind = singular(arguments.positional);
  TPSIM_TRY_STATUS(choose("kind", kind, kKinds));
  if (arguments.more.size() > 1) {
    return bad_input(fmt::format("'{}' is a second name", arguments.more[1]), "show",
                     "show one entry at a time");
  }
  const std::string name = arguments.more.empty() ? "" : arguments.more.front();
  Answer answer{.is_prose = false};
  TPSIM_TRY(answer.text, kind == "schema" ? schema_text(name) : entry_text(kind, name));
  return answer;
}

}  // namespace tpsim::cli
