// A preloaded library that makes a call of the program fail, as a full disk does. TPSIM_FAIL_CALL
// is the name of the call, TPSIM_FAIL_AT its number among calls of that name (from 1),
// TPSIM_FAIL_ERRNO the error. With TPSIM_FAIL_ON all later calls of that name fail too. Only calls
// on regular files and on paths are counted.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> counted{0};

bool fails(const char* call) {
  const char* chosen = std::getenv("TPSIM_FAIL_CALL");
  if (chosen == nullptr || std::strcmp(chosen, call) != 0) return false;
  const long number = ++counted;
  const long at = std::atol(std::getenv("TPSIM_FAIL_AT"));
  const bool goes_on = std::getenv("TPSIM_FAIL_ON") != nullptr;
  if (number != at && !(goes_on && number > at)) return false;
  errno = std::atoi(std::getenv("TPSIM_FAIL_ERRNO"));
  return true;
}

bool is_file(int descriptor) {
  struct stat about {};
  return descriptor > STDERR_FILENO && ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" ssize_t write(int descriptor, const void* data, size_t size) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  if (is_file(descriptor) && fails("write")) return -1;
  return real(descriptor, data, size);
}

extern "C" int fsync(int descriptor) {
  static const auto real = next<int (*)(int)>("fsync");
  if (is_file(descriptor) && fails("fsync")) return -1;
  return real(descriptor);
}

extern "C" int close(int descriptor) {
  static const auto real = next<int (*)(int)>("close");
  const bool failed = is_file(descriptor) && fails("close");
  const int reason = errno;
  const int closed = real(descriptor);
  if (!failed) return closed;
  errno = reason;
  return -1;
}

extern "C" int rename(const char* from, const char* to) {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  return fails("rename") ? -1 : real(from, to);
}

extern "C" int mkdir(const char* path, mode_t mode) {
  static const auto real = next<int (*)(const char*, mode_t)>("mkdir");
  return fails("mkdir") ? -1 : real(path, mode);
}

extern "C" int unlinkat(int folder, const char* path, int flags) {
  static const auto real = next<int (*)(int, const char*, int)>("unlinkat");
  return fails("unlinkat") ? -1 : real(folder, path, flags);
}
