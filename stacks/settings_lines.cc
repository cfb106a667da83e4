// Lines of YAML and TOML.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/text.h"
#include "stacks/settings_text.h"

namespace tpsim {
namespace {

constexpr std::size_t kMostSettings = 8000;
constexpr std::size_t kMostTables = 2000;
constexpr int kDeepestList = 16;
constexpr std::size_t kMostRepeats = 200;

// The text up to a comment that stands outside of quotes.
std::string_view uncommented(std::string_view line, bool needs_blank) {
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\0') {
      if (c == '\\' && quote == '"') {
        ++i;
      } else if (c == quote) {
        quote = '\0';
      }
    } else if ((c == '"' || c == '\'') &&
               (i == 0 || std::string_view(" [{,:=").find(line[i - 1]) != std::string_view::npos)) {
      quote = c;
    } else if (c == '#' && (!needs_blank || i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
      return line.substr(0, i);
    }
  }
  return line;
}

std::string plain(std::string_view value) {
  value = trimmed(value);
  const bool quoted = value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
                      value.back() == value.front();
  if (quoted) return std::string(value.substr(1, value.size() - 2));
  if (value == "null" || value == "~" || value == "None") return "";
  return std::string(value);
}

// Where the outermost parts of "a, [b, c]" end.
std::size_t part_end(std::string_view text) {
  int depth = 0;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      return i;
    }
  }
  return text.size();
}

class Flat {
 public:
  explicit Flat(std::string file) : file_(std::move(file)) {}

  Error wrong(int line, std::string message, std::string hint = "") const {
    return Error{ErrorKind::kBadInput, std::move(message), fmt::format("{}:{}", file_, line),
                 std::move(hint)};
  }

  // "[a, b]" and "{a: 1}" become settings of their own.
  Status put(const std::string& key, std::string_view value, int line, char colon, int depth = 0) {
    if (out.size() >= kMostSettings || depth > kDeepestList) {
      return wrong(line, "more settings than any configuration has");
    }
    value = trimmed(value);
    const bool list = value.starts_with('[') && value.ends_with(']');
    const bool map = value.starts_with('{') && value.ends_with('}');
    if (!list && !map) {
      if (value.starts_with('[') || value.starts_with('{')) {
        return wrong(line, fmt::format("{} is not closed on its line", value.substr(0, 1)));
      }
      const bool marked = colon == ':' && !value.empty() &&
                          (value.front() == '&' || value.front() == '!' || value.front() == '*');
      if (marked) {
        return wrong(line,
                     fmt::format("'{}': tags are not read, nor anchors inside of a line", value),
                     "write the value itself");
      }
      out.push_back({key, plain(value), line});
      return Ok{};
    }
    std::string_view rest = trimmed(value.substr(1, value.size() - 2));
    for (int i = 0; !rest.empty(); ++i) {
      const std::size_t end = part_end(rest);
      std::string_view part = trimmed(rest.substr(0, end));
      rest = trimmed(rest.substr(std::min(end + 1, rest.size())));
      std::string name = std::to_string(i);
      if (map) {
        const std::size_t cut = part.find(colon);
        if (cut == std::string_view::npos) return wrong(line, fmt::format("'{}' has no key", part));
        name = plain(part.substr(0, cut));
        part = part.substr(cut + 1);
      }
      TPSIM_TRY_STATUS(put(fmt::format("{}.{}", key, name), part, line, colon, depth + 1));
    }
    return Ok{};
  }

  std::vector<FlatSetting> out;

 private:
  std::string file_;
};

// Whether a text in quotes ends on its line.
bool is_closed(std::string_view value) {
  const char quote = value.front();
  for (std::size_t i = 1; i < value.size(); ++i) {
    if (quote == '"' && value[i] == '\\') {
      ++i;
    } else if (value[i] == quote) {
      return true;
    }
  }
  return false;
}

// Types that a plain value has anyway.
std::string_view without_type(std::string_view value) {
  for (const std::string_view tag : {"!!str ", "!!int ", "!!float ", "!!bool ", "!!null "}) {
    if (value.starts_with(tag)) return trimmed(value.substr(tag.size()));
  }
  return value;
}

std::string joined_key(const std::string& parent, std::string_view name) {
  return parent.empty() ? std::string(name) : fmt::format("{}.{}", parent, name);
}

// A map or list that is open, as deep as its lines are indented.
struct Level {
  std::size_t indent = 0;
  std::string key;
  int elements = -1;  // of a list so far; -1: a map
};

class Yaml {
 public:
  Yaml(std::string_view text, const std::string& file) : rest_(text), flat_(file) {}

  Result<std::vector<FlatSetting>> settings() {
    levels_.push_back({});
    while (next()) TPSIM_TRY_STATUS(take_line());
    std::vector<FlatSetting> settings;
    for (std::size_t i = 0; i < flat_.out.size(); ++i) {
      if (!is_overridden(i)) settings.push_back(flat_.out[i]);
    }
    return settings;
  }

 private:
  bool next() {
    if (rest_.empty()) return false;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    raw_ = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    return true;
  }

