// One value of several keys, and the text of a file that a configuration names.
#include "frameworks/huggingface/trainer_keys.h"

#include <fmt/format.h>

namespace tpsim {
namespace {

// Scripts and trainings are started from the top of their repository.
constexpr int kAbove = 4;

}  // namespace

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

std::optional<std::string> text_of_named(const std::string& name, const ImportInputs& inputs) {
  for (const LaunchFile& more : inputs.more) {
    if (path_of(more) == name) return more.text;
  }
  std::string place = name;
  for (int i = 0; inputs.open && i <= kAbove; ++i) {
    auto text = inputs.open(place);
    if (text.ok()) return *std::move(text);
    place.insert(0, "../");
  }
  return std::nullopt;
}

Error not_there(const std::string& name, const std::string& by, const std::string& otherwise) {
  return bad_input(fmt::format("names {}, which is not there", name), by,
                   "put it where the name leads from this file" + otherwise);
}

}  // namespace tpsim
