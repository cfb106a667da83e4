// Options of launch files: how to build, find and read them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "formats/settings_text.h"
#include "frameworks/launch/left_settings.h"

namespace tpsim {

// An option such as "--tensor-model-parallel-size 8". Its key has the dashes: "--bf16". The value
// of a switch is empty.
using LaunchOption = FlatSetting;

// Whether both values are equal as texts or as numbers: "1e-5" equals "0.00001".
bool is_same_value(std::string_view value, std::string_view wanted);

class LaunchOptions {
 public:
  void add(std::string name) { all_.push_back({std::move(name), ""}); }
  void add(std::string name, std::string value) {
    all_.push_back({std::move(name), std::move(value)});
  }
  void add(std::string name, std::int64_t value) { add(std::move(name), std::to_string(value)); }
  const std::vector<LaunchOption>& all() const { return all_; }

 private:
  std::vector<LaunchOption> all_;
};

// Reads options by name and removes each one that is read. Options that remain at the end are
// unknown. Errors name the option.
class LaunchOptionReader {
 public:
  explicit LaunchOptionReader(std::vector<LaunchOption> options) : left_(std::move(options)) {}

  bool has(std::string_view name) const;  // does not remove the option
  bool has_value(std::string_view name, std::string_view value) const;
  void drop(std::string_view name);  // removes the option, whatever its value
  bool flag(std::string_view name);
  // Returns the option's value. Fails if the value refers to a variable that the script does not
  // set, and names the variable.
  std::optional<std::string> text(std::string_view name);
  // Returns the option's value, or `fallback` if the option is absent. Fails unless the value is an
  // integer >= 0.
  std::int64_t integer(std::string_view name, std::int64_t fallback);
  // Returns a parallel degree; 1 if the option is absent. Fails unless the value is an integer
  // >= 1.
  std::int64_t degree(std::string_view name);
  // Fails unless the option is present and equal to `wanted`.
  void expect(std::string_view name, std::int64_t wanted);
  // Fails unless the option equals `wanted`; numbers are compared by value. `otherwise` is the
  // stack's default for an absent option. If it is empty, the option is required.
  void expect(const LaunchOption& wanted, std::string_view otherwise);
  // Fails if one of `switches` is set but not in `wanted`, or in `wanted` but not set.
  void refuse_other(std::span<const char* const> switches, const LaunchOptions& wanted);
  // Removes options that describe the model when the user has named a model. Values that differ
  // from `wanted` become notes. Absent options and unset variables are not compared.
  void note_other(const LaunchOption& wanted, std::vector<std::string>& notes);
  void note_other(std::span<const char* const> switches, const LaunchOptions& wanted,
                  std::vector<std::string>& notes);
  void fail(std::string message, std::string hint = "");
  // Adds the remaining options to `unknown` and returns the first error. An option that is given
  // twice is an error.
  Status finish(LeftSettings& unknown) const;
  std::vector<std::string> left() const;  // names of options that were not read
  Status error() const;                   // the first error; does not check the remaining options

 private:
  std::optional<std::string> taken(std::string_view name);

  std::vector<LaunchOption> left_;
  std::vector<std::string> known_;  // every name that was read
  std::optional<Error> error_;
};

}  // namespace tpsim
