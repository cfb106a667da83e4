#include "core/model/huggingface_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/base/leading_number.h"
#include "core/model/model_fields.h"

namespace tpsim {
namespace {

constexpr NumberRange kUsualWhole{1, 1 << 24};

IntRange whole(NumberRange range) {
  return {static_cast<std::int64_t>(range.least), static_cast<std::int64_t>(range.most)};
}

// Reads one number, flag (0 or 1) or text of a key.
TableValue read_value(FieldReader& in, std::string_view path, std::string_view kind,
                      NumberRange range, TableValue otherwise, Presence presence) {
  with_owner(in, path, presence, [&](FieldReader& owner, std::string_view key) {
    if (presence == kOptional && !owner.has(key)) return;
    if (kind == "text") {
      std::string text;
      owner.text(key, text);
      otherwise = text;
    } else if (kind == "flag") {
      bool flag = false;
      owner.flag(key, flag);
      otherwise = flag ? 1.0 : 0.0;
    } else if (kind == "number") {
      double number = 0;
      owner.number(key, number, range);
      otherwise = number;
    } else {
      std::int64_t number = 0;
      owner.integer(key, number, whole(range));
      otherwise = static_cast<double>(number);
    }
  });
  return otherwise;
}

std::string_view kind_of_place(const FieldPlace& place) {
  if (std::holds_alternative<double*>(place.where)) return "number";
  return std::holds_alternative<bool*>(place.where) ? "flag" : "integer";
}

constexpr std::string_view kLists = "list texts letters layers flags column";

bool mentions_layer(const Expression& one) {
  return (one.kind == Expression::Kind::kName && one.text == "i") ||
         std::any_of(one.arguments.begin(), one.arguments.end(), mentions_layer);
}

std::vector<PlannedOp>& planned_of(const Statement& one, ModelSpec& model, BlockShape& block) {
  if (one.verb == "op") return block.planned;
  OuterPart& part = model.ends.parts.back();
  return one.verb == "layer_op" ? part.layer_ops : part.ops;
}

}  // namespace

std::vector<std::string_view> TableReader::keys_of(const std::string& word) {
  std::string_view rest = word;
  if (word.starts_with('$')) rest = kept(std::get<std::string>(variables_.at(word.substr(1))));
  std::vector<std::string_view> keys;
  while (!rest.empty()) keys.push_back(cut_off(rest, "|"));
  return keys;
}

void TableReader::run(const std::vector<Statement>& statements) {
  for (const Statement& one : statements) run(one);
}

void TableReader::run(const Statement& one) {
  const std::string& verb = one.verb;
  if (verb == "<-") return read(one);
  if (verb == "=") return assign(one.name, value(one.expressions.front().second));
  if (verb == "like") return run_section(one);
  if (verb == "each") return run_each(one);
  if (verb == "only") return refuse_others(one);
  if (verb == "activation") return read_activation(one);
  if (verb == "rotary") return read_rotary(in_, model_, number(one.expressions.front().second));
  if (verb == "note") return model_.notes.push_back(filled(one.text));
  if (verb == "if") {
    if (number(one.expressions.front().second) != 0) run(one.inner);
  } else if (verb == "repeat") {
    const auto count = static_cast<std::size_t>(number(one.expressions.front().second));
    for (layer_ = 0; layer_ < count; ++layer_) run(one.inner);
  } else if (verb == "in") {
    BlockShape* const before = std::exchange(block_, &shapes_.at(one.name));
    run(one.inner);
    block_ = before;
  } else if (verb == "spread") {
    // The number of layers may be out of range if the file has an error.
    const bool is_sane = model_.layers >= 1 && model_.layers <= 1 << 14;
    layers.assign(is_sane ? static_cast<std::size_t>(model_.layers) : 0, block_of_kind(model_, 0));
  } else if (verb == "shape") {
    shapes_[one.name] = *block_;
  } else if (verb == "take") {
    const BlockShape& shape = shapes_.at(one.name);
    if (one.words.size() > 1) {
      block_->attention = shape.attention;
    } else {
      *block_ = shape;
    }
  } else if (verb == "clear") {
    AttentionShape& attention = block_->attention;
    if (one.name == "experts") block_->experts = {};
    if (one.name == "attention") attention = {};
    if (one.name == "attention.rotary") attention.rotary = {};
    if (one.name == "attention.rotary.stretch") attention.rotary.stretch = {};
  } else if (verb == "skip") {
    for (const std::string& key : one.words) in_.has(key);
  } else if (verb == "refuse") {
    const std::size_t arrow = one.text.find(" -> ");
    const std::string hint = arrow == one.text.npos ? "" : one.text.substr(arrow + 4);
    in_.reject(keys_of(one.name).front(), filled(one.text.substr(0, arrow)), hint);
  } else {
    add_op(one);
  }
}

void TableReader::run_section(const Statement& like) {
  const TableSection& section = family_tables().sections.find(like.name)->second;
  for (const auto& [name, expression] : like.expressions) {
    variables_[name] = mentions_layer(expression) ? TableValue(&expression) : value(expression);
  }
  for (const auto& [name, expression] : section.parameters) {
    if (!variables_.contains(name)) variables_[name] = value(expression);
  }
  run(section.statements);
}

void TableReader::run_each(const Statement& each) {
  for (layer_ = 0; layer_ < layers.size(); ++layer_) {
    block_ = &layers[layer_];
    if (number(each.expressions.front().second) != 0) run(each.inner);
  }
  block_ = &model_;
}

void TableReader::assign(const std::string& name, const TableValue& value) {
  const FieldPlace place = place_in(model_, *block_, name);
  if (const auto* integer = std::get_if<std::int64_t*>(&place.where)) {
    **integer = static_cast<std::int64_t>(std::get<double>(value));
  } else if (const auto* real = std::get_if<double*>(&place.where)) {
    **real = std::get<double>(value);
  } else if (const auto* flag = std::get_if<bool*>(&place.where)) {
    **flag = std::get<double>(value) != 0;
  } else if (const auto* word = std::get_if<WordPlace>(&place.where)) {
    const auto found =
        std::find(word->words.begin(), word->words.end(), std::get<std::string>(value));
    TPSIM_CHECK(found != word->words.end(), "table of families: unknown word for " + name);
    *word->value = static_cast<std::uint8_t>(found - word->words.begin());
  } else {
    variables_[name] = value;
  }
}

void TableReader::read(const Statement& one) {
  const bool has_kind = one.words.size() > 1;
  const FieldPlace place =
      has_kind && one.words.front() != "same" ? FieldPlace{} : place_in(model_, *block_, one.name);
  const std::string_view kind =
      has_kind ? std::string_view(one.words.front()) : kind_of_place(place);
  const std::vector<std::string_view> keys = keys_of(one.words[has_kind ? 1 : 0]);
  if (matches_any(kind, kLists)) {
    variables_[one.name] = read_list(one, kind, keys.front());
    return;
  }
  std::string_view key = keys.front();
  bool is_there = false, is_null = false;
  for (const std::string_view each : keys) {
    const bool has = has_key(in_, each);
    if (has && !is_there) key = each;
    is_there = is_there || has;
    is_null = is_null || (one.null_is_zero && in_.is_null(each));
  }
  TableValue found = 0.0;
  const bool is_optional = !one.expressions.empty();
  if (is_optional && (is_there || !is_null)) found = value(one.expressions.front().second);
  NumberRange range = one.range.value_or(place.is_found()   ? place.range
                                         : kind == "number" ? NumberRange{}
                                                            : kUsualWhole);
  if (!is_optional && !one.range) range.least = std::max(range.least, kUsualWhole.least);
  if (kind == "same" && in_.is_list(key)) {
    std::vector<std::int64_t> each;
    in_.integers(key, each, {0, 1 << 24});
    if (each.size() < static_cast<std::size_t>(model_.layers))
      return reject_length(key, each.size());
    const bool differ =
        std::any_of(each.begin(), each.end(), [&](auto n) { return n != each.front(); });
    if (differ) return in_.reject(key, "values that differ between layers are not modelled here");
    found = static_cast<double>(each.front());
  } else if (is_there || !is_optional) {
    const std::string object(key.substr(0, key.find('.')));
    if (!is_there && object != key && !in_.has(object) && !missing_objects_.insert(object).second) {
      return;  // one message for all keys of a missing object
    }
    found = read_value(in_, key, kind, range, found, is_optional ? kOptional : kRequired);
  }
  if (has_kind && kind != "same") {
    variables_[one.name] = found;
  } else {
    assign(one.name, found);
  }
}

void TableReader::reject_length(std::string_view key, std::size_t length) {
  in_.reject(key,
             fmt::format("it has {} entries, but num_hidden_layers is {}", length, model_.layers));
}

void TableReader::read_activation(const Statement& one) {
  std::vector<std::string_view> names, kinds;
  for (const std::string_view pair : one.words) {
    names.push_back(pair.substr(0, pair.find('=')));
    kinds.push_back(pair.substr(pair.find('=') + 1));
  }
  std::string name(names.front());
  const std::string_view key = keys_of(one.name).front();
  in_.text(key, name, kOptional);
  const auto found = choose("activation", name, names);
  if (!found.ok()) return in_.reject(key, found.error().message, found.error().hint);
  assign("mlp", std::string(kinds[*found]));
  const bool saves_ops = name == "gelu_new" || name == "gelu_fast";  // transformers/activations.py
  if (saves_ops) model_.activation_ops = ActivationOps::kSavedOps;
}

void TableReader::add_op(const Statement& one) {
  if (one.verb == "part") {
    OuterPart& part = model_.ends.parts.emplace_back();
    part.name = filled(one.name);
    for (const auto& [name, expression] : one.expressions) {
      FieldPlace place;
      FieldFinder finder(name, place);
      part_fields(finder, part);
      *std::get<std::int64_t*>(place.where) = static_cast<std::int64_t>(number(expression));
    }
    return;
  }
  PlannedOp op;
  op.name = filled(one.name);
  for (const PlannedOpKind kind : every<PlannedOpKind>()) {
    if (name_of(kind) == one.words[0]) op.kind = kind;
  }
  for (const PlannedSharding sharding : every<PlannedSharding>()) {
    if (name_of(sharding) == one.words[1]) op.sharding = sharding;
  }
  for (const auto& [name, expression] : one.expressions) {
    FieldPlace place;
    FieldFinder finder(name, place);
    planned_fields(finder, op);
    *std::get<std::int64_t*>(place.where) = static_cast<std::int64_t>(number(expression));
  }
  planned_of(one, model_, *block_).push_back(op);
}

// only KEY VALUE|VALUE: WHY
void TableReader::refuse_others(const Statement& only) {
  const std::string& first = only.words.front();
  if (!has_key(in_, only.name)) return;
  const auto expected = parse_number<double>(first);
  const std::string_view kind = first == "true" || first == "false" ? "flag"
                                : expected                          ? "number"
                                                                    : "text";
  const TableValue found = read_value(in_, only.name, kind, {-1e18, 1e18}, {}, kRequired);
  if (in_.failed()) return;
  if (kind == "text") {
    const std::string& said = std::get<std::string>(found);
    if (std::find(only.words.begin(), only.words.end(), said) != only.words.end()) return;
    in_.reject(only.name, fmt::format("'{}' is not supported for this model type", said),
               only.text);
  } else if (std::get<double>(found) !=
             (kind == "flag" ? (first == "true" ? 1.0 : 0.0) : *expected)) {
    in_.reject(only.name, only.text);
  }
}

}  // namespace tpsim
