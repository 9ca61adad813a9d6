// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ostream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "command.h"
#include "terminal.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

// Switches to the alternate screen without a cursor, and back to the terminal's previous content.
constexpr char kTakeScreen[] = "\x1b[?1049h\x1b[?25l";
constexpr char kGiveBack[] = "\x1b[?25h\x1b[?1049l";
// Clears the screen from its first line.
constexpr char kRedraw[] = "\x1b[H\x1b[J";

// Returns the lines that fit; the last one says how many are omitted.
std::string Clipped(const std::string& text, std::size_t height) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  const std::size_t count = lines.back().empty() ? lines.size() - 1 : lines.size();
  if (height == 0 || count < height) return text;
  // The cursor is below the last line.
  const std::size_t shown = height > 2 ? height - 2 : 1;
  std::string clipped;
  for (std::size_t i = 0; i < shown; ++i) clipped += lines[i] + "\n";
  return clipped + "(" + std::to_string(count - shown) +
         " more lines: the terminal is not high enough)\n";
}

// What an interrupted look did not read would be shown as trouble.
int RefuseInterrupted(const CommandRun& run) {
  return run.errors.Refuse("interrupted", kExitFailure);
}

class Watch {
 public:
  Watch(const CommandRun& run, const WatchArguments& arguments, const std::string& title,
        const std::function<Look()>& look)
      : run_(run), arguments_(arguments), title_(title), look_(look) {}

  int OnScreen() {
    run_.out << kTakeScreen;
    Look seen;
    std::string shown;  // the last text
    bool interrupted = false;
    do {
      const Look next = look_();
      if (run_.context.Done()) {
        interrupted = true;
        break;
      }
      seen = next;
      if (seen.error.empty()) shown = seen.text;
      Draw(seen, shown);
    } while (Waits());
    run_.out << kGiveBack << std::flush;
    if (!seen.error.empty()) return run_.errors.Refuse(seen.error, seen.exit_code);
    if (interrupted && shown.empty()) return RefuseInterrupted(run_);
    run_.out << shown << std::flush;
    return run_.errors.ExitCode(seen.exit_code);
  }

  int PrintChanges() {
    int exit_code = kExitOk;
    std::string last_state;
    std::string last_error;
    do {
      const Look seen = look_();
      if (run_.context.Done()) return RefuseInterrupted(run_);
      exit_code = seen.exit_code;
      if (!seen.error.empty()) {
        // The error may differ only in how long something was waited for.
        std::string error = seen.error;
        std::replace_if(
            error.begin(), error.end(), [](unsigned char c) { return absl::ascii_isdigit(c); },
            '#');
        exit_code = error == last_error ? run_.errors.ExitCode(seen.exit_code)
                                        : run_.errors.Refuse(seen.error, seen.exit_code);
        last_error = error;
        last_state = error;  // when it is gone, the state is shown again
        continue;
      }
      last_error.clear();
      if (seen.state == last_state) continue;
      run_.out << (last_state.empty() ? "" : "\n") << seen.text << std::flush;
      last_state = seen.state;
    } while (Waits());
    return exit_code;
  }

 private:
  // Waits for the interval; true if it should look again.
  bool Waits() const { return run_.context.Sleep(arguments_.interval).ok() && run_.IsRead(); }

  void Draw(const Look& seen, const std::string& shown) const {
    const std::size_t width = run_.terminal.width;
    const std::string header = title_ + ", every " + base::FormatGoDuration(arguments_.interval) +
                               ": " + base::FormatRfc3339(run_.context.clock().WallNow()) +
                               " (Ctrl-C ends)";
    std::string frame = Fold(Printable(header), width, 2) + "\n\n";
    if (!seen.error.empty()) {
      for (const std::string& line : std::vector<std::string>(absl::StrSplit(seen.error, '\n'))) {
        frame += Fold(Printable(line), width, 2) + "\n";
      }
      if (!shown.empty()) frame += "\nBefore that:\n\n";
    }
    run_.out << kRedraw << Clipped(frame + shown, run_.terminal.height) << std::flush;
  }

  const CommandRun& run_;
  const WatchArguments& arguments_;
  const std::string& title_;
  const std::function<Look()>& look_;
};

}  // namespace

int ShowLooks(const CommandRun& run, const WatchArguments& arguments, const std::string& title,
              const std::function<Look()>& look) {
  if (arguments.watch) {
    Watch watch(run, arguments, title, look);
    return run.terminal.redraws ? watch.OnScreen() : watch.PrintChanges();
  }
  const Look seen = look();
  if (run.context.Done()) return RefuseInterrupted(run);
  if (!seen.error.empty()) return run.errors.Refuse(seen.error, seen.exit_code);
  run.out << seen.text << std::flush;
  return seen.exit_code;
}

}  // namespace nomad_harvester::cli
