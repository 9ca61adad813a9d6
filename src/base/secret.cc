// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/secret.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::base {
namespace {

// Also the number of bytes by which the forms are indexed.
constexpr std::size_t kShortest = 6;
// Shorter lines of a text, and single words below the second limit, are in other texts, too.
constexpr std::size_t kMinLine = 8;
constexpr std::size_t kMinWord = 16;
// PEM bodies have lines of 64 characters; the last one may be short and then reveals little.
constexpr std::size_t kMinPemLine = 16;
constexpr std::size_t kMinCredential = 16;
constexpr std::string_view kPemDashes = "-----";
constexpr std::string_view kPemBegin = "-----BEGIN ";
constexpr char kRedacted[] = "REDACTED";

struct LongestFirst {
  bool operator()(const std::string& a, const std::string& b) const {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  }
};
// What a secret looks like in a text, with the credential's name of each Secret that has this form.
using Forms = std::map<std::string, std::multiset<std::string>, LongestFirst>;

// Finds forms by their first bytes, so that the time to search a text does not grow with the number
// of secrets.
class KnownSecrets {
 public:
  void Add(const std::string& form, const std::string& credential) {
    const MutexLock lock(mutex_);
    Forms& forms = index_[IndexOf(form)];
    forms[form].insert(credential);  // the last that may throw; a form without names is none
    count_ += 1;
  }
  void Remove(const std::string& form, const std::string& credential) {
    const MutexLock lock(mutex_);
    Forms& forms = index_.at(IndexOf(form));
    std::multiset<std::string>& names = forms.at(form);
    names.erase(names.find(credential));
    if (names.empty()) forms.erase(form);
    if (forms.empty()) index_.erase(IndexOf(form));
    count_ -= 1;
  }

  // Calls found(position, size, credential) for each form in the text, from left to right and the
  // longest first, until it returns false.
  template <typename Found>
  void Search(std::string_view text, Found found) {
    if (count_.load() == 0) return;
    const MutexLock lock(mutex_);
    for (std::size_t at = 0; at + kShortest <= text.size(); ++at) {
      const auto forms = index_.find(IndexOf(text.substr(at)));
      if (forms == index_.end()) continue;
      for (const auto& [form, names] : forms->second) {
        if (names.empty() || text.substr(at, form.size()) != form) continue;
        if (!found(at, form.size(), *names.rbegin())) return;
      }
    }
  }

 private:
  static std::uint64_t IndexOf(std::string_view text) {
    std::uint64_t index = 0;
    std::memcpy(&index, text.data(), kShortest);
    return index;
  }

