// SPDX-License-Identifier: Apache-2.0
// Structured logging: a constant message and named fields.
#ifndef NOMAD_HARVESTER_LOG_LOGGER_H_
#define NOMAD_HARVESTER_LOG_LOGGER_H_

#include <atomic>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/time.h"

#include "absl/status/status.h"

namespace nomad_harvester::log {

enum class Level { kTrace, kDebug, kInfo, kWarn, kError };

// "trace", "debug", "info", "warn", "error", case-insensitive; nullopt: any other text.
std::optional<Level> ParseLevel(std::string_view text);
std::string_view LevelName(Level level);

// A key in snake_case and a value. A Secret becomes "REDACTED".
struct Field {
  using Value = std::variant<std::string, std::int64_t, bool>;
  std::string key;
  Value value;

  Field(std::string_view k, std::string_view v) : key(k), value(std::string(v)) {}
  Field(std::string_view k, const std::string& v) : key(k), value(v) {}
  Field(std::string_view k, const char* v) : key(k), value(std::string(v)) {}
  Field(std::string_view k, bool v) : key(k), value(v) {}
  Field(std::string_view k, double v) = delete;  // it would become a bool
  Field(std::string_view k, std::integral auto v) : key(k), value(static_cast<std::int64_t>(v)) {}
  Field(std::string_view k, base::Duration v);       // Go's syntax
  Field(std::string_view k, const absl::Status& v);  // "CODE: message"
  Field(std::string_view k, const base::Secret&) : key(k), value(std::string("REDACTED")) {}
};

struct Record {
  base::WallTime time;
  Level level = Level::kInfo;
  std::string message;
  std::vector<Field> fields;
};

// Receives the records. Thread-safe; Write does not throw and blocks only on its file.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void Write(const Record& record) = 0;
};

// A value type: copies share the sink and the threshold. Thread-safe. With() adds fields to every
// record of the returned logger; a later field replaces an earlier one with the same key. Active
// secrets are removed from every record (base::WithoutSecrets), because a text from a server or a
// library may repeat one.
class Logger {
 public:
  // Discards everything.
  Logger() = default;
  Logger(std::shared_ptr<Sink> sink, Level threshold);

  [[nodiscard]] Logger With(std::initializer_list<Field> fields) const;
  // If not, callers need not build a record.
  bool Enabled(Level level) const { return sink_ != nullptr && level >= threshold_->load(); }
  // Also of every copy. Not of a logger that discards everything.
  void SetThreshold(Level threshold) const { threshold_->store(threshold); }

  void Log(Level level, std::string_view message, const std::vector<Field>& fields = {}) const;

  void Debug(std::string_view m, std::initializer_list<Field> f = {}) const {
    Log(Level::kDebug, m, f);
  }
  void Info(std::string_view m, std::initializer_list<Field> f = {}) const {
    Log(Level::kInfo, m, f);
  }
  void Warn(std::string_view m, std::initializer_list<Field> f = {}) const {
    Log(Level::kWarn, m, f);
  }
  void Error(std::string_view m, std::initializer_list<Field> f = {}) const {
    Log(Level::kError, m, f);
  }

 private:
  std::shared_ptr<Sink> sink_;
  std::shared_ptr<std::atomic<Level>> threshold_;
  std::vector<Field> fields_;
};

}  // namespace nomad_harvester::log

#endif  // NOMAD_HARVESTER_LOG_LOGGER_H_
