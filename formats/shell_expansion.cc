#include <algorithm>
#include <cctype>

#include "core/base/text.h"
#include "formats/shell_words.h"

namespace tpsim {
namespace {

constexpr int kDeepestExpansion = 32;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Returns an unknown value: kUnset and the name. Of a name with spaces, such as "$(date +%s)", only
// the first word is kept ("$(date...)"), because spaces would split the field. Its parentheses are
// closed, since eval reads the value again.
std::string unset(std::string_view name) {
  const std::size_t blank = name.find_first_of(" \t\n");
  std::string kept = std::string(1, kUnset) + std::string(name.substr(0, blank));
  if (blank == std::string_view::npos) return kept;
  std::string open;  // what closes the open parts, innermost last
  for (const char c : kept) {
    if (!open.empty() && c == open.back()) {
      open.pop_back();
    } else if (c == '(' || c == '`') {
      open += c == '(' ? ')' : '`';
    }
  }
  std::reverse(open.begin(), open.end());
  return kept + "..." + open;
}

std::string in_case(std::string text, bool upper) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    c = static_cast<char>(upper ? std::toupper(byte) : std::tolower(byte));
  }
  return text;
}

}  // namespace

std::optional<std::string> unset_name(std::string_view word) {
  const std::size_t mark = word.find(kUnset);
  if (mark == std::string_view::npos) return std::nullopt;
  std::size_t begin = mark;  // expanding a word twice gives two marks
  while (begin < word.size() && word[begin] == kUnset) ++begin;
  std::size_t end = begin;
  if (end < word.size() && word[end] == '$') ++end;
  while (end < word.size() && is_name(word[end])) ++end;
  const std::string_view name = word.substr(begin, end - begin);
  return name == "$" ? std::string() : std::string(name);  // the output of a program has no name
}

std::string without_marks(std::string_view word) {
  std::string text(word);
  std::erase(text, kUnset);
  return text;
}

void ShellVariables::set(const std::string& name, std::vector<std::string> values) {
  if (!entries_.contains(name)) order_.push_back(name);
  entries_[name].values = std::move(values);
}

void ShellVariables::pin(const std::string& name, std::string value) {
  set(name, {std::move(value)});
  pinned_.insert(name);
}

void ShellVariables::append(const std::string& name, const std::vector<std::string>& values,
                            bool as_array) {
  if (!entries_.contains(name)) order_.push_back(name);
  std::vector<std::string>& held = entries_[name].values;
  if (as_array) {
    constexpr std::size_t kMostElements = std::size_t{1} << 16;
    if (held.size() < kMostElements) held.insert(held.end(), values.begin(), values.end());
    return;
  }
  if (held.empty()) held.emplace_back();
  for (const std::string& value : values) held.front() += value;
  if (held.front().size() > kMostShellBytes) held.front().resize(kMostShellBytes);
}

void ShellVariables::erase(const std::string& name) {
  entries_.erase(name);
  std::erase(order_, name);
}

void ShellVariables::leave_empty(const std::string& name) {
  constexpr std::size_t kMostNames = std::size_t{1} << 16;
  if (empty_.size() < kMostNames) empty_.insert(name);
}

const std::vector<std::string>* ShellVariables::find(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second.values;
}

std::vector<std::string> ShellVariables::unused() const {
  std::vector<std::string> names;
  for (const std::string& name : order_) {
    if (!entries_.at(name).used) names.push_back(name);
  }
  return names;
}

// The fields of an expanded word, built from left to right. Unquoted text is split at blanks.
struct ShellVariables::Expansion {
  std::vector<std::string> fields;
  bool open = false;  // the last field is still being extended
  std::size_t bytes = 0;

  void put(std::string_view text, bool quoted) {
    if (bytes + text.size() > kMostShellBytes) return;
    bytes += text.size();
    if (quoted) {
      grow() += text;
      return;
    }
    for (const char c : text) {
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        open = false;
      } else {
        grow() += c;
      }
    }
  }
  std::string& grow() {
    if (!open) fields.emplace_back();
    open = true;
    return fields.back();
  }
};

