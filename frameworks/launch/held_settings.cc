#include "frameworks/launch/held_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "core/base/check.h"
#include "core/base/text.h"
#include "frameworks/launch/environment_parts.h"

namespace tpsim {

extern const std::span<const unsigned char> kHeldSettings;  // held_settings.txt

namespace {

constexpr int kLauncherCount = static_cast<int>(LaunchStack::kDeepSpeed) + 1;
constexpr std::string_view kAll = "*", kIdle = "-";

struct HeldRow {
  std::string_view key;
  std::string_view launchers;  // separated by spaces
  std::string_view values;     // kAll, kIdle, or values that are written, separated by spaces
  std::string_view otherwise = {};
};
constexpr HeldRow kWritten{"", "", kAll};
// Nanotron states no part that lacks a row.
constexpr HeldRow kNanotron{"", "nanotron", "",
                            "its configuration has no such key (src/nanotron/config/config.py)"};
constexpr HeldRow kFinetune{"", "", "",
                            "tpsim cannot write adapters and frozen weights into launch files yet"};

bool is_known(const HeldRow& row) {
  const auto has_key = [&](const auto& one) { return one.key == row.key; };
  const auto settings = setting_rows();
  const auto parts = part_rows();
  return std::any_of(settings.begin(), settings.end(), has_key) ||
         std::any_of(parts.begin(), parts.end(), has_key);
}

std::vector<HeldRow> read_rows() {
  std::string_view text = as_text(kHeldSettings);
  std::vector<HeldRow> rows;
  while (!text.empty()) {
    std::string_view line = cut_off(text, "\n");
    if (line.starts_with('#')) continue;
    HeldRow& row = rows.emplace_back();
    row.key = cut_off(line, "|");
    row.launchers = cut_off(line, "|");
    row.values = cut_off(line, "|");
    row.otherwise = line;
    TPSIM_CHECK(is_known(row), "held_settings.txt has a row of an unknown setting");
  }
  return rows;
}

const std::vector<HeldRow>& held_rows() {
  static const std::vector<HeldRow> kRows = read_rows();
  return kRows;
}

const HeldRow* row_in_table(LaunchStack stack, std::string_view key) {
  for (const HeldRow& row : held_rows()) {
    if (row.key == key && matches_any(name_of(stack), row.launchers)) return &row;
  }
  return nullptr;
}

const HeldRow& held_row(LaunchStack stack, const SettingRow& setting) {
  const HeldRow* const found = row_in_table(stack, setting.key);
  return found == nullptr ? kWritten : *found;
}

// Environment variables state a part for all launchers.
const HeldRow& held_row(LaunchStack stack, const PartRow& part) {
  if (is_in_environment(part.part)) return kWritten;
  const HeldRow* const found = row_in_table(stack, part.key);
  if (found != nullptr) return *found;
  if (is_of_adapters(part.part)) return kFinetune;
  return stack == LaunchStack::kNanotron ? kNanotron : kWritten;
}

Held held_in(const HeldRow& row, std::string_view value) {
  if (row.values == kIdle) return Held::kNoEffect;
  return row.values == kAll || matches_any(value, row.values) ? Held::kWritten : Held::kRefused;
}

template <class Row>
std::string held_line(const Row& row) {
  std::string text = fmt::format("| `{}` |", row.key);
  for (int i = 0; i < kLauncherCount; ++i) {
    const HeldRow& cell = held_row(static_cast<LaunchStack>(i), row);
    const bool lists = !cell.values.empty() && cell.values != kAll && cell.values != kIdle;
    const std::string words =
        joined_text(words_in(std::string(cell.values)), ", ",
                    [](const std::string& word) { return fmt::format("`{}`", word); });
    text += fmt::format(" {} |", lists ? words : name_of(held_in(cell, "")));
  }
  return text + "\n";
}

}  // namespace

Held held(LaunchStack stack, const SettingValue& value) {
  return held_in(held_row(stack, row_of(value.setting)), text_of(value));
}

Held held(LaunchStack stack, StackPart part, std::int64_t value) {
  return held_in(held_row(stack, row_of(part)), text_of(row_of(part), value));
}

std::string_view fixed_behaviour(LaunchStack stack, StackPart part) {
  return held_row(stack, row_of(part)).otherwise;
}

std::string held_settings_text() {
  std::string text = "| setting or part |", line = "|---|";
  for (int i = 0; i < kLauncherCount; ++i) {
    text += fmt::format(" {} |", name_of(static_cast<LaunchStack>(i)));
    line += "---|";
  }
  text += "\n" + line + "\n";
  for (const SettingRow& row : setting_rows()) text += held_line(row);
  for (const PartRow& row : part_rows()) text += held_line(row);
  return text;
}

std::string fixed_behaviour_text() {
  std::string text = "| part | launchers | behavior |\n|---|---|---|\n";
  for (const HeldRow& row : held_rows()) {
    if (row.otherwise.empty()) continue;
    const std::string names = joined_text(words_in(std::string(row.launchers)), ", ",
                                          [](const std::string& name) { return name; });
    text += fmt::format("| `{}` | {} | {} |\n", row.key, names, row.otherwise);
  }
  return text + fmt::format("| parts of adapters | all | {} |\n| all | nanotron | {} |\n",
                            kFinetune.otherwise, kNanotron.otherwise);
}

}  // namespace tpsim
