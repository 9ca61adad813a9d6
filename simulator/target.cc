// SPDX-License-Identifier: Apache-2.0
#include "target.h"

#include <charconv>

namespace nomad_harvester::simulator {
namespace {

int HexByte(std::string_view two) {
  int value = -1;
  const auto [stop, error] = std::from_chars(two.data(), two.data() + two.size(), value, 16);
  return error == std::errc() && stop == two.data() + two.size() && two.size() == 2 ? value : -1;
}

// Calls fn for each part between separators.
template <typename Fn>
void Split(std::string_view text, char separator, Fn fn) {
  while (true) {
    const std::size_t end = text.find(separator);
    fn(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string Unescape(std::string_view text, bool plus_is_space) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int byte = text[i] == '%' ? HexByte(text.substr(i + 1, 2)) : -1;
    if (byte >= 0) {
      result += static_cast<char>(byte);
      i += 2;
    } else {
      result += text[i] == '+' && plus_is_space ? ' ' : text[i];
    }
  }
  return result;
}

Target ParseTarget(std::string_view text) {
  Target target;
  const std::size_t question = text.find('?');
  target.path = std::string(text.substr(0, question));
  std::string_view path = target.path;
  if (!path.empty() && path.front() == '/') path.remove_prefix(1);
  if (!path.empty()) {
    Split(path, '/', [&target](std::string_view segment) {
      target.segments.push_back(Unescape(segment, false));
    });
  }
  if (question == std::string_view::npos) return target;
  Split(text.substr(question + 1), '&', [&target](std::string_view pair) {
    if (pair.empty()) return;
    const std::size_t equals = pair.find('=');
    const std::string value =
        equals == std::string_view::npos ? "" : Unescape(pair.substr(equals + 1), true);
    target.query.insert_or_assign(Unescape(pair.substr(0, equals), true), value);
  });
  return target;
}

}  // namespace nomad_harvester::simulator