  Mutex mutex_;
  std::unordered_map<std::uint64_t, Forms> index_ NH_GUARDED_BY(mutex_);
  std::atomic<std::size_t> count_ = 0;  // read without the mutex
};

// Never destroyed, because library threads that log outlive main.
KnownSecrets& Secrets() {
  static KnownSecrets& known = *new KnownSecrets;
  return known;
}

// Whoever quotes PEM may change its line ends or show only a part. Text outside of its blocks ("Bag
// Attributes" of openssl pkcs12) is not secret.
void AddPemLines(std::string_view pem, std::set<std::string>* forms) {
  bool is_body = false;
  for (const absl::string_view part : absl::StrSplit(ToAbsl(pem), '\n')) {
    const std::string_view line = TrimAsciiSpace(ToStd(part));
    if (line.starts_with(kPemDashes)) {
      // A file of a key may have certificates, too, which are public.
      is_body = line.starts_with(kPemBegin) && line.ends_with("PRIVATE KEY-----");
    } else if (is_body && line.size() >= kMinPemLine) {
      forms->emplace(line);
    }
  }
}

// Adds the text as it is escaped for a URL, with hex digits of either case. Go's url.PathEscape
// leaves some characters as they are (golang/go:src/net/url/url.go, shouldEscape).
void AddEscaped(std::string_view text, std::set<std::string>* forms) {
  for (const std::string_view plain : {std::string_view(), std::string_view("$&+=:@")}) {
    std::string upper;
    std::string lower;
    for (const char& c : text) {
      const bool stays = plain.find(c) != std::string_view::npos;
      const std::string escaped = stays ? std::string(1, c) : UrlEscape({&c, 1});
      upper += escaped;
      lower += escaped.size() > 1 ? AsciiLower(escaped) : escaped;
    }
    forms->insert(std::move(upper));
    forms->insert(std::move(lower));
  }
}

// What stands for a value in texts.
std::set<std::string> FormsOf(const std::string& value) {
  std::set<std::string> forms;
  if (value.size() < kShortest) return forms;
  forms.insert(value);
  const std::string base64 = Base64Encode(value);
  for (const std::string& form : {base64, absl::StrReplaceAll(base64, {{"+", "-"}, {"/", "_"}})}) {
    forms.insert(form);
    forms.insert(form.substr(0, form.find_last_not_of('=') + 1));
  }
  for (const std::string& form : std::set(forms)) AddEscaped(form, &forms);
  AddPemLines(value, &forms);
  return forms;
}

// The lines of a text, as they are and as in a JSON string. Without the lines of `ordinary`.
std::set<std::string> LinesOf(const std::string& text, const std::set<std::string>& ordinary) {
  std::set<std::string> forms;
  for (const absl::string_view part : absl::StrSplit(ToAbsl(text), '\n')) {
    std::string line(TrimAsciiSpace(ToStd(part)));
    const bool is_word = std::all_of(line.begin(), line.end(),
                                     [](unsigned char c) { return absl::ascii_isalpha(c); });
    if (line.size() < (is_word ? kMinWord : kMinLine) || ordinary.contains(line)) continue;
    const std::string quoted = DumpJson(nlohmann::json(line));
    forms.insert(quoted.substr(1, quoted.size() - 2));
    forms.insert(std::move(line));
  }
  if (!forms.empty()) forms.insert(Base64Encode(text));
  return forms;
}

}  // namespace

class Secret::Content {
 public:
  Content(std::string value, std::string credential, const std::set<std::string>& forms)
      : value_(std::move(value)),
        credential_(value_.size() < kMinCredential ? "" : std::move(credential)),
        forms_(forms.begin(), forms.end()) {}
  ~Content() {
    for (std::size_t i = 0; i < known_; ++i) Secrets().Remove(forms_[i], credential_);
  }
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;

  // Not part of the constructor, so that the destructor undoes a partial registration when memory
  // runs out.
  void Register() {
    for (; known_ < forms_.size(); ++known_) Secrets().Add(forms_[known_], credential_);
  }

  const std::string& value() const { return value_; }

 private:
  const std::string value_;
  const std::string credential_;
  const std::vector<std::string> forms_;
  std::size_t known_ = 0;  // how many of the forms are registered
};

Secret::Secret(std::string value, std::string credential) {
  if (value.empty()) return;
  const std::set<std::string> forms = FormsOf(value);
  *this = Secret(std::make_shared<Content>(std::move(value), std::move(credential), forms));
}

Secret::Secret(const std::shared_ptr<Content>& content) : content_(content) { content->Register(); }

Secret Secret::Lines(std::string text, const std::set<std::string>& ordinary) {
  if (text.empty()) return Secret();
  const std::set<std::string> forms = LinesOf(text, ordinary);
  return Secret(std::make_shared<Content>(std::move(text), "", forms));
}

const std::string& Secret::Reveal() const {
  static const std::string& none = *new std::string;
  return content_ == nullptr ? none : content_->value();
}

std::string WithoutSecrets(std::string text) {
  std::string open;
  std::size_t end = 0;  // of what has been copied or replaced
  Secrets().Search(text, [&](std::size_t at, std::size_t size, const std::string&) {
    // Secrets may overlap: what is covered by any of them is replaced.
    if (at >= end) open.append(text, end, at - end).append(kRedacted);
    end = std::max(end, at + size);
    return true;
  });
  if (end == 0) return text;
  return open.append(text, end);
}

std::optional<std::string> CredentialIn(std::string_view text) {
  std::optional<std::string> credential;
  Secrets().Search(text, [&](std::size_t, std::size_t, const std::string& name) {
    if (!name.empty()) credential = name;
    return !credential.has_value();
  });
  return credential;
}

}  // namespace nomad_harvester::base
