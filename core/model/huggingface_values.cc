// Expressions of the families' tables, and keys that hold a list.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/check.h"
#include "core/base/leading_number.h"
#include "core/model/huggingface_reader.h"
#include "core/model/model_fields.h"

namespace tpsim {
namespace {

using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

// Entry `i` of a list; zero or empty beyond the end. Other values have one entry for all layers.
TableValue entry(const TableValue& value, std::size_t i) {
  if (const auto* numbers = std::get_if<Numbers>(&value)) {
    return i < numbers->size() ? (*numbers)[i] : 0.0;
  }
  if (const auto* texts = std::get_if<Texts>(&value)) {
    return i < texts->size() ? (*texts)[i] : std::string();
  }
  return value;
}

bool contains(const TableValue& list, const TableValue& item) {
  if (const auto* text = std::get_if<std::string>(&list)) {
    return !text_of(item).empty() && text->find(text_of(item)) != text->npos;
  }
  if (const auto* texts = std::get_if<Texts>(&list)) {
    return std::find(texts->begin(), texts->end(), text_of(item)) != texts->end();
  }
  const Numbers& numbers = std::get<Numbers>(list);
  return std::find(numbers.begin(), numbers.end(), std::get<double>(item)) != numbers.end();
}

std::size_t count_of(const TableValue& list) {
  const auto* texts = std::get_if<Texts>(&list);
  return texts != nullptr ? texts->size() : std::get<Numbers>(list).size();
}

constexpr std::string_view kFunctions = "in has is_list said count product";

// Checks that all names of the tables are fields, variables, functions or sections.
class TableChecker {
 public:
  explicit TableChecker(const FamilyTables& tables) : tables_(tables) {
    for_all([&](const Statement& one) {
      if (one.verb == "=" || one.verb == "<-") variables_.insert(one.name);
      for (const auto& [name, value] : one.expressions) variables_.insert(name);
    });
    for (const auto& [name, section] : tables.sections) {
      for (const auto& [parameter, value] : section.parameters) variables_.insert(parameter);
    }
    for_all([&](const Statement& one) {
      for (const auto& [name, expression] : one.expressions) check(expression);
      const bool is_known = one.verb != "like" || tables_.sections.contains(one.name);
      TPSIM_CHECK(is_known, "table of families: no section " + one.name);
      with_values(one.text, [&](const Expression& value) {
        check(value);
        return std::string();
      });
    });
    for (const KnownValue& known : tables.known_values) check(known.value);
  }

 private:
  template <class Use>
  static void visit(const std::vector<Statement>& statements, Use use) {
    for (const Statement& one : statements) {
      use(one);
      visit(one.inner, use);
    }
  }
  template <class Use>
  void for_all(Use use) const {
    for (const auto& [name, section] : tables_.sections) visit(section.statements, use);
    for (const auto& [name, family] : tables_.families) visit(family.statements, use);
    for (const EncoderTable& encoder : tables_.encoders) visit(encoder.statements, use);
  }
  void check(const Expression& one) {
    if (one.kind == Expression::Kind::kCall) {
      TPSIM_CHECK(matches_any(one.text, kFunctions) || matches_any(one.text, kCommonFunctions),
                  "table of families: no function " + one.text);
    } else if (one.kind == Expression::Kind::kName) {
      const bool is_known = variables_.contains(one.text) || matches_any(one.text, "i type key") ||
                            place_in(model_, model_, one.text).is_found();
      TPSIM_CHECK(is_known, "table of families: unknown name " + one.text);
    }
    for (const Expression& argument : one.arguments) check(argument);
  }

