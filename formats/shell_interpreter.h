// Runs the statements of a shell script and notes its commands, variables and files. Part of
// read_shell_script() alone (formats/shell_script.h).
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

  // Runs from another place, and comes back.
  template <class Work>
  Status elsewhere(const ShellTokens& tokens, std::size_t at, const Work& work) {
    const ShellTokens* const outer = std::exchange(tokens_, &tokens);
    const std::size_t outer_at = std::exchange(at_, at);
    Status status = work();
    tokens_ = outer;
    at_ = outer_at;
    return status;
  }

  // Scripts that grow by themselves end where no honest one gets to.
  bool afford(std::size_t bytes);

  bool done() const { return at_ >= tokens_->size(); }
  const ShellToken& token() const { return (*tokens_)[at_]; }
  bool at_any(const std::vector<std::string_view>& words) const;
  void skip_separators();
  void skip_to(std::string_view end);

  // Up to a word that ends the block, which is left for the caller.
  Status run_block(const std::vector<std::string_view>& ends, bool active, int depth);
  Status run_statement(bool active, int depth);
  Status run_body(std::string_view end, bool active, int depth);
  Status run_if(bool active, int depth);
  // The tests between "if" and "then", with && and ||.
  std::optional<bool> take_condition(std::string_view end);
  Status run_for(bool active, int depth);
  Status run_case(bool active, int depth);
  bool is_function() const;
  // Its body runs when it is called.
  Status keep_function(int depth);
  Status call(const ShellCommand& command, int depth);

  // Commands joined by && and ||: the next one runs if the one before is known to let it.
  Status run_list(bool active, int depth);
  Result<std::optional<bool>> run_command(bool active, int depth);
  void assign(const ShellToken& word);
  // cat <<EOF > config.json, read -r -d '' command <<EOF
  void write_document(const ShellCommand& command, std::string text, const std::string& target);
  Status issue(ShellCommand command, int depth);
  // source FILE and . FILE
  Status read_sourced(const ShellCommand& command, int depth);
  void shift_arguments(const ShellCommand& command);
  // sed 's/NAME/value/' FILE: its output is the next command's input, or a file's text.
  void rewrite(const ShellCommand& command);
  // A variable that only an untaken branch sets expands to nothing.
  void leave_empty(const ShellToken& word);
  // Runs a block of which nobody can say whether it runs.
  template <class Work>
  Status in_doubt(bool doubt, const Work& work) {
    const bool outer = std::exchange(is_in_doubt_, is_in_doubt_ || doubt);
    Status status = work();
    is_in_doubt_ = outer;
    return status;
  }

  std::string file_;
  ShellScript& script_;
  std::vector<std::unique_ptr<ShellTokens>> kept_;  // functions point into them
  std::map<std::string, std::pair<const ShellTokens*, std::size_t>> functions_;
  const ShellTokens* tokens_ = nullptr;
  std::size_t at_ = 0;
  std::size_t spent_ = 0;
  bool exited_ = false;
  const ShellFileReader& open_;
  std::string piped_;         // output of the command before
  bool is_in_doubt_ = false;  // what does not run here may run all the same
};

}  // namespace tpsim
