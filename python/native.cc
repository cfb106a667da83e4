// The native half of the Python module: each function takes options by name, as the command line
// does, and returns the document that --json prints. tpsim/_results.py gives it types. The GIL is
// free while tpsim works; Ctrl-C is heard between the parts of long work.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/answers.h"
#include "cli/campaign_view.h"
#include "cli/fit.h"
#include "cli/inputs.h"
#include "cli/report_json.h"
#include "cli/values.h"
#include "core/catalogue.h"
#include "core/json_document.h"
#include "core/plan_json.h"
#include "generated/tpsim_config.h"
#include "plans/search.h"

namespace tpsim::cli {
namespace {

namespace py = pybind11;

using Options = std::map<std::string, std::string>;  // "micro_batch": "1,2"
using Text = std::string;
using FreeGil = py::call_guard<py::gil_scoped_release>;

// An Error on its way to Python.
struct Failure {
  Error error;
};

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw Failure{result.error()};
  return std::move(result).value();
}

void ok_or_throw(const Status& status) {
  if (!status.ok()) throw Failure{status.error()};
}

const char* kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kBug: return "bug";
    case ErrorKind::kBadInput: return "bad_input";
    case ErrorKind::kDoesNotFit: return "does_not_fit";
    case ErrorKind::kMissing: return "missing";
    case ErrorKind::kInterrupted: return "interrupted";
    case ErrorKind::kTerminated: return "terminated";
  }
  return "?";
}

// An error may quote bytes of a file or a name that are no UTF-8.
py::object readable(const std::string& text) {
  PyObject* decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(decoded);
}

void raise_error(const Error& error) {
  const py::object type = py::module_::import("tpsim._errors").attr("Error");
  const py::object raised =
      type(readable(to_string(error)), kind_name(error.kind), static_cast<int>(error.kind),
           readable(error.message), readable(error.where), readable(error.hint));
  PyErr_SetObject(type.ptr(), raised.ptr());
}

// What the program would report, bugs and memory that ran out among it.
void raise_failures(std::exception_ptr pointer) {
  try {
    if (pointer) std::rethrow_exception(pointer);
  } catch (const Failure& failure) {
    raise_error(failure.error);
  } catch (const py::error_already_set&) {
    throw;  // Python's own, on its way through
  } catch (const py::builtin_exception&) {
    throw;
  } catch (const std::exception& error) {
    raise_error(error_from(error));
  }
}

// Hears Ctrl-C a few times a second.
Progress interruptible() {
  using Clock = std::chrono::steady_clock;
  return [next = Clock::now()](double) mutable {
    if (Clock::now() < next) return;
    next = Clock::now() + std::chrono::milliseconds(100);
    const py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  };
}