  const FamilyTables& tables_;
  std::set<std::string> variables_;
  ModelSpec model_;
};

}  // namespace

void with_owner(FieldReader& in, std::string_view path, Presence presence,
                const std::function<void(FieldReader&, std::string_view)>& read) {
  const std::size_t dot = path.find('.');
  if (dot == path.npos) return read(in, path);
  in.object(
      path.substr(0, dot),
      [&](FieldReader& inner) {
        inner.allow_foreign_keys();
        with_owner(inner, path.substr(dot + 1), presence, read);
      },
      presence);
}

bool has_key(FieldReader& in, std::string_view path) {
  bool has = false;
  with_owner(in, path, kOptional,
             [&](FieldReader& owner, std::string_view key) { has = owner.has(key); });
  return has;
}

FieldPlace place_in(ModelSpec& model, BlockShape& block, std::string_view path) {
  FieldPlace found;
  FieldFinder finder(path, found);
  block_fields(finder, block);
  if (!found.is_found()) model_fields(finder, model);
  return found;
}

const FamilyTables& family_tables() {
  static const FamilyTables kTables = [] {
    FamilyTables tables = parse_family_tables();
    const TableChecker checker{tables};
    return tables;
  }();
  return kTables;
}

TableValue TableReader::named(const std::string& name) {
  return entry(variable_or_field(name), layer_);
}

TableValue TableReader::variable_or_field(const std::string& name) {
  if (name == "i") return static_cast<double>(layer_);
  const auto variable = variables_.find(name);
  if (variable != variables_.end()) {
    const auto* const later = std::get_if<const Expression*>(&variable->second);
    return later == nullptr ? variable->second : value(**later);
  }
  const FieldPlace place = place_in(model_, *block_, name);
  if (const auto* integer = std::get_if<std::int64_t*>(&place.where)) {
    return static_cast<double>(**integer);
  }
  if (const auto* real = std::get_if<double*>(&place.where)) return **real;
  if (const auto* flag = std::get_if<bool*>(&place.where)) return **flag ? 1.0 : 0.0;
  if (const auto* word = std::get_if<WordPlace>(&place.where)) {
    return std::string(word->words[*word->value]);
  }
  throw BugError("table of families: " + name + " has no value yet");
}

TableValue TableReader::call(const Expression& one) {
  const std::string& name = one.text;
  const auto& of = one.arguments;
  const auto whole_list = [&](const Expression& list) {
    return list.kind == Expression::Kind::kName ? variable_or_field(list.text) : value(list);
  };
  if (name == "in") return contains(whole_list(of[1]), value(of[0])) ? 1.0 : 0.0;
  if (name == "count") return static_cast<double>(count_of(whole_list(of[0])));
  if (name == "product") {
    double product = 1;
    const TableValue factors = whole_list(of[0]);
    for (const double factor : std::get<Numbers>(factors)) product *= factor;
    return product;
  }
  if (name == "has") return has_key(in_, of[0].text) ? 1.0 : 0.0;
  if (name == "is_list") return in_.is_list(of[0].text) ? 1.0 : 0.0;
  if (name == "said") {
    std::string said;
    in_.text(std::string_view(of[0].text), said, kOptional);
    return said;
  }
  return Evaluator::call(one);
}

TableValue TableReader::read_list(const Statement& one, std::string_view kind,
                                  std::string_view path) {
  if (kind == "column") return column(path, one.words[2]);
  if (kind == "flags") return layer_flags(one, path);
  if (kind == "layers") {
    if (has_key(in_, path)) return words_of_layers(path, one.words[2]);
    return layer_flags(one, "");
  }
  if (kind == "letters") {
    std::string text;
    in_.text(path, text);
    Texts letters;
    for (const char letter : text) letters.emplace_back(1, letter);
    return letters;
  }
  if (kind == "texts") {
    Texts texts;
    in_.texts(path, texts);
    for (std::string& text : texts) {
      for (std::size_t i = 2; i < one.words.size(); ++i) {
        const std::string_view pair = one.words[i];
        if (!pair.starts_with(text + "=")) continue;
        text = pair.substr(text.size() + 1);
        break;
      }
    }
    return texts;
  }
  std::vector<std::int64_t> numbers;
  with_owner(in_, path, kOptional, [&](FieldReader& owner, std::string_view key) {
    if (!owner.has(key)) return;
    if (owner.is_list(key)) return owner.integers(key, numbers, {0, 1 << 20});
    std::string text;  // "3,4,5"
    owner.text(key, text);
    for (std::string_view rest = text; !rest.empty();) {
      const auto number = parse_number<std::int64_t>(trimmed(cut_off(rest, ",")));
      if (number) numbers.push_back(*number);
    }
  });
  return Numbers(numbers.begin(), numbers.end());
}

TableValue TableReader::layer_flags(const Statement& one, std::string_view path) {
  Numbers flags(layers.size(), 0);
  bool is_stated = false;
  std::vector<std::int64_t> numbers;
  if (!path.empty()) {
    with_owner(in_, path, kOptional, [&](FieldReader& owner, std::string_view key) {
      if (owner.is_list(key)) owner.integers(key, numbers, {0, 1});
    });
    is_stated = !numbers.empty();
  }
  // Lists may continue with MTP layers.
  if (is_stated && numbers.size() < flags.size()) reject_length(path, numbers.size());
  BlockShape* const before = block_;
  for (layer_ = 0; layer_ < flags.size(); ++layer_) {
    block_ = &layers[layer_];
    if (is_stated) {
      flags[layer_] = layer_ < numbers.size() ? static_cast<double>(numbers[layer_]) : 0;
    } else if (!one.expressions.empty()) {
      flags[layer_] = number(one.expressions.front().second);
    }
  }
  block_ = before;
  return flags;
}

// Reads a list of one word per layer. Returns 1 for the layers with the first of two words.
std::vector<double> TableReader::words_of_layers(std::string_view key, const std::string& words) {
  const std::string yes = words.substr(0, words.find('|')), no = words.substr(yes.size() + 1);
  Texts said;
  in_.texts(key, said);
  if (said.size() != layers.size()) reject_length(key, said.size());
  Numbers flags(layers.size(), 0);
  for (std::size_t i = 0; i < std::min(said.size(), flags.size()); ++i) {
    flags[i] = said[i] == yes ? 1 : 0;
    if (said[i] == yes || said[i] == no) continue;
    in_.reject(key, fmt::format("'{}' is not supported", said[i]),
               fmt::format("a layer is '{}' or '{}'", yes, no));
  }
  return flags;
}

// Reads the number or flag at `path` of each object in a list; absent ones are zero.
TableValue TableReader::column(std::string_view key, const std::string& path) {
  Numbers numbers;
  const auto read = [&](FieldReader& in, double& found) {
    in.allow_foreign_keys();
    with_owner(in, path, kOptional, [&](FieldReader& owner, std::string_view inner) {
      const bool is_flag = inner == "no_op" || inner == "replace_with_linear";
      bool flag = false;
      if (is_flag) {
        owner.flag(inner, flag, kOptional);
        found = flag ? 1 : 0;
      } else {
        owner.number(inner, found, {0, 1 << 16}, kOptional);
      }
    });
  };
  in_.objects(key, numbers, read, kOptional);
  return numbers;
}

}  // namespace tpsim
