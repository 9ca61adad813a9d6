// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <algorithm>
#include <arpa/inet.h>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <utility>
#include <variant>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/base_url.h"

#include "absl/strings/str_join.h"

namespace nomad_harvester::config {
namespace {

// A longer duration added to a time could overflow: 2^63 ns are 292 years from 1970.
constexpr base::Duration kMaxDuration = std::chrono::hours(87600);

constexpr std::size_t kMaxHost = 253;

bool IsHostCharacter(unsigned char c) {
  return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_';
}

bool IsHost(std::string_view host) {
  return !host.empty() && host.size() <= kMaxHost && host.front() != '.' &&
         std::all_of(host.begin(), host.end(), IsHostCharacter);
}

bool IsIpv6(const std::string& text) {
  in6_addr address{};
  return inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool IsPort(std::string_view text) {
  const absl::StatusOr<std::int64_t> port = base::ParseInt(text);
  return port.ok() && *port >= 1 && *port <= 65535;
}

// The message omits parts that may be secret: credentials, a signed query.
ValueOr<std::string> Address(const std::string& text, bool may_be_socket, const char* hint) {
  const absl::StatusOr<http::BaseUrl> url = http::ParseBaseUrl(text);
  const bool may_hold_secret = text.find_first_of("@?#") != std::string::npos;
  if (!url.ok()) return Fault{base::Message(url.status()), hint, !may_hold_secret};
  if (!url->is_socket()) return text.substr(0, text.find_last_not_of('/') + 1);
  if (!may_be_socket) return Fault{"the address must begin with https:// or http://", hint};
  return text;
}

}  // namespace

ValueOr<std::string> AnyText(const std::string& text) {
  if (text.find('\0') != std::string::npos) {
    return Fault{"must not contain a NUL character", "remove it", false};
  }
  return text;
}

ValueOr<std::string> Text(const std::string& text) {
  if (text.empty()) return Fault{"must not be empty", "give a value or remove the key", false};
  return AnyText(text);
}

ValueOr<std::string> FilePath(const std::string& text) {
  if (text.find('\n') != std::string::npos || text.starts_with('#') || text.starts_with('{')) {
    return Fault{"must be the path of a file, and holds what is in one",
                 "write it to a file where the agent runs, and give its path", false};
  }
  return Text(text);
}

ValueOr<base::Secret> Token(const std::string& text) {
  if (!text.empty() && !base::IsVisibleAscii(text)) {
    return Fault{"must not contain white space, control or non-ASCII characters",
                 "give the bare token; its value is not shown", false};
  }
  return SecretText(text);
}

ValueOr<base::Secret> SecretText(const std::string& text) {
  ValueOr<std::string> checked = Text(text);
  if (Fault* const fault = std::get_if<Fault>(&checked)) return std::move(*fault);
  return base::Secret(text);
}

ValueOr<bool> Boolean(const std::string& text) {
  const std::optional<bool> value = base::ParseGoBool(text);
  if (!value) return Fault{"must be true or false", "write \"true\" or \"false\""};
  return *value;
}

ValueOr<base::Duration> SignedDuration(const std::string& text) {
  const absl::StatusOr<base::Duration> duration = base::ParseGoDuration(text);
  if (!duration.ok()) {
    return Fault{"must be a duration", "write one such as \"90s\", \"15m\" or \"1h30m\""};
  }
  if (*duration > kMaxDuration || *duration < -kMaxDuration) {
    return Fault{"too long", "ten years, \"87600h\", are the limit"};
  }
  return *duration;
}

ValueOr<base::Duration> PositiveDuration(const std::string& text) {
  ValueOr<base::Duration> duration = SignedDuration(text);
  const base::Duration* const value = std::get_if<base::Duration>(&duration);
  if (value != nullptr && *value <= base::Duration::zero()) {
    return Fault{"must be longer than 0", "write a duration such as \"90s\", \"15m\" or \"1h30m\""};
  }
  return duration;
}

ValueOr<base::Duration> Expiry(const std::string& text) {
  ValueOr<base::Duration> duration = PositiveDuration(text);
  const base::Duration* const value = std::get_if<base::Duration>(&duration);
  if (value != nullptr && *value < std::chrono::hours(1)) {
    return Fault{"must be an hour or more", "write a duration such as \"720h\""};
  }
  return duration;
}

ValueOr<CronWindow> Window(const std::string& text) {
  const absl::StatusOr<CronWindow> window = CronWindow::Parse(text);
  if (window.ok()) return *window;
  return Fault{base::Message(window.status()),
               "write minute, hour, day of month, month, day of week, and for how long it is open, "
               "such as \"0 2 * * 1-5 4h\""};
}

ValueOr<std::int64_t> WholeSeconds(const std::string& text) {
  ValueOr<base::Duration> duration = PositiveDuration(text);
  if (Fault* const fault = std::get_if<Fault>(&duration)) return std::move(*fault);
  const base::Duration value = std::get<base::Duration>(duration);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(value);
  if (seconds == value) return seconds.count();
  return Fault{"must be whole seconds", "write a duration such as \"90s\" or \"5m\""};
}

ValueOr<std::int64_t> CountUpTo(const std::string& text, std::int64_t largest) {
  const absl::StatusOr<std::int64_t> value = base::ParseInt(text);
  if (value.ok() && *value >= 1 && *value <= largest) return *value;
  if (largest == std::numeric_limits<std::int64_t>::max()) {
    return Fault{"must be a whole number greater than 0", "write one such as \"5\""};
  }
  return Fault{"must be a whole number from 1 to " + std::to_string(largest),
               "write one such as \"4\""};
}

ValueOr<std::int64_t> Count(const std::string& text) {
  return CountUpTo(text, std::numeric_limits<std::int64_t>::max());
}

ValueOr<std::int64_t> CountOrZero(const std::string& text) {
  const absl::StatusOr<std::int64_t> value = base::ParseInt(text);
  if (value.ok() && *value >= 0) return *value;
  return Fault{"must be a whole number, or 0", "write one such as \"1\""};
}

ValueOr<Share> CountOrPercentage(const std::string& text) {
  const Fault fault{"must be a whole number greater than 0 or a percentage up to 100%",
                    "write one such as \"2\" or \"20%\""};
  const bool is_percentage = text.ends_with('%');
  const absl::StatusOr<std::int64_t> value =
      base::ParseInt(is_percentage ? text.substr(0, text.size() - 1) : text);
  if (!value.ok() || *value < 1 || (is_percentage && *value > 100)) return fault;
  return Share{.value = *value, .is_percentage = is_percentage};
}

ValueOr<std::int64_t> Bytes(const std::string& text) {
  const absl::StatusOr<std::int64_t> value = base::ParseQuantity(text);
  if (!value.ok() || *value <= 0) {
    return Fault{"must be a quantity greater than 0", "write one such as \"8Gi\""};
  }
  return *value;
}

ValueOr<std::int64_t> BytesFrom(const std::string& text, std::int64_t least,
                                std::string_view least_text) {
  ValueOr<std::int64_t> bytes = Bytes(text);
  const std::int64_t* const value = std::get_if<std::int64_t>(&bytes);
  if (value == nullptr || *value >= least) return bytes;
  const std::string meant = WithUnit(text);
  return Fault{
      "must be at least " + std::string(least_text) + "; without a suffix it is a number of bytes",
      "write " + (meant.empty() ? "a quantity such as \"4Gi\"" : "\"" + meant + "\"")};
}

std::string WithUnit(const std::string& text) {
  constexpr std::int64_t kLeastMebibytes = 512;
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const bool is_bare =
      end > 0 && text[0] != '0' && (end == text.size() || text[end] == '@' || text[end] == ':');
  if (!is_bare) return "";
  // Nomad counts memory in MiB: nobody means 8192 GiB.
  const bool is_mebibytes = base::ParseInt(text.substr(0, end)).value_or(0) >= kLeastMebibytes;
  return text.substr(0, end) + (is_mebibytes ? "Mi" : "Gi") + text.substr(end);
}

ValueOr<std::string> DnsLabel(const std::string& text, std::size_t max_length) {
  if (base::IsDnsLabel(text, max_length)) return text;
  return Fault{"must be a DNS label of at most " + std::to_string(max_length) + " characters",
               "use a-z, 0-9 and '-', with a letter or digit at both ends"};
}

ValueOr<std::string> NodeAttribute(const std::string& text) {
  constexpr std::string_view kMeta = "meta.";
  constexpr std::string_view kAttr = "attr.";
  const bool plain = base::IsVisibleAscii(text) && text.find_first_of("${}\"") == std::string::npos;
  if (text.empty() || !plain || text == kMeta || text.substr(0, kAttr.size()) == kAttr) {
    return Fault{"must be the name of a Nomad node attribute or meta.KEY",
                 "write it bare, such as \"unique.hostname\" or \"meta.vm_name\""};
  }
  return text;
}

ValueOr<std::string> OneOfNames(const std::vector<std::string>& names, const std::string& text) {
  if (std::find(names.begin(), names.end(), text) != names.end()) return text;
  const std::optional<std::string> near = base::NearestName(text.substr(0, 64), names);
  return Fault{"must be one of " + absl::StrJoin(names, ", "),
               near ? "did you mean " + *near + "?" : "choose one"};
}

ValueOr<std::string> HttpUrl(const std::string& text) {
  return Address(text, false, "write it such as \"https://10.0.0.1:6443\"");
}

ValueOr<std::string> NomadAddress(const std::string& text) {
  return Address(text, true, "write http://HOST:PORT, https://HOST:PORT or unix:///PATH");
}

ValueOr<std::string> HostName(const std::string& text) {
  if (IsHost(text) || IsIpv6(text)) return text;
  return Fault{"must be a host name or an IP address", "write it without scheme and port"};
}

ValueOr<std::string> ListenAddress(const std::string& text) {
  const Fault fault{"must be an IP address of this machine, or localhost, and a port",
                    "write it such as \"127.0.0.1:9464\", \"0.0.0.0:9464\" or \"[::1]:9464\""};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || !IsPort(std::string_view(text).substr(colon + 1))) return fault;
  const std::string host = text.substr(0, colon);
  in_addr address{};
  const bool is_v6 = host.starts_with('[') && host.ends_with(']');
  const bool is_here = is_v6
                           ? IsIpv6(host.substr(1, host.size() - 2))
                           : host == "localhost" || inet_pton(AF_INET, host.c_str(), &address) == 1;
  return is_here ? ValueOr<std::string>(text) : fault;
}

}  // namespace nomad_harvester::config
