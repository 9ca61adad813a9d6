// SPDX-License-Identifier: Apache-2.0
// The syntax of Kubernetes names and labels
// (kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go).
#include <algorithm>
#include <cstddef>
#include <string_view>

#include "nomad_harvester/base/parse.h"

namespace nomad_harvester::base {
namespace {

constexpr std::size_t kMaxLabelLength = 63;
constexpr std::size_t kMaxSubdomainLength = 253;

bool IsLowerAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsAlphanumeric(char c) { return IsLowerAlphanumeric(c) || (c >= 'A' && c <= 'Z'); }

// "qualified name" without its prefix: [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?
bool IsQualifiedName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxLabelLength && IsAlphanumeric(text.front()) &&
         IsAlphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

bool IsDnsLabel(std::string_view text, std::size_t max_length) {
  return !text.empty() && text.size() <= max_length && IsLowerAlphanumeric(text.front()) &&
         IsLowerAlphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return IsLowerAlphanumeric(c) || c == '-';
         });
}

bool IsDnsSubdomain(std::string_view text) {
  if (text.size() > kMaxSubdomainLength) return false;
  while (true) {
    const std::size_t dot = text.find('.');
    // Kubernetes does not limit the length of the parts of a subdomain.
    if (!IsDnsLabel(text.substr(0, dot), kMaxSubdomainLength)) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool IsLabelKey(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return IsQualifiedName(text);
  return IsDnsSubdomain(text.substr(0, slash)) && IsQualifiedName(text.substr(slash + 1));
}

bool IsLabelValue(std::string_view text) { return text.empty() || IsQualifiedName(text); }

}  // namespace nomad_harvester::base
