// SPDX-License-Identifier: Apache-2.0
// absl::Status with std:: strings, and the two macros that propagate errors.
//
// Debian's abseil is built with ABSL_OPTION_USE_STD_STRING_VIEW 0, so absl::string_view is a
// separate type to which std::string_view does not convert. This header has the conversions; all
// other headers use std:: types.
#ifndef NOMAD_HARVESTER_BASE_STATUS_H_
#define NOMAD_HARVESTER_BASE_STATUS_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace nomad_harvester::base {

inline absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view ToStd(absl::string_view text) { return {text.data(), text.size()}; }

// The message of a status as a string; empty for OK.
inline std::string Message(const absl::Status& status) { return std::string(status.message()); }

inline absl::Status MakeStatus(absl::StatusCode code, std::string_view message) {
  return absl::Status(code, ToAbsl(message));
}
inline absl::Status InvalidArgument(std::string_view message) {
  return MakeStatus(absl::StatusCode::kInvalidArgument, message);
}
inline absl::Status FailedPrecondition(std::string_view message) {
  return MakeStatus(absl::StatusCode::kFailedPrecondition, message);
}
inline absl::Status NotFound(std::string_view message) {
  return MakeStatus(absl::StatusCode::kNotFound, message);
}
inline absl::Status Unavailable(std::string_view message) {
  return MakeStatus(absl::StatusCode::kUnavailable, message);
}
inline absl::Status Internal(std::string_view message) {
  return MakeStatus(absl::StatusCode::kInternal, message);
}

// Returns the value; nullopt for an error.
template <typename T>
std::optional<T> ToOptional(absl::StatusOr<T> result) {
  return result.ok() ? std::optional<T>(*std::move(result)) : std::nullopt;
}

// Sets a payload to a text.
void SetPayload(std::string_view url, std::string_view text, absl::Status* status);

// Returns the same code and payloads with "<context>: " before the message; OK stays OK.
absl::Status Annotate(const absl::Status& status, std::string_view context);

inline const absl::Status& GetStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& GetStatus(const absl::StatusOr<T>& status) {
  return status.status();
}

}  // namespace nomad_harvester::base

#define NH_CONCAT_INNER_(a, b) a##b
#define NH_CONCAT_(a, b) NH_CONCAT_INNER_(a, b)

// Returns from the calling function with the status if it is not OK.
#define NH_RETURN_IF_ERROR(expression)                                              \
  do {                                                                              \
    if (absl::Status nh_status_ = ::nomad_harvester::base::GetStatus((expression)); \
        !nh_status_.ok()) {                                                         \
      return nh_status_;                                                            \
    }                                                                               \
  } while (false)

// The first two arguments are a name and a declaration, which must not be in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define NH_ASSIGN_OR_RETURN_IMPL_(result, target, expression) \
  auto result = (expression);                                 \
  if (!result.ok()) return std::move(result).status();        \
  target = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)

// NH_ASSIGN_OR_RETURN(auto value, Fallible()): declares or assigns, or returns the error.
#define NH_ASSIGN_OR_RETURN(target, expression) \
  NH_ASSIGN_OR_RETURN_IMPL_(NH_CONCAT_(nh_result_, __LINE__), target, expression)

#endif  // NOMAD_HARVESTER_BASE_STATUS_H_
