#include "gui/window/start_options.h"

#include <string_view>

#include "core/base/leading_number.h"
#include "gui/panels/actions.h"
#include "gui/views/choice.h"

namespace tpsim::gui {
namespace {

// Parses a whole number; -1 if the text is not a number.
std::int64_t whole(const std::string& text) {
  return parse_number<std::int64_t>(text).value_or(-1);
}

Status set_size(const std::string& text, StartOptions& options) {
  const std::size_t x = text.find('x');
  const std::int64_t width = x == std::string::npos ? -1 : whole(text.substr(0, x));
  const std::int64_t height = x == std::string::npos ? -1 : whole(text.substr(x + 1));
  if (width < 320 || height < 240 || width > 8192 || height > 8192) {
    return bad_input("'" + text + "' is not a window size", "--size",
                     "give a size from 320x240 to 8192x8192, for example 1280x800");
  }
  options.width = static_cast<int>(width);
  options.height = static_cast<int>(height);
  return Ok{};
}

Status set_count(std::string_view name, const std::string& text, std::int64_t& out) {
  out = whole(text);
  if (out >= 1) return Ok{};
  return bad_input("'" + text + "' is not a whole number of at least 1", std::string(name));
}

Status set_option(std::string_view name, const std::string& value, StartOptions& options) {
  if (name == "--model") return options.model = value, Ok{};
  if (name == "--cluster") return options.cluster = value, Ok{};
  if (name == "--gpus") return set_count(name, value, options.gpus);
  if (name == "--global-batch") return set_count(name, value, options.global_batch);
  if (name == "--measured") return options.measured = value, Ok{};
  if (name == "--screenshot") return options.screenshot = value, Ok{};
  if (name == "--script") return options.script = value, Ok{};
  if (name == "--size") return set_size(value, options);
  if (name == "--theme") return options.is_dark = value == "dark", Ok{};
  return bad_input("unknown option '" + std::string(name) + "'", "",
                   "tpsim gui --help lists the options");
}

}  // namespace

Result<StartOptions> start_options(int argc, const char* const* argv) {
  StartOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (!name.starts_with("--")) {
      options.file = name;
      continue;
    }
    if (i + 1 == argc) return bad_input("needs a value", std::string(name));
    TPSIM_TRY_STATUS(set_option(name, argv[++i], options));
  }
  return options;
}

Result<AppState> start_state(const StartOptions& options, const Catalogue& catalogue) {
  AppState state;
  state.theme = options.is_dark ? Theme::kDark : Theme::kLight;
  if (!options.file.empty()) TPSIM_TRY_STATUS(open_file(options.file, state));
  Choice& choice = state.choice;
  if (!options.model.empty()) {
    choose_model(options.model, choice);
    state.opened_file.clear();
    state.plan.reset();
    // Uses the model's default cluster, as `tpsim plan` does. Errors of the model are reported when
    // it is loaded.
    const Result<ModelSpec> model = catalogue.load_model(options.model);
    const bool is_usual = options.file.empty() && model.ok() && !model->usual.cluster.empty();
    if (is_usual) choice.cluster = model->usual.cluster;
  }
  if (!options.cluster.empty()) choose_cluster(options.cluster, choice);
  if (options.gpus > 0) choice.gpus = options.gpus, state.plan.reset();
  if (options.global_batch > 0) choice.global_batch = options.global_batch, state.plan.reset();
  state.measured_file = options.measured;
  if (!options.measured.empty()) state.detail = DetailTab::kMeasured;
  return state;
}

}  // namespace tpsim::gui