void ShellVariables::put_variable(const std::string& name, bool quoted, Expansion& out) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    const bool arguments = name == "@" || name == "*";  // empty if no arguments are given
    if (!arguments && !empty_.contains(name)) out.put(unset("$" + name), true);
    return;
  }
  found->second.used = true;
  const auto& values = found->second.values;
  const std::size_t most = name == "@" || name == "*" ? values.size() : 1;
  for (std::size_t i = 0; i < std::min(most, values.size()); ++i) {
    if (i > 0) out.open = false;
    out.put(values[i], quoted);
  }
}

// Expands ${...}. `inside` is the text between the braces.
void ShellVariables::expand_braces(std::string_view inside, bool quoted, Expansion& out) {
  std::size_t end = 0;
  while (end < inside.size() && is_name(inside[end])) ++end;
  const std::string name(inside.substr(0, end));
  std::string_view rest = inside.substr(end);
  if (name.empty()) return out.put(unset("${" + std::string(inside) + "}"), true);
  const auto found = entries_.find(name);
  const bool known = found != entries_.end();
  if (rest == "[@]" || rest == "[*]") {
    if (!known) return;  // an unset array is empty
    found->second.used = true;
    bool first = true;
    for (const std::string& value : std::vector<std::string>(found->second.values)) {
      if (!first) out.open = false;
      first = false;
      out.put(value, quoted);
    }
    return;
  }
  const bool colon = rest.starts_with(':');
  const char kind = rest.size() > (colon ? 1U : 0U) ? rest[colon ? 1 : 0] : '\0';
  const bool empty =
      !known || (colon && (found->second.values.empty() || found->second.values.front().empty()));
  if (kind == '-' || kind == '=') {
    if (!empty) return put_variable(name, quoted, out);
    if (!known) note_missing(name);
    const std::string_view otherwise = rest.substr(colon ? 2 : 1);
    if (kind == '=') set(name, {expanded_text(otherwise)});
    return expand_into(otherwise, quoted, out);
  }
  if (kind == '+') {
    if (!empty) expand_into(rest.substr(colon ? 2 : 1), quoted, out);
    return;
  }
  if ((rest == ",," || rest == "^^") && known && !found->second.values.empty()) {
    found->second.used = true;
    return out.put(in_case(found->second.values.front(), rest == "^^"), quoted);
  }
  if (rest.empty() || kind == '?' || (!known && empty_.contains(name))) {
    return put_variable(name, quoted, out);
  }
  if (rest == "[0]" && known) return put_variable(name, quoted, out);
  out.put(unset("${" + std::string(inside) + "}"), true);
}

// Expands "`pwd`" like "$(pwd)".
void ShellVariables::put_backquoted(std::string_view word, std::size_t& at, bool quoted,
                                    Expansion& out) {
  const std::size_t end = std::min(word.find('`', at + 1), word.size());
  const auto printed = printed_text(word.substr(at + 1, end - at - 1));
  const std::string inside(word.substr(at + 1, end - at - 1));
  out.put(printed ? *printed : unset("$(" + inside + ")"), quoted || !printed);
  at = std::min(end + 1, word.size());
}

