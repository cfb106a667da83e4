#include "core/base/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/descriptor.h"

namespace tpsim {
namespace {

std::string all_of(int descriptor) {
  std::string text;
  std::array<char, 1 << 16> part;
  while (true) {
    const ssize_t count = read(descriptor, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
}

// Starts the program with stdout redirected to `output` and stderr to /dev/null. Returns an errno
// value, 0 on success.
int spawn(std::vector<std::string>& words, int output, pid_t& child) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  if (const int code = posix_spawn_file_actions_init(&actions); code != 0) return code;
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int code = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return code;
}

}  // namespace

Result<std::string> output_of_program(std::vector<std::string> words) {
  const std::string name = words.front();
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{ErrorKind::kBug, fmt::format("cannot create a pipe: {}", std::strerror(errno)),
                 name, ""};
  }
  Descriptor from(ends[0]), to(ends[1]);
  pid_t child = 0;
  if (const int code = spawn(words, to.number(), child); code != 0) {
    return Error{ErrorKind::kMissing, fmt::format("cannot be started: {}", std::strerror(code)),
                 name, ""};
  }
  to.close();
  std::string text = all_of(from.number());
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  return Error{ErrorKind::kBug,
               WIFEXITED(status) ? fmt::format("exited with code {}", WEXITSTATUS(status))
                                 : fmt::format("was killed by signal {}", WTERMSIG(status)),
               name, ""};
}

}  // namespace tpsim
