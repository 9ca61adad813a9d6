// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/log/logger.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"

namespace nomad_harvester::log {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"trace", "debug", "info", "warn", "error"};

std::string Describe(const absl::Status& status) {
  std::string text = absl::StatusCodeToString(status.code());
  if (!status.ok()) text += ": " + base::Message(status);
  return text;
}

// Appends the field, or replaces one with the same key in place.
void Put(std::vector<Field>* fields, const Field& field) {
  const auto same = std::find_if(fields->begin(), fields->end(),
                                 [&field](const Field& f) { return f.key == field.key; });
  if (same == fields->end()) {
    fields->push_back(field);
  } else {
    *same = field;
  }
}

}  // namespace

std::optional<Level> ParseLevel(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (base::EqualsIgnoreCase(text, kNames[i])) return static_cast<Level>(i);
  }
  return std::nullopt;
}

std::string_view LevelName(Level level) { return kNames[static_cast<std::size_t>(level)]; }

Field::Field(std::string_view k, base::Duration v) : key(k), value(base::FormatGoDuration(v)) {}
Field::Field(std::string_view k, const absl::Status& v) : key(k), value(Describe(v)) {}

Logger::Logger(std::shared_ptr<Sink> sink, Level threshold)
    : sink_(std::move(sink)), threshold_(std::make_shared<std::atomic<Level>>(threshold)) {}

Logger Logger::With(std::initializer_list<Field> fields) const {
  Logger logger = *this;
  for (const Field& field : fields) Put(&logger.fields_, field);
  return logger;
}

void Logger::Log(Level level, std::string_view message, const std::vector<Field>& fields) const {
  if (!Enabled(level)) return;
  Record record{std::chrono::system_clock::now(), level, base::WithoutSecrets(std::string(message)),
                fields_};
  for (const Field& field : fields) Put(&record.fields, field);
  for (Field& field : record.fields) {
    if (auto* text = std::get_if<std::string>(&field.value)) {
      *text = base::OneLine(base::WithoutSecrets(std::move(*text)));
    }
  }
  sink_->Write(record);
}

}  // namespace nomad_harvester::log
