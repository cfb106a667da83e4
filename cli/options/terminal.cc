#include "cli/options/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/options/wrapping.h"
#include "core/base/leading_number.h"
#include "core/base/standard_streams.h"
#include "ranks/launcher.h"

namespace tpsim::cli {
namespace {

constexpr double kPatience = 0.3;  // seconds before the bar is drawn for the first time
constexpr double kRefresh = 0.05;  // minimum seconds between drawings
constexpr int kProgressWidth = 40, kGaugeEdges = 4;
// Seconds before the first line and between lines, if stderr is not a terminal.
constexpr double kSilence = 30;

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Whether the locale uses UTF-8. As in setlocale(), the first of LC_ALL, LC_CTYPE and LANG that is
// set determines the locale.
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = environment(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string_view::npos ||
           value.find("utf8") != std::string_view::npos;
  }
  return false;
}

const char* escape_of(Ink ink) {
  switch (ink) {
    case Ink::kPlain: return "";
    case Ink::kBold: return "\033[1m";
    case Ink::kDim: return "\033[2m";
    case Ink::kGood: return "\033[32m";
    case Ink::kWarn: return "\033[33m";
    case Ink::kBad: return "\033[31m";
  }
  return "";
}

std::string repeated(std::string_view piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns the estimated remaining time, ", 12 s left"; empty if less than 2 % is done.
std::string left_text(double share, double spent) {
  constexpr double kLeastShare = 0.02, kMinute = 60;
  if (share < kLeastShare || share >= 1) return "";
  const double left = spent * (1 - share) / share;
  return left < 2 * kMinute ? fmt::format(", {:.0f} s left", left)
                            : fmt::format(", {:.0f} min left", left / kMinute);
}

}  // namespace

Terminal Terminal::detect() {
  Terminal terminal;
  // mpirun connects its processes to a terminal even if its own output is redirected, so none is
  // assumed.
  if (started_by_mpi_launcher()) return terminal;
  const bool watched = ::isatty(STDOUT_FILENO) == 1;
  const bool dumb = environment("TERM") == "dumb";
  terminal.color = watched && !dumb && environment("NO_COLOR").empty();
  terminal.block_bars = watched && locale_is_utf8();
  terminal.progress = ::isatty(STDERR_FILENO) == 1 && !dumb;
  terminal.lines = !terminal.progress;
  terminal.columns = columns_of(STDOUT_FILENO);
  if (const std::size_t columns = columns_of(STDERR_FILENO); columns > 0) {
    terminal.progress_columns = columns;
  }
  return terminal;
}

std::size_t Terminal::room(std::size_t indent, std::size_t usual) const {
  constexpr std::size_t kLeast = 20;  // minimum width of wrapped text
  return columns == 0 ? usual : std::max(columns, indent + kLeast) - indent;
}

std::size_t columns_of(int descriptor) {
  constexpr std::size_t kLeast = 30, kMost = 1000;
  const auto said = parse_number<int>(environment("COLUMNS")).value_or(0);
  winsize size = {};
  const bool asks = said <= 0 && ::isatty(descriptor) == 1;
  if (asks && ::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return 0;
  const std::size_t columns = said > 0 ? static_cast<std::size_t>(said) : size.ws_col;
  return columns == 0 ? 0 : std::clamp(columns, kLeast, kMost);
}

std::string Terminal::paint(std::string_view text, Ink ink) const {
  if (!color || ink == Ink::kPlain) return std::string(text);
  return fmt::format("{}{}\033[0m", escape_of(ink), text);
}

std::string Terminal::bar(double share, int width) const {
  const double filled = std::clamp(share, 0.0, 1.0) * width;
  if (!block_bars) return repeated("#", static_cast<int>(std::lround(filled)));
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::lround(filled * 8));
  return repeated("█", eighths / 8) + kEighths[eighths % 8];
}

std::string Terminal::gauge(double share, int width) const {
  const int filled = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width));
  return block_bars ? repeated("█", filled) + repeated("░", width - filled)
                    : fmt::format("[{}{}]", repeated("#", filled), repeated(".", width - filled));
}

namespace {
bool printed = false;
}  // namespace

bool has_printed() { return printed; }

Status print(std::string_view text) {
  errno = 0;
  printed = printed || !text.empty();
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return Ok{};
  return bad_input(fmt::format("cannot write: {}", std::strerror(errno)), "standard output");
}

Status print(const Terminal& terminal, std::string_view report) {
  return print(fitted(report, terminal.columns));
}

ProgressBar::ProgressBar(const Terminal& terminal, std::string label)
    : terminal_(terminal), label_(std::move(label)), started_(now()) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::clear() {
  if (shown_at_ > 0) say("\r\033[K");
  shown_at_ = 0;
}

void ProgressBar::show(double share) {
  if (terminal_.listener) terminal_.listener(share);
  const double time = now();
  if (terminal_.lines && time - std::max(started_, said_at_) >= kSilence) {
    said_at_ = time;
    say(fmt::format("tpsim: {} {:.0f} %{}\n", label_, std::clamp(share, 0.0, 1.0) * 100,
                    left_text(share, time - started_)));
  }
  if (!terminal_.progress) return;
  if (time - started_ < kPatience || time - shown_at_ < kRefresh) return;
  shown_at_ = time;
  const std::string end = fmt::format(" {:3.0f} %{}", std::clamp(share, 0.0, 1.0) * 100,
                                      left_text(share, time - started_));
  // A line that is wider than the terminal could not be redrawn.
  const auto gauge = static_cast<int>(terminal_.progress_columns) -
                     static_cast<int>(label_.size() + end.size()) - kGaugeEdges;
  say(fmt::format("\r{} {}{}\033[K", label_,
                  terminal_.gauge(share, std::clamp(gauge, 1, kProgressWidth)), end));
}

}  // namespace tpsim::cli
