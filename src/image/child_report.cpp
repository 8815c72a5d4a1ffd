#include "image/child_report.h"

#include <sys/socket.h>

#include "base/json_escape.h"

namespace atl::image {
namespace {

constexpr uint32_t kMaxMessageBytes = 8192;

struct Header {
  uint8_t ok = 0;
  uint8_t code = 0;
  uint32_t size = 0;  // of what follows
};

void send_report(int socket, const Header& header, std::string_view payload) {
  [[maybe_unused]] auto ignored =
      send_all(socket, reinterpret_cast<const char*>(&header), sizeof header);
  ignored = send_all(socket, payload.data(), payload.size());
}

}  // namespace

void send_success(int socket, std::string_view payload) {
  Header header{.ok = 1, .code = 0, .size = static_cast<uint32_t>(payload.size())};
  send_report(socket, header, payload);
}

void send_failure(int socket, const Error& error) {
  std::string_view message = std::string_view(error.message()).substr(0, kMaxMessageBytes);
  Header header{.ok = 0,
                .code = static_cast<uint8_t>(error.code()),
                .size = static_cast<uint32_t>(message.size())};
  send_report(socket, header, message);
}

Result<std::string> read_report(int socket) {
  Header header;
  ATOLL_ASSIGN(size_t size, receive_all(socket, &header, sizeof header));
  if (size != sizeof header || header.size > kMaxReportBytes ||
      header.code > static_cast<uint8_t>(ErrorCode::Internal)) {
    return fail(ErrorCode::InvalidArgument,
                "the process that unpacks the archive died; the archive is damaged or hostile, or "
                "needs more than 1 GiB of memory to decompress");
  }
  std::string payload(header.size, '\0');
  ATOLL_ASSIGN(size, receive_all(socket, payload.data(), payload.size()));
  payload.resize(size);
  if (header.ok == 1) return payload;
  return fail(static_cast<ErrorCode>(header.code), printable_text(payload));
}

std::string printable_text(std::string_view text) {
  std::string out = to_valid_utf8(text);
  for (char& c : out) {
    if ((c >= 0 && c < ' ') || c == 0x7f) c = '?';
  }
  return out;
}

Result<size_t> receive_all(int socket, void* data, size_t size) {
  ssize_t received;
  do {
    received = recv(socket, data, size, MSG_WAITALL);
  } while (received < 0 && errno == EINTR);
  if (received >= 0) return static_cast<size_t>(received);
  if (errno == EAGAIN)
    return fail(ErrorCode::Timeout, "unpacking the archive does not come to an end");
  if (errno == ECONNRESET) return size_t{0};
  return fail_errno("recv");
}

Result<bool> send_all(int socket, const char* data, size_t size) {
  while (size > 0) {
    ssize_t sent = send(socket, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return false;
    if (sent < 0 && errno == EAGAIN)
      return fail(ErrorCode::Timeout, "unpacking the archive has stalled");
    if (sent < 0) return fail_errno("send");
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

}  // namespace atl::image
