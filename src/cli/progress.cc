// SPDX-License-Identifier: Apache-2.0
#include "progress.h"

#include <algorithm>
#include <chrono>
#include <ostream>
#include <variant>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/scaling/service.h"

#include "absl/strings/str_join.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

// Interval between two heartbeats; on a terminal each replaces the previous one.
constexpr base::Duration kBeatOnTerminal = std::chrono::seconds(1);
constexpr base::Duration kBeatElsewhere = std::chrono::minutes(1);
// Width of the time before a line.
constexpr std::size_t kTimeWidth = 7;
constexpr char kEraseLine[] = "\r\x1b[K";

std::string FieldText(const log::Record& record, std::string_view key) {
  for (const log::Field& field : record.fields) {
    if (field.key != key) continue;
    if (const auto* text = std::get_if<std::string>(&field.value)) return *text;
  }
  return "";
}

bool EndsWork(const log::Record& record) {
  // "Removed a VM" may continue, because something is left of it.
  return record.message == "A new VM is ready" ||
         record.message == "Cancelled the removal of a VM" ||
         record.message.starts_with("Removed a VM");
}

}  // namespace

Progress::Progress(const CommandRun& run, std::size_t expected)
    : run_(run),
      clock_(run.context.clock()),
      began_(clock_.Now()),
      expected_(expected),
      last_line_(began_) {
  const config::PluginConfig& plugin = run.settings.plugin;
  for (const auto* warnings :
       {&plugin.warnings, &plugin.missing_token_files, &run.settings.policy->warnings}) {
    said_.insert(said_.end(), warnings->begin(), warnings->end());
  }
  beats_ = clock_.Every(run.terminal.redraws ? kBeatOnTerminal : kBeatElsewhere,
                        [this] { Heartbeat(); });
}

void Progress::Write(const log::Record& record) {
  const std::string vm = FieldText(record, "vm");
  const bool is_trouble = record.level >= log::Level::kWarn;
  // The command shows the plan and the outcome itself; everything else concerns a VM.
  const bool is_wait = record.message == scaling::kWaitsForLease;
  const bool is_step = record.message == "Next step";
  // A drain may take an hour, so each wait is reported once.
  const bool waits = is_step && record.level < log::Level::kInfo;
  if ((record.level < log::Level::kInfo && !waits) || (vm.empty() && !is_trouble && !is_wait) ||
      IsAlreadyShown(record)) {
    return;
  }
  std::vector<std::string> parts = {vm, !is_step ? record.message : waits ? "waits" : ""};
  for (const char* const key :
       {"what", "why", "by", "running", "left", "error", "holder", "until"}) {
    if (!waits || key != std::string_view("what")) parts.push_back(FieldText(record, key));
  }
  std::erase(parts, "");
  std::string line = absl::StrJoin(parts, ": ");
  const base::MutexLock lock(mutex_);
  if (!vm.empty()) line += Count(record, vm);
  Print(is_trouble ? run_.err : run_.out, line);
}

void Progress::End() {
  beats_.reset();
  const base::MutexLock lock(mutex_);
  if (has_beat_) run_.out << kEraseLine << std::flush;
  has_beat_ = false;
}

std::string Progress::Elapsed() const {
  return base::FormatGoDuration(std::chrono::floor<std::chrono::seconds>(clock_.Now() - began_));
}

std::string Progress::TimeColumn() const {
  std::string time = Elapsed();
  time.resize(std::max(time.size() + 1, kTimeWidth), ' ');
  return time;
}

bool Progress::IsAlreadyShown(const log::Record& record) const {
  return record.message == "Scaled" || record.message == "Scale refused" ||
         std::find(said_.begin(), said_.end(), record.message) != said_.end();
}

std::string Progress::Count(const log::Record& record, const std::string& vm) {
  const bool ends = EndsWork(record);
  if (ends || record.level >= log::Level::kWarn) {
    at_work_.erase(vm);
  } else {
    at_work_.insert(vm);
  }
  if (!ends) return "";
  done_.insert(vm);
  return " (" + DoneOfExpected() + ")";
}

std::string Progress::DoneOfExpected() const {
  return std::to_string(done_.size()) + " of " + std::to_string(std::max(done_.size(), expected_));
}

void Progress::Print(std::ostream& to, const std::string& text) {
  if (has_beat_) run_.out << kEraseLine << std::flush;
  has_beat_ = false;
  to << TimeColumn() << Printable(text) << "\n" << std::flush;
  last_line_ = clock_.Now();
}

void Progress::Heartbeat() {
  const base::MutexLock lock(mutex_);
  const bool on_terminal = run_.terminal.redraws;
  if (!on_terminal && clock_.Now() - last_line_ < kBeatElsewhere) return;
  std::string text = DoneOfExpected() + " done";
  if (!at_work_.empty()) {
    text += ", at work on " + FirstFew({at_work_.begin(), at_work_.end()});
  }
  if (!on_terminal) return Print(run_.out, text);
  // A line that the terminal wraps cannot be erased.
  run_.out << kEraseLine
           << Clip(TimeColumn() + Printable(text),
                   std::max<std::size_t>(run_.terminal.width, 2) - 1)
           << std::flush;
  has_beat_ = true;
}

}  // namespace nomad_harvester::cli
