#include "base/error.h"

#include <errno.h>
#include <string.h>

namespace atl {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return "invalid_argument";
    case ErrorCode::Unauthenticated:
      return "unauthenticated";
    case ErrorCode::PermissionDenied:
      return "permission_denied";
    case ErrorCode::NotFound:
      return "not_found";
    case ErrorCode::TemplateMissing:
      return "template_missing";
    case ErrorCode::Conflict:
      return "conflict";
    case ErrorCode::InvalidState:
      return "invalid_state";
    case ErrorCode::TooLarge:
      return "too_large";
    case ErrorCode::ResourceExhausted:
      return "resource_exhausted";
    case ErrorCode::NoSpace:
      return "no_space";
    case ErrorCode::NotSupported:
      return "not_supported";
    case ErrorCode::Timeout:
      return "timeout";
    case ErrorCode::Cancelled:
      return "cancelled";
    case ErrorCode::Unavailable:
      return "unavailable";
    case ErrorCode::Internal:
      return "internal";
  }
  return "internal";
}

static ErrorCode code_for(int err) {
  switch (err) {
    case ENOENT:
    case ESRCH:
      return ErrorCode::NotFound;
    case EEXIST:
    case ENOTEMPTY:
      return ErrorCode::Conflict;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::PermissionDenied;
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case EXDEV:
    case E2BIG:
      return ErrorCode::InvalidArgument;
    case ENOSPC:
    case EDQUOT:
      return ErrorCode::NoSpace;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
      return ErrorCode::ResourceExhausted;
    case ETIMEDOUT:
      return ErrorCode::Timeout;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
      return ErrorCode::Unavailable;
    case ENOSYS:
    case EOPNOTSUPP:
      return ErrorCode::NotSupported;
    default:
      return ErrorCode::Internal;
  }
}

Error Error::from_errno(int err, std::string_view call, std::string_view subject) {
  std::string text(call);
  if (!subject.empty()) text.append(" ").append(subject);
  text.append(": ").append(strerror(err));
  Error error(code_for(err), std::move(text));
  error.errno_ = err;
  return error;
}

Error&& Error::context(std::string_view what) && {
  message_.insert(0, ": ").insert(0, what);
  return std::move(*this);
}

Error&& Error::with_field(std::string_view name) && {
  field_ = name;
  return std::move(*this);
}

Error&& Error::with_code(ErrorCode code) && {
  code_ = code;
  return std::move(*this);
}

Error&& Error::with_retry_after(uint32_t milliseconds) && {
  retry_after_ms_ = milliseconds;
  return std::move(*this);
}

}  // namespace atl
