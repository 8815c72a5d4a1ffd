// How a ConfinedChild says, at its end, how its work went.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::image {

inline constexpr uint32_t kMaxReportBytes = uint32_t{16} << 20;

// `payload` is the child's own; at most kMaxReportBytes.
void send_success(int socket, std::string_view payload);
void send_failure(int socket, const Error& error);

// The payload, or the child's error. The words come from a process that has parsed hostile input:
// only what a terminal and a log can take is let through. A child that died is InvalidArgument.
Result<std::string> read_report(int socket);

// Valid UTF-8 without control characters.
std::string printable_text(std::string_view text);

// MSG_WAITALL; fewer bytes at the end of the stream, Timeout where the socket has one.
Result<size_t> receive_all(int socket, void* data, size_t size);
// False when the other side has stopped reading.
Result<bool> send_all(int socket, const char* data, size_t size);

}  // namespace atl::image