  Status take_line() {
    std::string_view line = uncommented(raw_, true);
    const std::size_t indent = line.find_first_not_of(' ');
    if (trimmed(line).empty() || indent == std::string_view::npos) return Ok{};
    if (skipped_above_ && indent > *skipped_above_) return Ok{};  // of a text over several lines
    skipped_above_.reset();
    if (line.substr(indent).starts_with('\t')) return flat_.wrong(number_, "a tab indents");
    line = trimmed(line);
    if (line == "---" || line == "...") {
      return flat_.out.empty() ? Status(Ok{})
                               : Status(flat_.wrong(number_, "a second document is not read"));
    }
    return take_entry(line, indent);
  }

  Status take_entry(std::string_view line, std::size_t indent) {
    const bool is_element = line == "-" || line.starts_with("- ");
    while (levels_.size() > 1 &&
           (levels_.back().indent > indent ||
            (levels_.back().indent == indent && levels_.back().elements >= 0 && !is_element))) {
      levels_.pop_back();
    }
    if (is_element) {
      if (levels_.back().elements < 0 || levels_.back().indent != indent) {
        levels_.push_back({indent, open_key_, 0});
      }
      Level& list = levels_.back();
      const std::string key = joined_key(list.key, std::to_string(list.elements++));
      const std::string_view inner = anchored(key, without_type(trimmed(line.substr(1))));
      open_key_ = key;
      if (inner.empty()) return Ok{};
      if (inner.front() == '*') return copy(inner, key, false);
      const std::size_t inner_indent =
          indent + static_cast<std::size_t>(inner.data() - line.data());
      if (colon_of(inner) == std::string_view::npos) return flat_.put(key, inner, number_, ':');
      levels_.push_back({inner_indent, key, -1});
      return take_key(inner, inner_indent);
    }
    if (levels_.back().indent < indent) {
      // A deeper map belongs to the key above it; a longer plain text goes on over lines.
      if (open_key_.empty()) return Ok{};
      levels_.push_back({indent, open_key_, -1});
    }
    return take_key(line, indent);
  }

  Status take_key(std::string_view line, std::size_t indent) {
    const std::size_t colon = colon_of(line);
    if (colon == std::string_view::npos) {
      return flat_.wrong(number_, fmt::format("'{}' is no 'key: value'", line));
    }
    const std::string name = plain(line.substr(0, colon));
    std::string_view value = without_type(trimmed(line.substr(colon + 1)));
    if (name == "<<") return merge(value);
    const std::string key = joined_key(levels_.back().key, name);
    value = anchored(key, value);
    open_key_ = key;
    if (value.empty()) return Ok{};
    if (value.front() == '*') {
      open_key_.clear();
      return copy(value, key, false);
    }
    if ((value.front() == '"' || value.front() == '\'') && !is_closed(value)) {
      return skip_quoted(key, value.front());
    }
    if (value.starts_with('|') || value.starts_with('>')) {
      skipped_above_ = indent;
      flat_.out.push_back({key, "", number_});
      return Ok{};
    }
    open_key_.clear();
    const char open = value.front();
    if ((open == '[' || open == '{') && !value.ends_with(open == '[' ? ']' : '}')) {
      return take_long(key, std::string(value), open == '[' ? ']' : '}');
    }
    return flat_.put(key, value, number_, ':');
  }

  // "&name value": the value, which others may repeat.
  std::string_view anchored(const std::string& key, std::string_view value) {
    if (!value.starts_with('&')) return value;
    const std::size_t end = std::min(value.find(' '), value.size());
    anchors_[std::string(value.substr(1, end - 1))] = key;
    return trimmed(value.substr(end));
  }

  // "*name": what stands at its anchor, at `key`; merged where other lines may say otherwise.
  Status copy(std::string_view alias, const std::string& key, bool merges) {
    const auto anchor = anchors_.find(std::string(trimmed(alias.substr(1))));
    if (++repeats_ > kMostRepeats) return flat_.wrong(number_, "repeats more than any file does");
    if (anchor == anchors_.end()) {
      return flat_.wrong(number_, fmt::format("'{}' repeats what has no anchor above", alias));
    }
    const std::string from = anchor->second;
    const std::size_t count = flat_.out.size();
    for (std::size_t i = 0; i < count; ++i) {
      const std::string_view own = flat_.out[i].key;
      const bool is_inside = own == from || own.starts_with(from + ".");
      if (!is_inside || is_overridden(i)) continue;
      std::string_view rest = own.substr(from.size());
      if (key.empty() && rest.starts_with('.')) rest.remove_prefix(1);
      if (flat_.out.size() >= kMostSettings) {
        return flat_.wrong(number_, "more settings than any configuration has");
      }
      if (merges) merged_[flat_.out.size()] = key;
      flat_.out.push_back({key + std::string(rest), flat_.out[i].value, number_});
    }
    return Ok{};
  }

