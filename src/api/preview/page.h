// What a visitor sees where the sandbox does not answer: a page, or JSON for programs.
#pragma once

#include <string_view>

#include "base/error.h"
#include "http/message.h"

namespace atl::api::preview {

http::Response refusal(const http::Request& request, const Error& error);

// Whether a person is likely to see the answer.
bool is_navigation(const http::Request& request);

}  // namespace atl::api::preview
