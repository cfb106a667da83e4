// Expands the output of commands in $(): paths that a script derives from its own location, echo,
// expr and here-documents. The script's folder and the working directory are both ".".
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "core/base/text.h"
#include "formats/shell_words.h"

namespace tpsim {
namespace {

namespace fs = std::filesystem;

bool is_quiet(const std::string& word) { return word == "--" || word == "-P" || word == "-f"; }

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string base_of(const std::string& path, const std::string& ending) {
  std::string base = path.substr(path.find_last_of('/') + 1);
  if (base.size() > ending.size() && base.ends_with(ending)) {
    base.resize(base.size() - ending.size());
  }
  return base;
}

}  // namespace

std::string echoed(const std::vector<std::string>& words) {
  const bool has_option = words.size() > 1 && words[1].starts_with('-');
  return fmt::format("{}", fmt::join(words.begin() + (has_option ? 2 : 1), words.end(), " "));
}

std::string plain_path(std::string_view path) {
  std::string plain = fs::path(path).lexically_normal().generic_string();
  if (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  return plain;
}

std::optional<std::string> ShellVariables::printed_text(std::string_view inside) {
  constexpr int kDeepestFolders = 8;
  if (depth_ >= kDeepestFolders) return std::nullopt;
  const auto tokens = shell_tokens(inside, "");
  if (!tokens.ok()) return std::nullopt;
  if (tokens->size() >= 2 && tokens->front().text == "cat" && (*tokens)[1].is_document) {
    const ShellToken& document = (*tokens)[1];
    std::string text = document.is_expanded ? expanded_document(document.text) : document.text;
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }
  std::string folder = ".";  // working directory of the next command
  std::vector<std::string> words;
  std::optional<std::string> printed;
  ++depth_;
  const auto finish = [&] {
    if (words.empty()) return true;
    const std::string name = words.front();
    std::erase_if(words, is_quiet);
    if (name == "pwd") {
      printed = folder;
    } else if (name == "cd" && words.size() == 2) {
      folder = words[1];
    } else if (name == "dirname" && words.size() == 2) {
      printed = parent_of(words[1]);
    } else if ((name == "realpath" || name == "readlink") && words.size() == 2) {
      printed = words[1];
    } else if (name == "basename" && (words.size() == 2 || words.size() == 3)) {
      printed = base_of(words[1], words.size() == 3 ? words[2] : "");
    } else if (name == "expr") {
      const auto value =
          arithmetic(fmt::format("{}", fmt::join(words.begin() + 1, words.end(), " ")));
      if (!value) return false;
      printed = std::to_string(*value);
    } else if (name == "echo") {
      printed = echoed(words);
    } else {
      return false;
    }
    words.clear();
    return true;
  };
  bool is_known = true;
  for (const ShellToken& token : *tokens) {
    if (token.kind == ShellTokenKind::kRedirect) continue;
    if (token.kind == ShellTokenKind::kSeparator) {
      is_known = is_known && (token.text == "&&" || token.text == ";") && finish();
      continue;
    }
    is_known = is_known && !token.is_array;
    for (std::string& field : expanded(token.text)) {
      is_known = is_known && !unset_name(field);
      words.push_back(std::move(field));
    }
    if (!is_known) break;
  }
  is_known = is_known && finish();
  --depth_;
  return is_known ? printed : std::nullopt;
}

}  // namespace tpsim
