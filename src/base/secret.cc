// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/secret.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace nomad_harvester::base {
namespace {

constexpr std::size_t kShortest = 6;
// PEM bodies have lines of 64 characters; the last one may be short and then tells little.
constexpr std::size_t kShortestPemLine = 16;
constexpr std::string_view kPemDashes = "-----";
constexpr std::string_view kPemBegin = "-----BEGIN ";
constexpr char kRedacted[] = "REDACTED";

// A secret that contains another one must be replaced before it.
struct LongestFirst {
  bool operator()(const std::string& a, const std::string& b) const {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  }
};
// One entry for each Secret content that can be recognised by the text.
using Forms = std::multiset<std::string, LongestFirst>;

struct KnownSecrets {
  Mutex mutex;
  Forms forms NH_GUARDED_BY(mutex);
  std::atomic<std::size_t> count = 0;  // of forms: read without the mutex
};

// Never destroyed: threads of libraries that log outlive main.
KnownSecrets& Secrets() {
  static KnownSecrets& known = *new KnownSecrets;
  return known;
}

// Whoever quotes PEM may change its line ends or show only a part. What stands outside of its
// blocks ("Bag Attributes" of openssl pkcs12) is no secret.
void AddPemLines(std::string_view pem, std::set<std::string>* forms) {
  bool is_body = false;
  for (const absl::string_view part : absl::StrSplit(ToAbsl(pem), '\n')) {
    const std::string_view line = TrimAsciiSpace(ToStd(part));
    if (line.starts_with(kPemDashes)) {
      is_body = line.starts_with(kPemBegin);
    } else if (is_body && line.size() >= kShortestPemLine) {
      forms->emplace(line);
    }
  }
}

// What stands for a value in texts, escapes for URLs aside.
std::set<std::string> FormsOf(const std::string& value) {
  std::set<std::string> forms;
  if (value.size() < kShortest) return forms;
  forms.insert(value);
  const std::string base64 = Base64Encode(value);
  for (const std::string& form : {base64, absl::StrReplaceAll(base64, {{"+", "-"}, {"/", "_"}})}) {
    forms.insert(form);
    forms.insert(form.substr(0, form.find_last_not_of('=') + 1));
  }
  AddPemLines(value, &forms);
  return forms;
}

// Whether the text begins with "%2F", or "%2f", of a '/'.
bool BeginsEscaped(std::string_view text, char c) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  if (!text.starts_with('%')) return false;
  const auto byte = static_cast<unsigned char>(c);
  const std::array<char, 3> escape = {'%', kHex[byte >> 4U], kHex[byte & 0xfU]};
  return EqualsIgnoreCase(text.substr(0, escape.size()), {escape.data(), escape.size()});
}

// The size of the beginning of `text` that is `form`, each byte as it is or escaped for a URL:
// programs differ in what they escape. 0: it begins with something else.
std::size_t EscapedSize(std::string_view text, std::string_view form) {
  std::size_t at = 0;
  for (const char c : form) {
    const std::string_view rest = text.substr(at);
    if (BeginsEscaped(rest, c)) {
      at += 3;
    } else if (!rest.empty() && (rest.front() == c || (rest.front() == '+' && c == ' '))) {
      ++at;
    } else {
      return 0;
    }
  }
  return at;
}

void ReplaceEscaped(std::string_view form, std::string* text) {
  const bool has_space = form.find(' ') != std::string_view::npos;
  const auto next = [text, has_space](std::size_t from) {
    return has_space ? text->find_first_of("%+", from) : text->find('%', from);
  };
  std::string result;
  std::size_t copied = 0;
  std::size_t at = 0;  // the form does not begin before it
  for (std::size_t sign = next(0); sign != std::string::npos; sign = next(at)) {
    // Of the form fewer bytes than all stand before its first escape.
    at = std::max(at, sign - std::min(sign, form.size() - 1));
    while (at <= sign) {
      const std::size_t size = EscapedSize(std::string_view(*text).substr(at), form);
      if (size > 0) {
        result.append(*text, copied, at - copied).append(kRedacted);
        copied = at + size;
      }
      at += std::max<std::size_t>(size, 1);
    }
  }
  if (copied > 0) *text = result.append(*text, copied);
}

}  // namespace

class Secret::Content {
 public:
  explicit Content(std::string value) : value_(std::move(value)) {}
  ~Content() {
    KnownSecrets& known = Secrets();
    const MutexLock lock(known.mutex);
    for (const Forms::iterator& form : forms_) known.forms.erase(form);
    known.count = known.forms.size();
  }
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;

  // Not part of the constructor, so that the destructor undoes a part of it when memory runs out.
  void Register() {
    std::set<std::string> forms = FormsOf(value_);
    forms_.reserve(forms.size());
    KnownSecrets& known = Secrets();
    const MutexLock lock(known.mutex);
    for (const std::string& form : forms) forms_.push_back(known.forms.insert(form));
    known.count = known.forms.size();
  }

  const std::string& value() const { return value_; }

 private:
  const std::string value_;
  std::vector<Forms::iterator> forms_;
};

Secret::Secret(std::string value) {
  if (value.empty()) return;
  const auto content = std::make_shared<Content>(std::move(value));
  content->Register();
  content_ = content;
}

const std::string& Secret::Reveal() const {
  static const std::string& none = *new std::string;
  return content_ == nullptr ? none : content_->value();
}

std::string WithoutSecrets(std::string text) {
  KnownSecrets& known = Secrets();
  if (known.count.load() == 0) return text;
  const bool has_escapes = text.find_first_of("%+") != std::string::npos;
  const MutexLock lock(known.mutex);
  // Several holders of the same content are neighbours.
  for (auto form = known.forms.begin(); form != known.forms.end();
       form = known.forms.upper_bound(*form)) {
    absl::StrReplaceAll({{*form, kRedacted}}, &text);
    if (has_escapes) ReplaceEscaped(*form, &text);
  }
  return text;
}

}  // namespace nomad_harvester::base