void ShellVariables::expand_dollar(std::string_view word, std::size_t& at, bool quoted,
                                   Expansion& out) {
  const std::string_view rest = word.substr(at + 1);
  const auto up_to = [&](char open, char close) {
    int depth = 0;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      if (rest[i] == open) ++depth;
      if (rest[i] == close && --depth == 0) return i + 1;
    }
    return rest.size();
  };
  if (rest.starts_with("((")) {
    const std::size_t length = up_to('(', ')');
    const std::string_view inside = rest.substr(2, length < 4 ? 0 : length - 4);
    const auto value = arithmetic(inside);
    out.put(value ? std::to_string(*value) : unset("$((" + std::string(inside) + "))"), true);
    at += 1 + length;
  } else if (rest.starts_with('(')) {
    const std::size_t length = up_to('(', ')');
    const std::string_view inside = rest.substr(1, length < 2 ? 0 : length - 2);
    const auto printed = printed_text(inside);
    if (printed) out.put(*printed, quoted);
    if (!printed) out.put(unset("$" + std::string(rest.substr(0, length))), true);
    at += 1 + length;
  } else if (rest.starts_with('{')) {
    const std::size_t length = up_to('{', '}');
    expand_braces(rest.substr(1, length < 2 ? 0 : length - 2), quoted, out);
    at += 1 + length;
  } else if (!rest.empty() &&
             (is_name(rest.front()) || rest.front() == '@' || rest.front() == '*')) {
    std::size_t length = 1;
    const bool digit = std::isdigit(static_cast<unsigned char>(rest.front())) != 0;
    while (is_name(rest.front()) && !digit && length < rest.size() && is_name(rest[length])) {
      ++length;
    }
    put_variable(std::string(rest.substr(0, length)), quoted, out);
    at += 1 + length;
  } else if (!rest.empty() &&
             std::string_view("#?$!").find(rest.front()) != std::string_view::npos) {
    const auto known = entries_.find("#");  // the number of arguments, if given
    const bool counts = rest.front() == '#' && known != entries_.end();
    out.put(counts ? known->second.values.front() : "0", true);
    at += 2;
  } else {
    out.put("$", true);
    ++at;
  }
}

// Expands text in double quotes. `at` is the index after the opening quote on entry, and after the
// closing quote on return.
void ShellVariables::expand_quoted(std::string_view word, std::size_t& at, Expansion& out) {
  out.grow();  // "" is an empty field
  while (at < word.size() && word[at] != '"') {
    if (word[at] == '$') {
      expand_dollar(word, at, true, out);
    } else if (word[at] == '\\' && at + 1 < word.size()) {
      const char next = word[at + 1];
      if (next != '\n') {
        if (std::string_view("$\"\\`").find(next) == std::string_view::npos) out.put("\\", true);
        out.put(word.substr(at + 1, 1), true);
      }
      at += 2;
    } else if (word[at] == '`') {
      put_backquoted(word, at, true, out);
    } else {
      out.put(word.substr(at++, 1), true);
    }
  }
  if (at < word.size()) ++at;
}

void ShellVariables::expand_into(std::string_view word, bool quoted, Expansion& out) {
  if (depth_ >= kDeepestExpansion) return;
  ++depth_;
  for (std::size_t at = 0; at < word.size();) {
    const char c = word[at];
    if (c == '\'') {
      const std::size_t end = std::min(word.find('\'', at + 1), word.size());
      out.put(word.substr(at + 1, end - at - 1), true);
      out.grow();
      at = std::min(end + 1, word.size());
    } else if (c == '"') {
      expand_quoted(word, ++at, out);
    } else if (c == '$') {
      expand_dollar(word, at, quoted, out);
    } else if (c == '\\' && at + 1 < word.size()) {
      if (word[at + 1] != '\n') out.put(word.substr(at + 1, 1), true);
      at += 2;
    } else if (c == '`') {
      put_backquoted(word, at, quoted, out);
    } else {
      out.put(word.substr(at++, 1), quoted);
    }
  }
  --depth_;
}

std::vector<std::string> ShellVariables::expanded(std::string_view word) {
  Expansion out;
  expand_into(word, false, out);
  return std::move(out.fields);
}

std::string ShellVariables::expanded_text(std::string_view word) {
  Expansion out;
  expand_into(word, true, out);
  return joined_text(out.fields, " ", [](const std::string& field) { return field; });
}

std::string ShellVariables::expanded_document(std::string_view text) {
  Expansion out;
  out.grow();
  for (std::size_t at = 0; at < text.size();) {
    const bool escapes = text[at] == '\\' && at + 1 < text.size() &&
                         std::string_view("$\\`").find(text[at + 1]) != std::string_view::npos;
    if (text[at] == '$') {
      expand_dollar(text, at, true, out);
      continue;
    }
    if (text.substr(at).starts_with("\\\n")) {  // line continuation
      at += 2;
      continue;
    }
    if (escapes) ++at;
    out.put(text.substr(at++, 1), true);
  }
  return out.fields.front();
}

}  // namespace tpsim
