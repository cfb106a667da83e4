#include "formats/unset_marks.h"

#include <fmt/format.h>

#include <cctype>

#include "core/base/text.h"

namespace tpsim {
namespace {

constexpr std::string_view kMarks = "\x01\x02";

bool is_output(std::string_view name) { return name.starts_with("$("); }
std::string_view command_in(std::string_view name) { return name.substr(2, name.size() - 3); }

// Returns the position after the unknown value that starts at the first kUnset.
std::size_t end_of_name(std::string_view word, std::size_t begin) {
  if (is_output(word.substr(begin))) return std::min(word.find(kUnsetEnd, begin), word.size());
  std::size_t end = std::min(begin + 1, word.size());
  while (end < word.size() &&
         (std::isalnum(static_cast<unsigned char>(word[end])) != 0 || word[end] == '_')) {
    ++end;
  }
  return end;
}

}  // namespace

std::optional<std::string> unset_name(std::string_view word) {
  const std::size_t mark = word.find(kUnset);
  if (mark == std::string_view::npos) return std::nullopt;
  const std::size_t begin = std::min(word.find_first_not_of(kUnset, mark), word.size());
  return std::string(word.substr(begin, end_of_name(word, begin) - begin));
}

std::string without_marks(std::string_view word) {
  std::string text(word);
  std::erase_if(text, [](char c) { return kMarks.find(c) != std::string_view::npos; });
  return text;
}

bool is_unset_word(std::string_view word) {
  if (!word.starts_with(kUnset)) return false;
  const std::size_t end = end_of_name(word, std::min(word.find_first_not_of(kUnset), word.size()));
  return word.substr(end).find_first_not_of(kMarks) == std::string_view::npos;
}

bool may_be_words(std::string_view word) {
  constexpr std::string_view kPrintOneWord =
      "df free git hostname id ifconfig ip lscpu nproc nvidia-smi openssl scontrol shuf uuidgen "
      "whoami";
  if (word.size() < 2 || word[0] != kUnset || word[1] != kUnset || !is_unset_word(word))
    return false;
  const std::string name = unset_name(word).value_or("");
  if (!is_output(name)) return false;
  const std::string_view command = command_in(name);
  return !matches_any(command.substr(0, command.find(' ')), kPrintOneWord);
}

std::string why_unset(std::string_view name) {
  if (!is_output(name)) return fmt::format("{}, which the script does not set", name);
  return fmt::format("the output of '{}', which tpsim does not run", command_in(name));
}

std::string unset_remedy(std::string_view name) {
  if (!is_output(name)) return fmt::format("--set {}=VALUE", name.substr(1));
  return fmt::format("--answer '{}=TEXT'", command_in(name));
}

}  // namespace tpsim
