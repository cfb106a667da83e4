#include <optional>
#include <set>

#include "core/text.h"
#include "stacks/settings_text.h"
#include "stacks/shell_words.h"

namespace tpsim {
namespace {

// References to references, as deep as anybody nests them.
constexpr int kDeepest = 8;
constexpr std::size_t kMostBytes = 1 << 16;

class Values {
 public:
  Values(const std::vector<FlatSetting>& settings, const std::map<std::string, std::string>& given)
      : settings_(settings), given_(given) {}

  std::string resolved(const std::string& key, const std::string& value, int depth = 0) {
    std::string out;
    std::string_view rest = value;
    while (!rest.empty()) {
      const std::size_t at = rest.find("${");
      const std::size_t end = at == std::string_view::npos ? at : closing(rest, at + 2);
      if (end == std::string_view::npos || out.size() > kMostBytes) return out + std::string(rest);
      out += rest.substr(0, at);
      out += value_of(key, rest.substr(at + 2, end - at - 2), depth);
      rest.remove_prefix(end + 1);
    }
    return out;
  }

  const std::set<std::string>& asked() const { return asked_; }

 private:
  // Of the brace that ends "${": others may stand within.
  static std::size_t closing(std::string_view text, std::size_t from) {
    int depth = 1;
    for (std::size_t i = from; i < text.size(); ++i) {
      if (text[i] == '{') ++depth;
      if (text[i] == '}' && --depth == 0) return i;
    }
    return std::string_view::npos;
  }

  const FlatSetting* setting(std::string_view key) const {
    for (const FlatSetting& one : settings_) {
      if (one.key == key) return &one;
    }
    return nullptr;
  }

  // "${.x}" is beside its key, "${..x}" beside the map that holds it. Of a file that another one
  // includes the first word is the place where it is included.
  const FlatSetting* referred(const std::string& key, std::string_view name) const {
    if (name.starts_with('.')) {
      std::string place = key;
      while (name.starts_with('.')) {
        const std::size_t dot = place.rfind('.');
        place = dot == std::string::npos ? "" : place.substr(0, dot);
        name.remove_prefix(1);
      }
      return setting(place.empty() ? std::string(name) : place + "." + std::string(name));
    }
    if (const FlatSetting* own = setting(name)) return own;
    const std::size_t dot = name.find('.');
    return dot == std::string_view::npos ? nullptr : setting(name.substr(dot + 1));
  }

  std::optional<std::string> from_outside(const std::string& name) {
    asked_.insert(name);
    const auto found = given_.find(name);
    return found == given_.end() ? std::nullopt : std::optional(found->second);
  }

  std::string value_of(const std::string& key, std::string_view inside, int depth) {
    std::string_view name = trimmed(inside);
    std::optional<std::string> otherwise;
    if (name.starts_with("oc.env:")) {
      name.remove_prefix(7);
      const std::size_t comma = name.find(',');
      if (comma != std::string_view::npos) otherwise = std::string(trimmed(name.substr(comma + 1)));
      name = trimmed(name.substr(0, comma));
    } else if (const std::size_t mark = name.find(":-"); mark != std::string_view::npos) {
      otherwise = std::string(name.substr(mark + 2));
      name = name.substr(0, mark);
    } else if (name.find(':') == std::string_view::npos) {
      const FlatSetting* own = depth < kDeepest ? referred(key, name) : nullptr;
      if (own != nullptr) return resolved(own->key, own->value, depth + 1);
    }
    const std::string text(name);
    if (auto value = from_outside(text)) return *value;
    return otherwise ? *otherwise : std::string(1, kUnset) + "$" + text;
  }

  const std::vector<FlatSetting>& settings_;
  const std::map<std::string, std::string>& given_;
  std::set<std::string> asked_;
};

}  // namespace

std::vector<FlatSetting> with_values(std::vector<FlatSetting> settings,
                                     const std::map<std::string, std::string>& given) {
  std::set<std::string> placed;
  for (FlatSetting& one : settings) {
    const auto said = given.find(one.key);
    if (said == given.end()) continue;
    one.value = said->second;
    placed.insert(one.key);
  }
  std::vector<FlatSetting> known = settings;
  Values values(settings, given);
  for (FlatSetting& one : known) {
    if (one.value.find("${") != std::string::npos) one.value = values.resolved(one.key, one.value);
    if (one.value == "null") one.value.clear();
  }
  for (const auto& [name, value] : given) {
    if (!placed.contains(name) && !values.asked().contains(name)) known.push_back({name, value, 0});
  }
  return known;
}

}  // namespace tpsim
