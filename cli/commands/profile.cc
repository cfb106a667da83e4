// tpsim profile: measures the ops and collectives of a model's plans on this machine.
#include <fmt/format.h>

#include <algorithm>

#include "app/answers/datasheet.h"
#include "cli/commands/commands.h"
#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "core/base/date.h"
#include "core/base/files.h"
#include "core/base/standard_streams.h"
#include "core/machine/profile_json.h"
#include "devices/measured_profile.h"

namespace tpsim::cli {
namespace {

Result<ProfilingRequest> profiling_request(const Arguments& arguments) {
  TPSIM_TRY(const auto file, read_plan_argument(arguments));
  ProfilingRequest request;
  TPSIM_TRY(request.scenario, scenario_request(arguments, file));
  if (file) {
    TPSIM_TRY(request.settings, single_settings(arguments));
  } else if (arguments.has("--model")) {
    TPSIM_TRY(request.search, search_request(arguments));
  }
  request.device = arguments["--device"].value_or(request.device);
  request.is_quick = arguments.has("--quick");
  request.all_collectives = arguments.has("--collectives");
  request.command = printable(arguments.command_line);
  return request;
}

std::string summary(const MeasuredProfile& measured, const std::string& path, bool is_quick) {
  const Profile& profile = measured.profile;
  double widest = 0;
  for (const OpSample& sample : profile.ops) widest = std::max(widest, sample.spread);
  std::string text = fmt::format(
      "{}\n{} ops and {} collectives timed; GEMMs reach {}, copies {}; largest spread {:.1f} %\n",
      printable(profile.machine.description), profile.ops.size(), profile.collectives.size(),
      to_string(profile.device.matmul_peak), to_string(profile.device.memory_bandwidth),
      100 * widest);
  if (measured.without_sample > 0) {
    text += fmt::format(
        "{} ops have no sample because {}other programs kept the cores busy; measure again on an "
        "idle machine{}\n",
        measured.without_sample, is_quick ? "--quick ended before them, or " : "",
        is_quick ? " or without --quick" : "");
  }
  if (measured.group_left_out > 0) {
    text += fmt::format("collectives of more ranks than ran here, up to {} ranks, were not timed\n",
                        measured.group_left_out);
  }
  return text + fmt::format("wrote {}\n", printable(path));
}

// Writes the profile of a GPU datasheet to the output file, or prints it without one.
Result<Answer> write_datasheet_profile(const Arguments& arguments) {
  const std::string& name = *arguments["--from-datasheet"];
  TPSIM_TRY(const DatasheetProfile made, datasheet_profile(name, arguments.words(), utc_date()));
  if (!arguments.has("-o")) return Answer{.text = made.text + "\n", .is_prose = false};
  const std::string& path = *arguments["-o"];
  TPSIM_TRY_STATUS(write_file_atomically(path, made.text + "\n"));
  return Answer{
      .text = fmt::format(
          "{}: {} of {}, {} of memory at {}; it multiplies {} in addition to {}\n"
          "no op was timed: predictions with --profile {} have the wide interval of datasheet "
          "profiles\n"
          "wrote {}\n",
          printable(name), to_string(made.profile.device.matmul_peak),
          name_of(made.profile.device.matmul_dtype), to_string(made.profile.device.memory),
          to_string(made.profile.device.memory_bandwidth), narrow_types_text(made.profile.device),
          name_of(made.profile.device.matmul_dtype), printable(path), printable(path)),
      .is_prose = false};
}

}  // namespace

Result<Answer> run_profile(const Arguments& arguments, const Terminal& terminal) {
  if (arguments.has("--from-datasheet")) return write_datasheet_profile(arguments);
  if (!arguments.more.empty()) {
    return bad_input(fmt::format("unexpected argument '{}'", arguments.more[0]), "profile",
                     "KEY=VALUE arguments need --from-datasheet NAME");
  }
  if (!arguments.has("-o")) {
    return option_error("-o", "the output file is missing", "give -o profile.json");
  }
  TPSIM_TRY(ProfilingRequest request, profiling_request(arguments));
  ProgressBar checking(terminal, "checking"), timing(terminal, "timing");
  request.progress = [&](std::string_view what, double share) {
    if (what == "timing") checking.clear();
    (what == "timing" ? timing : checking).show(share);
  };
  TPSIM_TRY(const std::optional<MeasuredProfile> measured, measured_profile(request));
  if (!measured) return Answer{};
  timing.clear();
  if (measured->too_large > 0) {
    say(fmt::format("tpsim: {} ops are too large to be timed here\n", measured->too_large));
  }
  const std::string& path = *arguments["-o"];
  TPSIM_TRY_STATUS(write_file_atomically(path, to_json(measured->profile)));
  for (const std::string& note : measured->notes) {
    if (!arguments.has("--quiet")) say(fmt::format("tpsim: {}\n", printable(note)));
  }
  return Answer{.text = summary(*measured, path, request.is_quick), .is_prose = false};
}

}  // namespace tpsim::cli
