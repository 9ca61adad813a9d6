// SPDX-License-Identifier: Apache-2.0
#include "progress.h"

#include <algorithm>
#include <chrono>
#include <ostream>
#include <string_view>
#include <variant>

#include "nomad_harvester/scaling/service.h"

#include "absl/strings/str_join.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

// Width of the time before a line.
constexpr std::size_t kTimeWidth = 7;

std::string FieldText(const log::Record& record, std::string_view key) {
  for (const log::Field& field : record.fields) {
    if (field.key != key) continue;
    if (const auto* text = std::get_if<std::string>(&field.value)) return *text;
  }
  return "";
}

}  // namespace

Progress::Progress(const CommandRun& run)
    : run_(run), clock_(run.context.clock()), began_(clock_.Now()) {
  // The command shows the outcome and the state itself.
  said_ = {"Scale failed", "Scale refused", "Not ready"};
  const config::PluginConfig& plugin = run.settings.plugin;
  for (const auto* warnings :
       {&plugin.warnings, &plugin.missing_token_files, &run.settings.policy->warnings}) {
    said_.insert(said_.end(), warnings->begin(), warnings->end());
  }
}

void Progress::Write(const log::Record& record) {
  const bool is_trouble = record.level >= log::Level::kWarn;
  const bool is_wait = record.message == scaling::kWaitsForLease;
  if ((!is_trouble && !is_wait) || IsAlreadyShown(record)) return;
  std::vector<std::string> parts = {FieldText(record, "vm"), record.message};
  for (const char* const key : {"what", "why", "error", "holder", "until"}) {
    parts.push_back(FieldText(record, key));
  }
  std::erase(parts, "");
  Print(is_trouble ? run_.err : run_.out, absl::StrJoin(parts, ": "));
}

std::string Progress::Elapsed() const {
  return base::FormatGoDuration(std::chrono::floor<std::chrono::seconds>(clock_.Now() - began_));
}

bool Progress::IsAlreadyShown(const log::Record& record) const {
  // A watch asks for the Status of one pool only: others may have an agent.
  const std::string pool = FieldText(record, "pool");
  return (!pool.empty() && pool != KeyOf(run_).ToString()) ||
         std::find(said_.begin(), said_.end(), record.message) != said_.end();
}

void Progress::Print(std::ostream& to, const std::string& text) {
  std::string time = Elapsed();
  time.resize(std::max(time.size() + 1, kTimeWidth), ' ');
  const base::MutexLock lock(mutex_);
  to << time << Printable(text) << "\n" << std::flush;
}

}  // namespace nomad_harvester::cli
