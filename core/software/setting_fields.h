// JSON fields of lists of plan settings, one key per SettingRow (core/plan/plan_settings.h).
#pragma once

#include "core/json/json_fields.h"
#include "core/plan/plan_settings.h"

namespace tpsim {

// Reads or writes the values of each setting. Empty lists have no key.
template <class Io, class Lists>
void setting_list_fields(Io& io, Lists& lists) {
  for (const SettingRow& row : setting_rows()) {
    if (row.kind == SettingKind::kList) continue;
    auto& values = lists[row.setting];
    if (row.words.empty()) {
      io.integers({row.key, row.help}, values, {row.least, row.most}, kOptional);
    } else {
      io.word_list({row.key, row.help}, values, row.words, kOptional);
    }
  }
}

}  // namespace tpsim
