// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/secret.h"

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
// PEM bodies have lines of 64 characters; the last one may be short and then reveals little.
constexpr std::size_t kMinPemLine = 16;
constexpr std::string_view kPemDashes = "-----";
constexpr std::string_view kPemBegin = "-----BEGIN ";
constexpr char kRedacted[] = "REDACTED";

// A secret that contains another one must be replaced first.
struct LongestFirst {
  bool operator()(const std::string& a, const std::string& b) const {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  }
};
// One entry for each Secret whose content can be recognised by the text.
using Forms = std::multiset<std::string, LongestFirst>;

struct KnownSecrets {
  Mutex mutex;
  Forms forms NH_GUARDED_BY(mutex);
  std::atomic<std::size_t> count = 0;  // number of forms, read without the mutex
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
      is_body = line.starts_with(kPemBegin);
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

  // Not part of the constructor, so that the destructor undoes a partial registration when memory
  // runs out.
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
  const MutexLock lock(known.mutex);
  // Entries with the same content are adjacent.
  for (auto form = known.forms.begin(); form != known.forms.end();
       form = known.forms.upper_bound(*form)) {
    absl::StrReplaceAll({{*form, kRedacted}}, &text);
  }
  return text;
}

}  // namespace nomad_harvester::base
