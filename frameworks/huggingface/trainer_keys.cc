// Reads settings that may have one of several keys.
#include "frameworks/huggingface/trainer_keys.h"

namespace tpsim {
std::optional<std::string> any_text(FlatReader& in, std::initializer_list<const char*> keys) {
  std::optional<std::string> value;
  for (const char* key : keys) {
    const auto one = in.text(key);
    if (!value) value = one;
  }
  return value;
}
bool any_flag(FlatReader& in, std::initializer_list<const char*> keys) {
  bool on = false;
  for (const char* key : keys) on |= in.flag(key, false);
  return on;
}
std::int64_t any_integer(FlatReader& in, std::initializer_list<const char*> keys) {
  std::int64_t value = -1;
  for (const char* key : keys) {
    const std::int64_t one = in.integer(key, -1);
    if (value < 0) value = one;
  }
  return value;
}

std::vector<FlatSetting> with_flat_values(std::vector<FlatSetting> settings) {
  std::vector<FlatSetting> flat;
  for (FlatSetting& one : settings) {
    const auto inside = one.value.starts_with('{') ? flat_settings({"value.json", one.value})
                                                   : Result<std::vector<FlatSetting>>(Error{});
    if (!inside.ok()) {
      flat.push_back(std::move(one));
      continue;
    }
    for (const FlatSetting& inner : *inside) {
      flat.push_back({one.key + "." + inner.key, inner.value, one.line});
    }
  }
  return flat;
}

}  // namespace tpsim
