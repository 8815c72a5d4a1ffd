// Result<T>: a value or an Error. Plain functions propagate with ATOLL_TRY and ATOLL_ASSIGN,
// coroutines with the CO_ forms.
#pragma once

#include <errno.h>

#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "atoll/error.h"

namespace atl {

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error(code, std::move(message)));
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
// Reads errno at once, so call it directly after the failing system call.
inline tl::unexpected<Error> fail_errno(std::string_view call, std::string_view subject = {}) {
  return tl::unexpected<Error>(Error::from_errno(errno, call, subject));
}

}  // namespace atl

#define ATOLL_CONCAT_INNER(a, b) a##b
#define ATOLL_CONCAT(a, b) ATOLL_CONCAT_INNER(a, b)

#define ATOLL_RETURN_ERROR(keyword, expr)                                  \
  if (auto atoll_result = (expr); !atoll_result) {                         \
    keyword tl::unexpected<::atl::Error>(std::move(atoll_result).error()); \
  }                                                                        \
  static_assert(true, "")

#define ATOLL_ASSIGN_IMPL(keyword, holder, decl, expr)                          \
  auto holder = (expr);                                                         \
  if (!holder) keyword tl::unexpected<::atl::Error>(std::move(holder).error()); \
  decl = std::move(*holder)

#define ATOLL_TRY(expr) ATOLL_RETURN_ERROR(return, expr)
#define ATOLL_CO_TRY(expr) ATOLL_RETURN_ERROR(co_return, expr)
#define ATOLL_ASSIGN(decl, expr) \
  ATOLL_ASSIGN_IMPL(return, ATOLL_CONCAT(atoll_holder_, __COUNTER__), decl, expr)
#define ATOLL_CO_ASSIGN(decl, expr) \
  ATOLL_ASSIGN_IMPL(co_return, ATOLL_CONCAT(atoll_holder_, __COUNTER__), decl, expr)
