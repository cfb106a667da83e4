#include "frameworks/launch/config_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/text.h"

namespace tpsim {
namespace {

const LeftOver* row_for(const FlatSetting& setting, std::span<const LeftOver> rows) {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const LeftOver& one) {
    return has_pattern(setting.key, one.patterns);
  });
  return row == rows.end() ? nullptr : &*row;
}

bool is_switched_off(const FlatSetting& setting) {
  return setting.value.empty() || matches_any(in_lower_case(setting.value), "false 0 none no");
}

bool is_refused(const FlatSetting& setting, const LeftOver* row) {
  return row != nullptr && !row->why.empty() && !is_switched_off(setting) &&
         !is_harmless(*row, setting.value);
}

void refuse(const FlatSetting& setting, const LeftOver& row, const LaunchFile& file,
            LeftSettings& left) {
  left.refuse(setting.key, fmt::format("{}: {}", setting.key, setting.value), std::string(row.why),
              place_of(path_of(file), setting.line));
}

}  // namespace

bool may_start_training(std::string_view text) {
  constexpr std::string_view kStarters[] = {
      "torchrun", "torch.distributed", "accelerate launch", "deepspeed ", "srun ", "mpirun "};
  return std::any_of(std::begin(kStarters), std::end(kStarters), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

bool has_prefix(const std::vector<FlatSetting>& settings, std::string_view prefix) {
  return std::any_of(settings.begin(), settings.end(),
                     [&](const FlatSetting& one) { return one.key.starts_with(prefix); });
}

bool is_of_bridge(const std::vector<FlatSetting>& settings) {
  for (const char* key :
       {"train.global_batch_size", "train.micro_batch_size", "train.train_iters"}) {
    if (has_key(settings, key)) return true;
  }
  return false;
}

bool states_model(const std::vector<FlatSetting>& settings) {
  return has_key(settings, "model.num_layers") && has_key(settings, "model.hidden_size") &&
         has_key(settings, "model.num_attention_heads");
}

std::vector<FlatSetting> with_todays_sections(std::vector<FlatSetting> settings) {
  constexpr std::string_view kWrapper = "ConfigContainer.";
  constexpr std::string_view kOld = "_config";
  const bool is_old =
      has_prefix(settings, "train_config.") || has_prefix(settings, "model_config.");
  for (FlatSetting& one : settings) {
    if (one.key.starts_with(kWrapper)) one.key.erase(0, kWrapper.size());
    const std::size_t dot = one.key.find('.');
    if (!is_old || dot == std::string::npos) continue;
    if (std::string_view(one.key).substr(0, dot).ends_with(kOld)) {
      one.key.erase(dot - kOld.size(), kOld.size());
    }
  }
  return settings;
}

void OpenQuestions::ask(OpenQuestion question) {
  const bool is_known = std::any_of(
      all_.begin(), all_.end(), [&](const OpenQuestion& one) { return one.what == question.what; });
  if (!is_known) all_.push_back(std::move(question));
}

Status OpenQuestions::status() const {
  if (all_.empty()) return Ok{};
  std::string what, answers;
  for (const OpenQuestion& one : all_) {
    what += (what.empty() ? "" : "; ") + one.what;
    answers += (answers.empty() ? "add " : ", and ") + one.answer;
  }
  return bad_input(std::move(what), "", std::move(answers));
}

void refuse_first(FlatReader& in, const LaunchFile& file, std::span<const LeftOver> rows,
                  LeftSettings& left) {
  std::erase_if(in.left(), [&](const FlatSetting& setting) {
    const LeftOver* const row = row_for(setting, rows);
    if (!is_refused(setting, row)) return false;
    refuse(setting, *row, file, left);
    return true;
  });
}

Status settle_left(FlatReader& in, const LaunchFile& file, std::span<const LeftOver> rows,
                   std::vector<std::string>& outside, LeftSettings& left) {
  for (const FlatSetting& setting : in.left()) {
    const LeftOver* const row = row_for(setting, rows);
    if (is_refused(setting, row)) {
      refuse(setting, *row, file, left);
    } else if (row == nullptr && !is_switched_off(setting)) {
      left.ask(setting.key, nearest(setting.key, in.asked()),
               place_of(path_of(file), setting.line));
    } else if (row != nullptr && row->why.empty() && !setting.value.empty()) {
      add_outside(setting.key, outside);
    }
  }
  return in.error();
}

}  // namespace tpsim
