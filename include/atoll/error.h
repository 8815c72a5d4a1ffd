// What went wrong, in a form that a caller can branch on and a person can act on.
//
// The namespace is `atl` everywhere: <stdlib.h> declares a function named atoll, and C++ allows no
// namespace of that name beside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace atl {

// The HTTP status, the CLI exit code and the retry rules are functions of this value alone.
enum class ErrorCode : uint8_t {
  InvalidArgument,
  Unauthenticated,
  PermissionDenied,
  NotFound,
  TemplateMissing,
  Conflict,
  InvalidState,
  TooLarge,
  ResourceExhausted,
  NoSpace,
  NotSupported,
  Timeout,
  Cancelled,
  Unavailable,
  Internal,
};

// Stable, lower-case, for logs: "not_found".
std::string_view to_string(ErrorCode code);

class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  // "openat /x: No such file or directory"; the code follows from errno.
  static Error from_errno(int err, std::string_view call, std::string_view subject = {});

  ErrorCode code() const { return code_; }
  int sys_errno() const { return errno_; }
  const std::string& message() const { return message_; }
  // The request field at fault, where there is one.
  const std::string& field() const { return field_; }
  // How long to wait before the same request may succeed; 0 when waiting is no remedy.
  uint32_t retry_after_ms() const { return retry_after_ms_; }

  // Puts what was being attempted in front: "creating web: openat /x: ...".
  Error&& context(std::string_view what) &&;
  Error&& with_field(std::string_view name) &&;
  Error&& with_code(ErrorCode code) &&;
  Error&& with_retry_after(uint32_t milliseconds) &&;

 private:
  ErrorCode code_;
  int errno_ = 0;
  uint32_t retry_after_ms_ = 0;
  std::string message_;
  std::string field_;
};

}  // namespace atl
