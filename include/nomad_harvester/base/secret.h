// SPDX-License-Identifier: Apache-2.0
// A string that is never logged, either by accident or because a server or a library repeats it.
#ifndef NOMAD_HARVESTER_BASE_SECRET_H_
#define NOMAD_HARVESTER_BASE_SECRET_H_

#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>

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
  // `credential` is the key of the configuration that this credential of the plugin is from, for
  // CredentialIn(); empty: none.
  explicit Secret(std::string value, std::string credential = {});
  // A text such as user data: each line of 8 characters or more, of a single word of 16, counts as
  // a secret, by itself or in a JSON string, and so does the base64 of the whole. Lines that are in
  // `ordinary` do not.
  static Secret Lines(std::string text, const std::set<std::string>& ordinary = {});

  const std::string& Reveal() const;
  bool empty() const { return content_ == nullptr; }

  friend bool operator==(const Secret& a, const Secret& b) { return a.Reveal() == b.Reveal(); }
  friend std::ostream& operator<<(std::ostream& stream, const Secret&) {
    return stream << "REDACTED";
  }

 private:
  class Content;
  explicit Secret(const std::shared_ptr<Content>& content);

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
// part of a secret would not be recognised. The time does not depend on the number of secrets.
// Thread-safe.
std::string WithoutSecrets(std::string text);

// The key of a credential of the plugin that the text contains, in one of the forms above. Ignores
// credentials of fewer than 16 characters, because other texts may contain those by chance.
std::optional<std::string> CredentialIn(std::string_view text);

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_BASE_SECRET_H_
