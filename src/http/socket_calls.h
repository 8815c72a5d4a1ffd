// Single non-blocking system calls on stream sockets, shared by the server and the client.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"

namespace atl::http {

// What a gather write takes; unused parts are empty.
using WriteParts = std::array<std::string_view, 3>;

// Takes `bytes` off the front of `parts`.
void drop_front(WriteParts& parts, size_t bytes);
// Drops from the front of `parts` what the kernel took; true when that was everything.
Result<bool> send_now(int fd, WriteParts& parts);
// 0 is the end of the stream, none means it would have to wait.
Result<std::optional<size_t>> receive_now(int fd, std::span<char> into);

}  // namespace atl::http
