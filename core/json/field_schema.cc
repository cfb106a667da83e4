#include "core/json/field_schema.h"

#include "core/json/key_meanings.h"

namespace tpsim {

JsonValue FieldSchema::array_of(JsonValue items) {
  JsonValue schema = json_object({{"type", "array"}});
  schema.set("items", std::move(items));
  return schema;
}

JsonValue FieldSchema::number_schema(NumberRange range) {
  return json_object({{"type", "number"}, {"minimum", range.least}, {"maximum", range.most}});
}

JsonValue FieldSchema::integer_schema(IntRange range) {
  return json_object({{"type", "integer"}, {"minimum", range.least}, {"maximum", range.most}});
}

// Adds a key unless it is present. Two lists may have the same key: a file's list and the list of
// an older format.
void FieldSchema::put(const FieldKey& key, JsonValue schema, Presence presence) {
  if (properties_.find(key.name) != nullptr) return;
  schema.set("description", meaning_of(key.meaning));
  properties_.set(std::string(key.name), std::move(schema));
  if (presence == kRequired) required_.push(JsonValue(key.name));
}

JsonValue FieldSchema::value() && {
  JsonValue schema = json_object({{"type", "object"}});
  schema.set("properties", std::move(properties_));
  schema.set("required", std::move(required_));
  schema.set("additionalProperties", false);
  return schema;
}

}  // namespace tpsim
