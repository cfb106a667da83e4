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

  // Runs `work` at position `at` of `tokens`, then returns to the current position.
  template <class Work>
  Status elsewhere(const ShellTokens& tokens, std::size_t at, const Work& work) {
    const ShellTokens* const outer = std::exchange(tokens_, &tokens);
    const std::size_t outer_at = std::exchange(at_, at);
    Status status = work();
    tokens_ = outer;
    at_ = outer_at;
    return status;
  }

  // Adds `bytes` to the text that the script has produced. Returns whether the total is within the
  // limit that stops endless growth.
  bool afford(std::size_t bytes);

  bool done() const { return at_ >= tokens_->size(); }
  const ShellToken& token() const { return (*tokens_)[at_]; }
  bool at_any(const std::vector<std::string_view>& words) const;
  void skip_separators();
  void skip_to(std::string_view end);

  // Runs statements up to one of the words `ends`, which is not consumed. If `active` is false,
  // statements are parsed only.
  Status run_block(const std::vector<std::string_view>& ends, bool active, int depth);
  Status run_statement(bool active, int depth);
  Status run_body(std::string_view end, bool active, int depth);
  Status run_if(bool active, int depth);
  // Evaluates the condition up to the word `end`, such as "then", with && and ||. Returns nothing
  // if the result is unknown.
  std::optional<bool> take_condition(std::string_view end);
  Status run_for(bool active, int depth);
  Status run_case(bool active, int depth);
  bool is_function() const;
  // Stores the body of a function definition, for call().
  Status keep_function(int depth);
  Status call(const ShellCommand& command, int depth);

  // Runs commands joined by && and ||. After && the next command runs if the last result is known
  // to be true, after || if it is known to be false.
  Status run_list(bool active, int depth);
  Result<std::optional<bool>> run_command(bool active, int depth);
  void assign(const ShellToken& word);
  // Stores the text of a here-document: as a file for "cat <<EOF > config.json", as a variable for
  // "read -r -d '' command <<EOF".
  void write_document(const ShellCommand& command, std::string text, const std::string& target);
  // Stores the words of "echo TEXT > FILE" as a file.
  void write_printed(const ShellCommand& command, const std::string& target);
  Status run_written(const ShellCommand& command, std::size_t shell, int depth);
  Status issue(ShellCommand command, int depth);
  // Runs the file of "source FILE" and ". FILE".
  Status read_sourced(const ShellCommand& command, int depth);
  void shift_arguments(const ShellCommand& command);
  // Runs "sed 's/NAME/value/' FILE". The output goes to the next command of a pipe, or to a file.
  void rewrite(const ShellCommand& command);
  // Marks a variable as empty, because only a branch that is not taken sets it.
  void leave_empty(const ShellToken& word);
  // Calls `work` to run a block. `doubt`: whether a shell runs the block depends on the user's
  // environment; is_in_doubt_ is set during the call.
  template <class Work>
  Status in_doubt(bool doubt, const Work& work) {
    const bool outer = std::exchange(is_in_doubt_, is_in_doubt_ || doubt);
    Status status = work();
    is_in_doubt_ = outer;
    return status;
  }

  std::string file_;
  ShellScript& script_;
  std::vector<std::unique_ptr<ShellTokens>> kept_;  // token lists that functions_ refers to
  std::map<std::string, std::pair<const ShellTokens*, std::size_t>> functions_;
  const ShellTokens* tokens_ = nullptr;
  std::size_t at_ = 0;
  std::size_t spent_ = 0;
  std::vector<std::string> launcher_;  // words before the file that run_written() runs
  bool exited_ = false;
  const ShellFileReader& open_;
  std::string piped_;         // output of the previous command of a pipe
  bool is_in_doubt_ = false;  // inside a block whose execution depends on the environment
};

}  // namespace tpsim
