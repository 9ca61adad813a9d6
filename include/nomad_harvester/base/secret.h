// SPDX-License-Identifier: Apache-2.0
// A string that is never logged, either by accident or because a server or a library repeats it.
#ifndef NOMAD_HARVESTER_BASE_SECRET_H_
#define NOMAD_HARVESTER_BASE_SECRET_H_

#include <memory>
#include <ostream>
#include <string>

namespace nomad_harvester::base {

// Streams and prints as "REDACTED"; only Reveal() returns the content. Call it only where the
// secret leaves the process (a request header, a TLS option).
//
// A secret is active, and WithoutSecrets() knows its content, while a Secret with that content
// exists. The secrets of an old configuration are forgotten when its last call ends. Copies share
// the content. Thread-safe like a std::string.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value);

  const std::string& Reveal() const;
  bool empty() const { return content_ == nullptr; }

  friend bool operator==(const Secret& a, const Secret& b) { return a.Reveal() == b.Reveal(); }
  friend std::ostream& operator<<(std::ostream& stream, const Secret&) {
    return stream << "REDACTED";
  }

 private:
  class Content;
  std::shared_ptr<const Content> content_;  // null: empty
};

// Returns the text with "REDACTED" in place of every secret in force. Also finds secrets that are
// escaped for a URL (as by UrlEscape or Go's url.PathEscape, hex digits in either case) or encoded
// in base64 of either alphabet, and the single lines of a PEM text's blocks, unless a line is
// short. Does not look for secrets of fewer than six bytes, because ordinary words may contain
// them.
//
// Rule P3: all text that leaves the process goes through this function (log::Logger, gRPC's error
// texts, output of commands). Text of other systems goes through it before it is shortened, because
// part of a secret would not be recognised. Costs nothing while there is no secret. Thread-safe.
std::string WithoutSecrets(std::string text);

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_BASE_SECRET_H_
