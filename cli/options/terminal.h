// Output of commands: colors and line width on a terminal, plain text if redirected, and a progress
// bar on stderr.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tpsim::cli {

enum class Ink { kPlain, kBold, kDim, kGood, kWarn, kBad };

struct Terminal {
  bool color = false;       // use ANSI colors on stdout
  bool block_bars = false;  // draw bars with Unicode block characters; otherwise with '#'
  bool progress = false;    // draw a progress bar on stderr, which is a terminal
  bool lines = false;       // stderr is not a terminal: print a line of progress from time to time
  std::size_t columns = 0;  // width of stdout; 0 if it is not a terminal
  std::size_t progress_columns = 80;  // width of stderr
  // Gets the completed share of work instead of the bar; may be empty. Stops the work by throwing.
  std::function<void(double)> listener = {};

  // Reads isatty, NO_COLOR, TERM, COLUMNS and the locale.
  static Terminal detect();

  // Returns the width for prose that is indented by `indent` columns; `usual` if the terminal's
  // width is unknown.
  std::size_t room(std::size_t indent, std::size_t usual) const;

  std::string paint(std::string_view text, Ink ink) const;
  // Returns a bar of up to `width` characters that represents `share` in [0, 1].
  std::string bar(double share, int width) const;
  // Returns a bar of exactly `width` characters including its empty part: "[####....]".
  std::string gauge(double share, int width) const;
};

// Returns the width from COLUMNS, or else from the terminal at this descriptor; 0 if there is none.
std::size_t columns_of(int descriptor);

// Prints `text` on stdout. Returns an error if it cannot be written, for example to a full disk.
Status print(std::string_view text);
// Whether print() has written to stdout.
bool has_printed();
// Prints a report on stdout. Wraps prose lines at the terminal's width.
Status print(const Terminal& terminal, std::string_view report);

// Progress bar with remaining time on stderr, drawn after 0.3 s and erased by the destructor. If
// stderr is not a terminal, prints a line every 30 s.
class ProgressBar {
 public:
  ProgressBar(const Terminal& terminal, std::string label);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(double share);
  // Returns show() as a callback, which must not outlive this object.
  std::function<void(double)> shower() {
    return [this](double share) { show(share); };
  }
  // Erases the bar until the next show(), so that other lines can be printed.
  void clear();

 private:
  Terminal terminal_;
  std::string label_;
  double started_;       // seconds of the steady clock, like the following two
  double shown_at_ = 0;  // last drawing; 0: not drawn yet
  double said_at_ = 0;   // last printed line; 0: none yet
};

}  // namespace tpsim::cli
