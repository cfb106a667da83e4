// Parses YAML with libyaml, which PyYAML also uses, so that both accept the same files.
#include <fmt/format.h>
#include <yaml.h>

#include <set>

#include "formats/settings_text.h"

namespace tpsim {
namespace {

// Maximum number of values in a file. A value that aliases repeat is counted each time.
constexpr std::size_t kMostYamlValues = 16000;
constexpr int kDeepestYaml = 32;
constexpr std::string_view kCoreTag = "tag:yaml.org,2002:";

void start(yaml_parser_t& parser, std::string_view text) {
  TPSIM_CHECK(yaml_parser_initialize(&parser) != 0, "out of memory for the YAML parser");
  yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>(text.data()),
                               text.size());
}

// Returns an error if brackets are nested too deeply: libyaml checks all open brackets at each new
// one, so that a few hundred thousand take minutes. load() reports invalid YAML.
Status check_nesting(std::string_view text, const std::string& file) {
  constexpr int kDeepestEvent = kDeepestYaml + 1;  // the root counts as one
  yaml_parser_t parser{};
  start(parser, text);
  int depth = 0;
  std::size_t line = 0;
  bool goes_on = true;
  while (goes_on && depth <= kDeepestEvent) {
    yaml_event_t event;
    if (yaml_parser_parse(&parser, &event) == 0) break;
    const yaml_event_type_t type = event.type;
    line = event.start_mark.line + 1;
    yaml_event_delete(&event);
    if (type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT) ++depth;
    if (type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT) --depth;
    goes_on = type != YAML_STREAM_END_EVENT;
  }
  yaml_parser_delete(&parser);
  if (depth <= kDeepestEvent) return Ok{};
  return bad_input("the file is nested too deeply; at most 32 levels are read",
                   fmt::format("{}:{}", file, line));
}

class YamlParser {
 public:
  explicit YamlParser(std::string_view text) { start(parser_, text); }
  YamlParser(const YamlParser&) = delete;
  YamlParser& operator=(const YamlParser&) = delete;
  ~YamlParser() {
    yaml_document_delete(&document_);
    yaml_parser_delete(&parser_);
  }

  // Loads the next document and frees the current one. After the last document the root is null.
  Status load(const std::string& file) {
    yaml_document_delete(&document_);
    if (yaml_parser_load(&parser_, &document_) != 0) return Ok{};
    // For an unclosed item, report the line where it starts. Otherwise report the line of the
    // error.
    const std::string_view context = parser_.context == nullptr ? "" : parser_.context;
    const bool is_open = context.starts_with("while scanning");
    const yaml_mark_t& mark = is_open ? parser_.context_mark : parser_.problem_mark;
    return bad_input(
        fmt::format("cannot be read as YAML: {}{}{}", context, context.empty() ? "" : ", ",
                    parser_.problem == nullptr ? "out of memory" : parser_.problem),
        fmt::format("{}:{}", file, mark.line + 1));
  }
  yaml_document_t& document() { return document_; }

 private:
  yaml_parser_t parser_{};
  yaml_document_t document_{};
};

int line_of(const yaml_node_t& node) { return static_cast<int>(node.start_mark.line) + 1; }

std::string text_of(const yaml_node_t& node) {
  return {reinterpret_cast<const char*>(node.data.scalar.value), node.data.scalar.length};
}

bool is_plain(const yaml_node_t& node) { return node.data.scalar.style == YAML_PLAIN_SCALAR_STYLE; }

class YamlFlattener {
 public:
  YamlFlattener(yaml_document_t& document, const std::string& file, bool keeps_texts)
      : document_(document), file_(file), keeps_texts_(keeps_texts) {}

  Status flatten(const yaml_node_t& node, const std::string& key, int depth = 0) {
    TPSIM_TRY_STATUS(count(node, depth));
    const std::string prefix = key.empty() ? "" : key + ".";
    if (node.type == YAML_SCALAR_NODE) return put(node, key);
    if (node.type == YAML_SEQUENCE_NODE) {
      int index = 0;
      for (auto* item = node.data.sequence.items.start; item < node.data.sequence.items.top;
           ++item) {
        TPSIM_TRY_STATUS(flatten(at(*item), fmt::format("{}{}", prefix, index++), depth + 1));
      }
      return Ok{};
    }
    std::vector<Entry> entries;
    TPSIM_TRY_STATUS(gather(node, depth, entries));
    for (const Entry& entry : entries) {
      TPSIM_TRY_STATUS(flatten(*entry.value, prefix + entry.name, depth + 1));
    }
    return Ok{};
  }