std::string keyword_of(const OptionRow& row) {
  std::string name(row.name);
  name.erase(0, name.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// A keyword of Python's functions: its name, what --help says it takes, and whether a list of
// values may stand there.
struct Keyword {
  std::string name, value;
  bool takes_list = false;
};

// What a command takes from Python: not what only says where its words go, nor what runs ranks on
// this machine.
std::vector<Keyword> keywords(Command command) {
  std::vector<Keyword> all;
  for (const OptionRow& row : option_rows()) {
    const bool runs_here = row.opt == Opt::kSteps || row.opt == Opt::kDevice;
    const bool is_output = row.opt == Opt::kJson || row.opt == Opt::kMarkdown ||
                           row.opt == Opt::kSave || row.opt == Opt::kTrace ||
                           row.opt == Opt::kOutputFolder || row.opt == Opt::kPlot ||
                           row.opt == Opt::kQuiet || row.opt == Opt::kColor ||
                           row.opt == Opt::kScaling || row.opt == Opt::kMaxGap;
    if (!takes(command, row) || is_output || runs_here) continue;
    all.push_back({keyword_of(row), row.value, row.many && command != Command::kSimulate});
  }
  return all;
}

Arguments arguments_of(Command command, const Options& options) {
  Arguments arguments;
  arguments.command = command;
  for (const auto& [keyword, text] : options) {
    const auto row =
        std::find_if(option_rows().begin(), option_rows().end(), [&](const OptionRow& candidate) {
          return takes(command, candidate) && keyword_of(candidate) == keyword;
        });
    if (row == option_rows().end()) {
      throw Failure{{ErrorKind::kBadInput, "takes no " + keyword, row_of(command).name, ""}};
    }
    arguments.set(row->opt, text);
  }
  return arguments;
}

std::optional<PlanFile> plan_file(const std::optional<Text>& text) {
  if (!text) return std::nullopt;
  return value_of(parse_plan(*text, "plan"));
}

Text read_plan_text(const Text& path) { return to_json(value_of(read_plan(path))); }

struct Space {
  NamedScenario named;
  SearchSpace space;
  SearchResult found;
};

Space searched(const Arguments& arguments, const std::optional<PlanFile>& file, int top) {
  Space all;
  all.named = value_of(load_scenario(arguments, file));
  all.space = value_of(search_space(arguments, all.named.scenario, file));
  const int threads = value_of(threads_of(arguments));
  all.found = value_of(arguments.has(Opt::kPareto)
                           ? pareto_front(all.named.scenario, all.space, interruptible(), threads)
                           : search(all.named.scenario, all.space, top, interruptible(), threads));
  adopt_parts(all.found.tried, all.named);
  ok_or_throw(widen_intervals(all.named, all.found.plans, threads));
  if (all.found.plans.empty()) {
    throw Failure{nothing_fits(all.named.scenario, all.space, all.found)};
  }
  return all;
}

std::pair<Text, std::vector<Text>> plan(const Options& options, const std::optional<Text>& file) {
  const Arguments arguments = arguments_of(Command::kPlan, options);
  const std::int64_t top = value_of(integer_of(arguments, Opt::kTop, 10, {1, 10'000}));
  const Space all = searched(arguments, plan_file(file), static_cast<int>(top));
  std::vector<Text> files;
  for (const PlannedRun& run : all.found.plans) {
    files.push_back(to_json(plan_file_of(all.named, run.plan)));
  }
  return {to_text(plan_report(all.named, all.space, all.found)), files};
}

std::pair<Text, Text> simulate_plan(const Options& options, const std::optional<Text>& file) {
  const Arguments arguments = arguments_of(Command::kSimulate, options);
  const auto [named, run] = value_of(simulate_answer(arguments, plan_file(file)));
  ok_or_throw(check_fit(arguments, named.scenario, run));
  return {to_text(simulate_report(named, run)), to_json(plan_file_of(named, run.plan))};
}

std::pair<Text, Text> explain(const Options& options, const std::optional<Text>& file) {
  const Arguments arguments = arguments_of(Command::kExplain, options);
  const Explanation answer = value_of(explain_answer(arguments, plan_file(file), Terminal{}));
  return {to_text(answer.document), to_json(answer.plan)};
}

Text campaign(const Options& options, const std::optional<Text>& file) {
  const Arguments arguments = arguments_of(Command::kCampaign, options);
  return to_text(
      campaign_json(value_of(campaign_answer(arguments, plan_file(file), interruptible()))));
}

Options export_files(const Options& options, const Text& file) {
  const Arguments arguments = arguments_of(Command::kExport, options);
  Options files;
  ExportAnswer answer = value_of(export_answer(arguments, *plan_file(file)));
  if (answer.refused) throw Failure{*answer.refused};
  for (LaunchFile& launch : answer.files) {
    files.emplace(std::move(launch.name), std::move(launch.text));
  }
  return files;
}

Text import_plan_file(const Options& options, const Text& path) {
  Arguments arguments = arguments_of(Command::kImport, options);
  arguments.positional = path;
  return to_json(value_of(import_answer(arguments)).file);
}

Text check_log_file(const Options& options, const Text& file, const Text& path) {
  Arguments arguments = arguments_of(Command::kCheckLog, options);
  arguments.positional = path;
  return to_text(check_log_json(value_of(check_log_answer(arguments, *plan_file(file)))));
}

Text validate_runs(const Options& options) {
  const Arguments arguments = arguments_of(Command::kValidate, options);
  return to_text(validate_json(value_of(validate_answer(arguments, interruptible()))));
}

std::vector<std::string> catalogue_names(CatalogueKind kind) {
  return value_of(Catalogue::open()).list(kind);
}

}  // namespace
}  // namespace tpsim::cli

PYBIND11_MODULE(_native, module) {
  namespace py = pybind11;
  using tpsim::CatalogueKind;
  using tpsim::cli::Command;
  module.doc() = "Answers of tpsim as JSON text; see tpsim for the typed functions.";
  module.attr("version") = std::string(tpsim::kVersion);
  py::register_local_exception_translator(tpsim::cli::raise_failures);
  const std::map<std::string, Command> commands = {
      {"plan", Command::kPlan},          {"simulate", Command::kSimulate},
      {"explain", Command::kExplain},    {"campaign", Command::kCampaign},
      {"export", Command::kExport},      {"import_plan", Command::kImport},
      {"check_log", Command::kCheckLog}, {"validate", Command::kValidate}};
  using tpsim::cli::Keyword;
  py::class_<Keyword>(module, "Option")
      .def_readonly("name", &Keyword::name)
      .def_readonly("value", &Keyword::value)
      .def_readonly("takes_list", &Keyword::takes_list);
  std::map<std::string, std::vector<Keyword>> options;
  for (const auto& [name, command] : commands) options[name] = tpsim::cli::keywords(command);
  module.attr("options") = options;
  module.def("plan", tpsim::cli::plan, py::arg("options"), py::arg("plan") = py::none(),
             tpsim::cli::FreeGil());
  module.def("simulate", tpsim::cli::simulate_plan, tpsim::cli::FreeGil());
  module.def("explain", tpsim::cli::explain, tpsim::cli::FreeGil());
  module.def("campaign", tpsim::cli::campaign, tpsim::cli::FreeGil());
  module.def("export", tpsim::cli::export_files, tpsim::cli::FreeGil());
  module.def("import_plan", tpsim::cli::import_plan_file, tpsim::cli::FreeGil());
  module.def("check_log", tpsim::cli::check_log_file, tpsim::cli::FreeGil());
  module.def("validate", tpsim::cli::validate_runs, tpsim::cli::FreeGil());
  module.def("read_plan", tpsim::cli::read_plan_text, tpsim::cli::FreeGil());
  module.def("models", [] { return tpsim::cli::catalogue_names(CatalogueKind::kModels); });
  module.def("clusters", [] { return tpsim::cli::catalogue_names(CatalogueKind::kClusters); });
  module.def("profiles", [] { return tpsim::cli::catalogue_names(CatalogueKind::kProfiles); });
  module.def("stacks", [] { return tpsim::cli::catalogue_names(CatalogueKind::kStacks); });
}
