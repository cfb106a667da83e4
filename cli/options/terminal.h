// Where a command's words go: colour and the width of a terminal that wants it, plain text when
// piped, a progress bar on stderr while someone watches.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tpsim::cli {

enum class Ink { kPlain, kBold, kDim, kGood, kWarn, kBad };

struct Terminal {
  bool color = false;       // ANSI colours on stdout
  bool block_bars = false;  // bars of block characters; otherwise of '#'
  bool progress = false;    // stderr is a terminal
  bool lines = false;       // it is none: a line now and then
  std::size_t columns = 0;  // of stdout; 0 where it has no width: a file, a pipe

  // As the environment says: isatty, NO_COLOR, TERM, COLUMNS and the locale.
  static Terminal detect();

  // Columns for prose behind `indent` others: all that the terminal has, else `usual`.
  std::size_t room(std::size_t indent, std::size_t usual) const;

  std::string paint(std::string_view text, Ink ink) const;
  // `share` of `width` characters filled.
  std::string bar(double share, int width) const;
  // The same, the empty part drawn too: "[####....]".
  std::string gauge(double share, int width) const;
};

// What COLUMNS says of every stream, else the width of the terminal behind this one; 0 without one.
std::size_t columns_of(int descriptor);

// Prints all of `text` on stdout; an error when the other end does not take it (a full disk).
Status print(std::string_view text);
// The same of a report: lines of prose that are longer than the terminal is wide go on in the next.
Status print(const Terminal& terminal, std::string_view report);

// A bar on stderr for long work with the time left, wiped when it goes out of scope. It draws
// nothing in the first moments; where stderr is no terminal it says a line every half minute.
class ProgressBar {
 public:
  ProgressBar(const Terminal& terminal, std::string label);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(double share);
  // The same, for what wants to be told of progress; lives as long as this.
  std::function<void(double)> shower() {
    return [this](double share) { show(share); };
  }
  // Wipes the bar until it is next shown, to let other lines through.
  void clear();

 private:
  Terminal terminal_;
  std::string label_;
  double started_;       // seconds of the steady clock
  double shown_at_ = 0;  // when the bar was last drawn; 0 before the first time
  double said_at_ = 0;   // likewise the last line
};

}  // namespace tpsim::cli
