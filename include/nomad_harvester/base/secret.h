// SPDX-License-Identifier: Apache-2.0
// A string that is never logged, neither by accident nor because somebody else tells it back.
#ifndef NOMAD_HARVESTER_BASE_SECRET_H_
#define NOMAD_HARVESTER_BASE_SECRET_H_

#include <memory>
#include <ostream>
#include <string>

namespace nomad_harvester::base {

// Streams and prints as "REDACTED"; only Reveal() returns the content. Call it only where the
// secret leaves the process (a request header, a TLS option).
//
// As long as any Secret with a content exists, WithoutSecrets() knows that content: the secrets in
// force are those that somebody still holds, and those of an old configuration are forgotten with
// its last call. Copies share the content. Thread-safe like a std::string.
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

// The text with "REDACTED" in place of every secret that exists at the moment, also where it is
// escaped for a URL, by whatever rule, or encoded in base64 of either alphabet; of a PEM text, also
// each line of its blocks. Secrets of fewer than six bytes are not looked for: they would be found
// in ordinary words.
//
// Rule P3: everything that leaves the process passes here (log::Logger, gRPC's error texts, what
// commands print), and so does a foreign text before it is shortened, because a part of a secret is
// not recognised. Costs nothing while there is no secret. Thread-safe.
std::string WithoutSecrets(std::string text);

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_BASE_SECRET_H_
