// The comment line by which exported files name their model. Files of some launchers state only a
// part of the model.
#include "frameworks/launch/named_model.h"

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/model/model_json.h"

namespace tpsim {
namespace {

constexpr std::string_view kStart = "# tpsim model: ";
constexpr std::string_view kShape = ", shape ";

struct NamedModel {
  std::string name;
  std::string shape;  // shape_hash()
};

// Parses the first line of the files that starts with kStart.
std::optional<NamedModel> named_in(const std::vector<LaunchFile>& files) {
  for (const LaunchFile& file : files) {
    std::size_t at = file.text.find(kStart);
    if (at == std::string::npos) continue;
    at += kStart.size();
    const std::string line = file.text.substr(at, file.text.find('\n', at) - at);
    const std::size_t comma = line.find(", "), shape = line.rfind(kShape);
    if (comma == std::string::npos || shape == std::string::npos) return std::nullopt;
    return NamedModel{line.substr(0, comma), line.substr(shape + kShape.size())};
  }
  return std::nullopt;
}

}  // namespace

std::string shape_hash(ModelSpec model) {
  model.name = model.source = "";
  model.notes.clear();
  model.usual = {};
  model.seq = 1;
  model.attention_dropout = model.hidden_dropout = 0;
  model.experts.dropless = true;
  model.experts.capacity_factor = 1;
  return fmt::format("{:016x}", fnv1a(to_json(model)));
}

std::string model_line(const ModelSpec& model) {
  constexpr double kBillion = 1e9;
  const double parameters = static_cast<double>(parameter_count(model)) / kBillion;
  if (model.name.empty() || model.name.find_first_of(",\n") != std::string::npos) return "";
  return fmt::format("{}{}, {:.4g} B parameters{}{}\n", kStart, model.name, parameters, kShape,
                     shape_hash(model));
}

bool names_model(std::string_view text) { return text.find(kStart) != std::string_view::npos; }

Result<ImportedPlan> import_with_named_model(const std::vector<LaunchFile>& files,
                                             const ImportInputs& inputs, const ModelReader& read) {
  const bool may_name = !inputs.model && inputs.load && inputs.left == nullptr;
  const auto named = may_name ? named_in(files) : std::nullopt;
  if (!named) return read(inputs);
  Result<ModelSpec> model = inputs.load(named->name);
  if (!model.ok() || shape_hash(*model) != named->shape) {
    Result<ImportedPlan> plan = read(inputs);
    if (plan.ok()) return plan;
    Error error = plan.error();
    error.message +=
        fmt::format(" (the file was exported for {}, which is not in the catalogue)", named->name);
    return error;
  }
  ImportInputs with_model = inputs;
  with_model.model = *std::move(model);
  Result<ImportedPlan> plan = read(with_model);
  if (plan.ok()) return plan;
  // The file was edited, and may describe another model.
  Result<ImportedPlan> other = read(inputs);
  if (!other.ok()) return plan;
  other->notes.push_back(
      fmt::format("the file names {}, but states another model, which is predicted", named->name));
  return other;
}

}  // namespace tpsim
