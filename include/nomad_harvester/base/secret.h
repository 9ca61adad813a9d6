// SPDX-License-Identifier: Apache-2.0
// A string that is never logged accidentally.
#ifndef NOMAD_HARVESTER_BASE_SECRET_H_
#define NOMAD_HARVESTER_BASE_SECRET_H_

#include <ostream>
#include <string>
#include <utility>

namespace nomad_harvester::base {

// Streams and prints as "REDACTED"; only Reveal() returns the content. Call it only where the
// secret leaves the process (a request header, a TLS option).
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}

  const std::string& Reveal() const { return value_; }
  bool empty() const { return value_.empty(); }

  friend bool operator==(const Secret&, const Secret&) = default;
  friend std::ostream& operator<<(std::ostream& stream, const Secret&) {
    return stream << "REDACTED";
  }
  friend void PrintTo(const Secret&, std::ostream* stream) { *stream << "REDACTED"; }

 private:
  std::string value_;
};

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_BASE_SECRET_H_