  std::vector<FlatSetting> out;

 private:
  struct Entry {
    std::string name;
    const yaml_node_t* value;
  };

  Error wrong(const yaml_node_t& node, std::string message, std::string hint = "") const {
    return bad_input(std::move(message), fmt::format("{}:{}", file_, line_of(node)),
                     std::move(hint));
  }

  const yaml_node_t& at(int index) { return *yaml_document_get_node(&document_, index); }

  Status count(const yaml_node_t& node, int depth) {
    if (++values_ > kMostYamlValues || depth > kDeepestYaml) {
      return wrong(node, "the file has too many settings, or is nested too deeply");
    }
    const std::string_view tag = reinterpret_cast<const char*>(node.tag);
    if (tag.starts_with(kCoreTag)) return Ok{};  // a core type does not change the text
    return wrong(node, fmt::format("the YAML tag '{}' is not supported", tag),
                 "write the value without a tag");
  }

  // Adds the scalar as a setting. The text of several lines is empty unless keeps_texts is set.
  Status put(const yaml_node_t& node, const std::string& key) {
    std::string value = text_of(node);
    if (key.empty() && !value.empty()) {
      return wrong(node, fmt::format("'{}' is not of the form 'key: value'", value));
    }
    if (is_plain(node)) {
      if (value.empty()) return Ok{};
      if (value == "null" || value == "~" || value == "None") value.clear();
    } else if (!keeps_texts_ && node.start_mark.line != node.end_mark.line) {
      value.clear();
    }
    out.push_back({key, std::move(value), line_of(node)});
    return Ok{};
  }

  // Appends the map's own entries, then those of merged maps ("<<") whose names are new. The first
  // merged map with a name takes precedence.
  Status gather(const yaml_node_t& map, int depth, std::vector<Entry>& entries) {
    std::vector<const yaml_node_t*> merged;
    for (auto* pair = map.data.mapping.pairs.start; pair < map.data.mapping.pairs.top; ++pair) {
      const yaml_node_t& name = at(pair->key);
      const yaml_node_t& value = at(pair->value);
      if (name.type != YAML_SCALAR_NODE)
        return wrong(name, "a key must be a text, not a list or a map");
      if (!is_plain(name) || text_of(name) != "<<") {
        entries.push_back({text_of(name), &value});
      } else if (value.type == YAML_SEQUENCE_NODE) {
        const auto& items = value.data.sequence.items;
        for (auto* item = items.start; item < items.top; ++item) merged.push_back(&at(*item));
      } else {
        merged.push_back(&value);
      }
    }
    std::set<std::string> said;
    for (const Entry& own : entries) said.insert(own.name);
    for (const yaml_node_t* other : merged) {
      TPSIM_TRY_STATUS(count(*other, depth));
      if (other->type != YAML_MAPPING_NODE) return wrong(*other, "<< must refer to a map");
      std::vector<Entry> theirs;
      TPSIM_TRY_STATUS(gather(*other, depth + 1, theirs));
      for (Entry& entry : theirs) {
        if (said.insert(entry.name).second) entries.push_back(std::move(entry));
      }
    }
    return Ok{};
  }

  yaml_document_t& document_;
  const std::string& file_;
  const bool keeps_texts_;
  std::size_t values_ = 0;
};

}  // namespace

Result<std::vector<FlatSetting>> flat_yaml(std::string_view text, const std::string& file,
                                           bool keeps_texts) {
  TPSIM_TRY_STATUS(check_nesting(text, file));
  YamlParser parser(text);
  TPSIM_TRY_STATUS(parser.load(file));
  YamlFlattener flattener(parser.document(), file, keeps_texts);
  const yaml_node_t* root = yaml_document_get_root_node(&parser.document());
  if (root == nullptr) return std::move(flattener.out);
  TPSIM_TRY_STATUS(flattener.flatten(*root, ""));
  TPSIM_TRY_STATUS(parser.load(file));
  if (const yaml_node_t* next = yaml_document_get_root_node(&parser.document())) {
    return bad_input("the file has a second YAML document, which is not supported",
                     fmt::format("{}:{}", file, line_of(*next)));
  }
  return std::move(flattener.out);
}

}  // namespace tpsim
