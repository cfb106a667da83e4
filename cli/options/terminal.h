// Output of commands: colours and width on a terminal, plain text if redirected, and a progress bar
// on stderr.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tpsim::cli {

enum class Ink { kPlain, kBold, kDim, kGood, kWarn, kBad };

struct Terminal {
  bool color = false;       // ANSI colours on stdout
  bool block_bars = false;  // bars of block characters; otherwise '#'
  bool progress = false;    // stderr is a terminal
  bool lines = false;       // stderr is not a terminal: print occasional lines
  std::size_t columns = 0;  // of stdout; 0 if it has no width: a file, a pipe

  // Reads isatty, NO_COLOR, TERM, COLUMNS and the locale.
  static Terminal detect();

  // Returns the columns for prose after `indent` columns: the terminal's, else `usual`.
  std::size_t room(std::size_t indent, std::size_t usual) const;

  std::string paint(std::string_view text, Ink ink) const;
  // Returns a bar with `share` of `width` characters filled.
  std::string bar(double share, int width) const;
  // Likewise, with the empty part: "[####....]".
  std::string gauge(double share, int width) const;
};

// Returns COLUMNS, else the width of the terminal at this descriptor; 0 if there is none.
std::size_t columns_of(int descriptor);

// Prints all of `text` on stdout. Error if it cannot be written (full disk).
Status print(std::string_view text);
// Likewise for a report: prose lines are wrapped at the terminal's width.
Status print(const Terminal& terminal, std::string_view report);

// Progress bar on stderr with the remaining time; erased by the destructor. Nothing is drawn in the
// first moments. If stderr is not a terminal, prints a line every half minute.
class ProgressBar {
 public:
  ProgressBar(const Terminal& terminal, std::string label);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(double share);
  // Returns show() as a function, which must not outlive this object.
  std::function<void(double)> shower() {
    return [this](double share) { show(share); };
  }
  // Erases the bar until the next show(), so that other lines can be printed.
  void clear();

 private:
  Terminal terminal_;
  std::string label_;
  double started_;       // seconds of the steady clock
  double shown_at_ = 0;  // time of the last drawing; 0: not drawn yet
  double said_at_ = 0;   // time of the last line, likewise
};

}  // namespace tpsim::cli
