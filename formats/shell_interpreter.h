// Interpreter of a shell script: records its commands, variables and files. Used only by
// read_shell_script() (formats/shell_script.h).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "formats/shell_script.h"
#include "formats/shell_words.h"

namespace tpsim {

class ShellInterpreter {
 public:
  ShellInterpreter(std::string file, ShellScript& script, const ShellFileReader& open)
      : file_(std::move(file)), script_(script), open_(open) {}

  Status run_text(std::string_view text, int depth);

 private:
  using ShellTokens = std::vector<ShellToken>;
  static constexpr int kDeepestCommand = 16;

  // Runs `work` at another position, then returns to the current one.
  template <class Work>
  Status elsewhere(const ShellTokens& tokens, std::size_t at, const Work& work) {
    const ShellTokens* const outer = std::exchange(tokens_, &tokens);
    const std::size_t outer_at = std::exchange(at_, at);
    Status status = work();
    tokens_ = outer;
    at_ = outer_at;
    return status;
  }

  // Whether `bytes` are within the budget, which stops scripts that grow without end.
  bool afford(std::size_t bytes);

  bool done() const { return at_ >= tokens_->size(); }
  const ShellToken& token() const { return (*tokens_)[at_]; }
  bool at_any(const std::vector<std::string_view>& words) const;
  void skip_separators();
  void skip_to(std::string_view end);

  // Runs up to a word that ends the block. Does not consume that word.
  Status run_block(const std::vector<std::string_view>& ends, bool active, int depth);
  Status run_statement(bool active, int depth);
  Status run_body(std::string_view end, bool active, int depth);
  Status run_if(bool active, int depth);
  // Evaluates the tests between "if" and "then", with && and ||. Nothing if the result is unknown.
  std::optional<bool> take_condition(std::string_view end);
  Status run_for(bool active, int depth);
  Status run_case(bool active, int depth);
  bool is_function() const;
  // Stores the function's body. call() runs it.
  Status keep_function(int depth);
  Status call(const ShellCommand& command, int depth);

  // Runs commands joined by && and ||. The next command runs if the previous result is known and
  // allows it.
  Status run_list(bool active, int depth);
  Result<std::optional<bool>> run_command(bool active, int depth);
  void assign(const ShellToken& word);
  // Handles cat <<EOF > config.json, and read -r -d '' command <<EOF.
  void write_document(const ShellCommand& command, std::string text, const std::string& target);
  Status issue(ShellCommand command, int depth);
  // Handles source FILE and . FILE.
  Status read_sourced(const ShellCommand& command, int depth);
  void shift_arguments(const ShellCommand& command);
  // Handles sed 's/NAME/value/' FILE. The output is the input of the next command, or the text of a
  // file.
  void rewrite(const ShellCommand& command);
  // Makes a variable empty that only an untaken branch sets.
  void leave_empty(const ShellToken& word);
  // Runs a block that may or may not run in the user's environment.
  template <class Work>
  Status in_doubt(bool doubt, const Work& work) {
    const bool outer = std::exchange(is_in_doubt_, is_in_doubt_ || doubt);
    Status status = work();
    is_in_doubt_ = outer;
    return status;
  }

  std::string file_;
  ShellScript& script_;
  std::vector<std::unique_ptr<ShellTokens>> kept_;  // owned; functions_ points into them
  std::map<std::string, std::pair<const ShellTokens*, std::size_t>> functions_;
  const ShellTokens* tokens_ = nullptr;
  std::size_t at_ = 0;
  std::size_t spent_ = 0;
  bool exited_ = false;
  const ShellFileReader& open_;
  std::string piped_;         // output of the previous command
  bool is_in_doubt_ = false;  // inside a block that may run elsewhere although it is not taken here
};

}  // namespace tpsim