  // "<<: *name" and "<<: [*a, *b]": what the map says itself goes first.
  Status merge(std::string_view value) {
    if (value.starts_with('[') && value.ends_with(']')) value = value.substr(1, value.size() - 2);
    while (!trimmed(value).empty()) {
      const std::size_t end = std::min(value.find(','), value.size());
      const std::string_view one = trimmed(value.substr(0, end));
      if (!one.starts_with('*')) {
        return flat_.wrong(number_, fmt::format("'<<: {}' names no anchor", one));
      }
      TPSIM_TRY_STATUS(copy(one, levels_.back().key, true));
      value.remove_prefix(std::min(end + 1, value.size()));
    }
    return Ok{};
  }

  // Whether the map that setting i was merged into says that key itself, or an earlier merge does.
  bool is_overridden(std::size_t index) const {
    const auto merged = merged_.find(index);
    if (merged == merged_.end()) return false;
    const std::string& key = flat_.out[index].key;
    const std::size_t start = merged->second.empty() ? 0 : merged->second.size() + 1;
    const std::string own = key.substr(0, std::min(key.find('.', start), key.size()));
    for (std::size_t i = 0; i < flat_.out.size(); ++i) {
      if (!flat_.out[i].key.starts_with(own)) continue;
      const bool same =
          flat_.out[i].key.size() == own.size() || flat_.out[i].key[own.size()] == '.';
      if (same && (!merged_.contains(i) || (i < index && flat_.out[i].key == key))) return true;
    }
    return false;
  }

  // A text in quotes that goes on over lines says nothing of a plan.
  Status skip_quoted(const std::string& key, char quote) {
    const int start = number_;
    flat_.out.push_back({key, "", number_});
    open_key_.clear();
    while (next()) {
      if (is_closed(std::string(1, quote) + std::string(raw_))) return Ok{};
    }
    return flat_.wrong(start, fmt::format("{} is not closed", quote));
  }

  // "[a," that goes on until its bracket closes.
  Status take_long(const std::string& key, std::string value, char close) {
    const int start = number_;
    while (next()) {
      value += " " + std::string(trimmed(uncommented(raw_, true)));
      if (value.ends_with(close)) return flat_.put(key, value, start, ':');
    }
    return flat_.wrong(start, fmt::format("{} is not closed", value.substr(0, 1)));
  }

  // Of the colon that ends a key: at the end or before a blank, outside of quotes.
  static std::size_t colon_of(std::string_view line) {
    std::size_t from = 0;
    if (!line.empty() && (line.front() == '"' || line.front() == '\'')) {
      from = line.find(line.front(), 1);
      if (from == std::string_view::npos) return from;
    } else if (line.starts_with('[') || line.starts_with('{')) {
      return std::string_view::npos;
    }
    for (std::size_t i = from; i < line.size(); ++i) {
      if (line[i] == ':' && (i + 1 == line.size() || line[i + 1] == ' ')) return i;
    }
    return std::string_view::npos;
  }

  std::string_view rest_;
  std::string_view raw_;
  Flat flat_;
  int number_ = 0;
  std::vector<Level> levels_;
  std::string open_key_;  // whose value is on deeper lines
  std::optional<std::size_t> skipped_above_;
  std::map<std::string, std::string> anchors_;  // the key that each stands at
  std::map<std::size_t, std::string> merged_;   // settings by their number: the map's key
  std::size_t repeats_ = 0;
};

}  // namespace

Result<std::vector<FlatSetting>> flat_yaml(std::string_view text, const std::string& file) {
  return Yaml(text, file).settings();
}

Result<std::vector<FlatSetting>> flat_toml(std::string_view text, const std::string& file) {
  Flat flat(file);
  std::string table;
  std::vector<std::string> arrays;  // of tables: one name for each of them
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string line(trimmed(uncommented(text.substr(0, end), false)));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (line.starts_with("[[") && line.ends_with("]]")) {
      if (arrays.size() >= kMostTables) return flat.wrong(number, "more tables than any file has");
      const std::string name = plain(std::string_view(line).substr(2, line.size() - 4));
      table = fmt::format("{}.{}", name, std::count(arrays.begin(), arrays.end(), name));
      arrays.push_back(name);
      continue;
    }
    if (line.starts_with('[') && line.ends_with(']')) {
      table = plain(std::string_view(line).substr(1, line.size() - 2));
      continue;
    }
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) {
      return flat.wrong(number, fmt::format("'{}' is no 'key = value'", line));
    }
    const int start = number;
    const auto is_open = [&] {
      return std::count(line.begin(), line.end(), '[') > std::count(line.begin(), line.end(), ']');
    };
    while (is_open() && !text.empty()) {
      const std::size_t next = std::min(text.find('\n'), text.size());
      line += " " + std::string(trimmed(uncommented(text.substr(0, next), false)));
      text.remove_prefix(std::min(next + 1, text.size()));
      ++number;
    }
    const std::string key = joined_key(table, plain(std::string_view(line).substr(0, equals)));
    TPSIM_TRY_STATUS(flat.put(key, std::string_view(line).substr(equals + 1), start, '='));
  }
  return std::move(flat.out);
}

}  // namespace tpsim
