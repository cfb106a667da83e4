// Runs the lines of a family's table on a config.json. Internal to core/model.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/json/field_finder.h"
#include "core/json/json_fields.h"
#include "core/model/huggingface_tables.h"
#include "core/model/model_spec.h"

namespace tpsim {

// The tables, parsed and checked once: every name is a field, a variable or a section.
const FamilyTables& family_tables();

class TableReader : public Evaluator {
 public:
  TableReader(FieldReader& in, ModelSpec& model) : in_(in), model_(model), block_(&model) {}

  void set(const std::string& variable, TableValue value) {
    variables_[variable] = std::move(value);
  }
  void run(const std::vector<Statement>& statements);

  // One block per layer after "spread"; empty before.
  std::vector<BlockShape> layers;
  FieldReader& in() { return in_; }
  ModelSpec& model() { return model_; }

 private:
  void run(const Statement& one);
  void run_section(const Statement& like);
  void run_each(const Statement& each);
  void assign(const std::string& name, const TableValue& value);
  void read(const Statement& one);
  TableValue read_list(const Statement& one, std::string_view kind, std::string_view path);
  TableValue layer_flags(const Statement& one, std::string_view path);
  std::vector<double> words_of_layers(std::string_view key, const std::string& words);
  TableValue column(std::string_view key, const std::string& path);
  void read_activation(const Statement& one);
  void add_op(const Statement& one);
  void refuse_others(const Statement& only);
  void reject_length(std::string_view key, std::size_t length);

  TableValue named(const std::string& name) override;
  TableValue call(const Expression& one) override;
  TableValue variable_or_field(const std::string& name);
  // Returns the keys of a word such as "$name" or "first|second". The views outlive the reader.
  std::vector<std::string_view> keys_of(const std::string& word);
  std::string_view kept(std::string text) { return *kept_.insert(std::move(text)).first; }

  FieldReader& in_;
  ModelSpec& model_;
  BlockShape* block_;
  std::size_t layer_ = 0;
  std::map<std::string, TableValue, std::less<>> variables_;
  std::map<std::string, BlockShape> shapes_;
  std::set<std::string> kept_, missing_objects_;
};

// Finds a field of a model or block by its path in model files, such as
// "attention.rotary.fraction". The fields of a block are those of `block`, which may be the model
// itself.
FieldPlace place_in(ModelSpec& model, BlockShape& block, std::string_view path);

// Calls `read` with the reader of the object that has the last key of a path "object.key".
void with_owner(FieldReader& in, std::string_view path, Presence presence,
                const std::function<void(FieldReader&, std::string_view)>& read);
bool has_key(FieldReader& in, std::string_view path);

// Reads rope_theta and rope_scaling, or rope_parameters, into model.attention. `theta` is the
// default base.
void read_rotary(FieldReader& in, ModelSpec& model, double theta);

// Whether a value is null, false, zero or empty. A key with such a value has no effect.
bool is_neutral(const JsonValue& value);
// Handles the keys that the family's table did not read. A key that would change the plan is an
// error unless it repeats the model's value; unknown keys are noted.
void name_what_was_left(TableReader& reader, const std::string& type);

// Reads a config.json. Keys that affect the training step must have the right kind and range. A
// value that ModelSpec cannot express is an error, and so is a key that affects the step of another
// family only. Keys known to have no effect are ignored; ModelSpec::notes names unknown ones. For a
// multimodal model, "text_config" is read. The training sequence is that of the family's
// pretraining, at most 8,192 tokens and the context that the file states (bloom: seq_length or
// 2048). The model of a file named config.json gets the name of its folder.
Result<ModelSpec> model_from_huggingface(const JsonValue& root, const std::string& file);

}  // namespace tpsim
