// SPDX-License-Identifier: Apache-2.0
// The sinks: hclog JSON for the agent, plain text for people.
#ifndef NOMAD_HARVESTER_LOG_SINKS_H_
#define NOMAD_HARVESTER_LOG_SINKS_H_

#include <memory>
#include <string>
#include <string_view>

#include "nomad_harvester/log/logger.h"

namespace nomad_harvester::log {

// One line of hclog JSON, without the newline: @level, @message, @timestamp with exactly six
// fractional digits, @module, then the fields. Strings are converted to valid UTF-8; a key that
// begins with '@' gets the prefix '_'; the longest strings are shortened to keep the line under 64
// KiB (the host panics on a non-string @message and splits longer lines:
// hashicorp/go-plugin:log_entry.go, client.go:logStderr). Logger has removed secrets.
std::string FormatHclog(const Record& record, std::string_view module);

// "2026-11-21T02:03:04.000Z [INFO]  message: key=value key=\"two words\"".
std::string FormatPlain(const Record& record);

// Write to standard error through an spdlog sink, one line per record, atomically.
std::shared_ptr<Sink> MakeHclogSink(std::string module);
std::shared_ptr<Sink> MakePlainSink();
// Writes the hclog format to a file descriptor, which the caller keeps and closes: for tests.
std::shared_ptr<Sink> MakeHclogSinkOn(int fd, std::string module);

}  // namespace nomad_harvester::log

#endif  // NOMAD_HARVESTER_LOG_SINKS_H_
