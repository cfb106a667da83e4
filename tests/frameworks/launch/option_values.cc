#include "tests/frameworks/launch/option_values.h"

#include <charconv>

namespace tpsim::test {
namespace {

bool is_number(const std::string& text, bool whole) {
  double value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, value);
  return code == std::errc() && end == last && (!whole || text.find_first_of(".e") == text.npos);
}

bool suits(const std::string& kind, const std::string& value) {
  if (kind == "*") return !value.empty();
  if (kind == "int" || kind == "float") return is_number(value, kind == "int");
  return ("|" + kind + "|").find("|" + value + "|") != std::string::npos;
}

}  // namespace

std::string parse_options(const std::vector<std::string>& words, const std::vector<Option>& known,
                          OptionValues& values) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Option* option = nullptr;
    for (const Option& one : known) {
      if (words[i] == one.name) option = &one;
    }
    if (option == nullptr) return "unrecognized argument " + words[i];
    if (values.count(words[i]) > 0) return words[i] + " is given twice";
    std::string value = "yes";
    if (*option->kind != '\0') {
      if (i + 1 == words.size()) return words[i] + " expects a value";
      value = words[i + 1];
      if (!suits(option->kind, value)) return words[i] + ": invalid value " + value;
    }
    values[words[i]] = value;
    i += *option->kind != '\0' ? 1 : 0;
  }
  return "";
}

std::int64_t number(const OptionValues& values, const std::string& name, std::int64_t otherwise) {
  const auto found = values.find(name);
  return found == values.end() ? otherwise : std::stoll(found->second);
}

std::string word(const OptionValues& values, const std::string& name, const char* otherwise) {
  const auto found = values.find(name);
  return found == values.end() ? otherwise : found->second;
}

bool has(const OptionValues& values, const std::string& name) { return values.count(name) > 0; }

}  // namespace tpsim::test
