// Expected failures as values: invalid input, unreadable files, plans that cannot run.
//
// Broken invariants are not errors but bugs: TPSIM_CHECK (core/base/check.h).
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <variant>

#include "core/base/check.h"

namespace tpsim {

// The value is the exit code of the program.
enum class ErrorKind {
  kBug = 1,
  kBadInput = 2,    // arguments or files
  kDoesNotFit = 3,  // no plan fits; the message contains the nearest miss
  kMissing = 4,     // this machine lacks a GPU, MPI or a library
  // Stopped by a signal: 128 + signal number, as in shells.
  kInterrupted = 130,  // SIGINT
  kTerminated = 143,   // SIGTERM
};

struct Error {
  ErrorKind kind = ErrorKind::kBadInput;
  std::string message;  // the problem, with the offending text
  std::string where;    // "file:line" or "--option"; may be empty
  std::string hint;     // the next command, or the nearest valid choice; may be empty
};

// Returns an Error about the user's arguments or files.
inline Error bad_input(std::string message, std::string where = "", std::string hint = "") {
  return {ErrorKind::kBadInput, std::move(message), std::move(where), std::move(hint)};
}

// "where: message (hint)" on one line.
std::string to_string(const Error& error);

// Converts an exception: out of memory to kDoesNotFit, any other exception to kBug.
Error error_from(const std::exception& exception);

// A value or an Error. Callers must test ok() before they read the value.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }

  const T& value() const& { return checked(), std::get<T>(state_); }
  T& value() & { return checked(), std::get<T>(state_); }
  T&& value() && { return checked(), std::get<T>(std::move(state_)); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

  const Error& error() const {
    TPSIM_CHECK(!ok(), "error() of a Result that holds a value");
    return std::get<Error>(state_);
  }

 private:
  void checked() const { TPSIM_CHECK(ok(), to_string(std::get<Error>(state_))); }
  std::variant<T, Error> state_;
};

// Result of functions that return no value.
struct Ok {};
using Status = Result<Ok>;

}  // namespace tpsim

// Assigns the value of a Result to `lhs` or returns its Error from the calling function.
#define TPSIM_TRY(lhs, expression) \
  TPSIM_TRY_IMPL_(TPSIM_CONCAT_(result_, __LINE__), lhs, expression)
#define TPSIM_TRY_IMPL_(name, lhs, expression) \
  auto name = (expression);                    \
  if (!name.ok()) return name.error();         \
  lhs = std::move(name).value()
// Returns from the calling function with the Error of a Status, if the Status holds one.
#define TPSIM_TRY_STATUS(expression)                                        \
  do {                                                                      \
    if (auto status_ = (expression); !status_.ok()) return status_.error(); \
  } while (false)
#define TPSIM_CONCAT_(a, b) TPSIM_CONCAT2_(a, b)
#define TPSIM_CONCAT2_(a, b) a##b
