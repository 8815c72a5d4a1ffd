#include "agent/file_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>

namespace atl::agent {

static constexpr size_t kReadSize = 256u << 10;

FileChannel::FileChannel(UniqueFd socket, wire::FrameBuffer pending)
    : socket_(std::move(socket)), in_(std::move(pending)) {
  fcntl(socket_.get(), F_SETFL, 0);  // blocking: this process has nothing else to do
}

Result<void> FileChannel::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t size = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("send");
    bytes.remove_prefix(static_cast<size_t>(size));
  }
  return {};
}

Result<void> FileChannel::send_error(const Error& error) {
  return send(wire::Failure{.code = static_cast<uint8_t>(error.code()),
                            .sys_errno = error.sys_errno(),
                            .message = error.message(),
                            .field = error.field()});
}

static std::string data_header(size_t size) {
  std::string header;
  wire::append_header(header, {.size = static_cast<uint32_t>(size),
                               .type = static_cast<uint16_t>(wire::AgentType::FileData)});
  return header;
}

Result<void> FileChannel::send_data(std::span<const char> bytes) {
  std::string header = data_header(bytes.size());
  iovec parts[] = {{header.data(), header.size()}, {const_cast<char*>(bytes.data()), bytes.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  ssize_t size = sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  if (size < 0) return fail_errno("send");
  auto sent = static_cast<size_t>(size);
  if (sent < header.size()) {
    ATOLL_TRY(write_all(std::string_view(header).substr(sent)));
    sent = header.size();
  }
  sent -= header.size();
  return write_all({bytes.data() + sent, bytes.size() - sent});
}

Result<size_t> FileChannel::send_file(int fd, size_t size) {
  std::string header = data_header(size);
  ssize_t wrote = ::send(socket_.get(), header.data(), header.size(), MSG_NOSIGNAL | MSG_MORE);
  if (wrote != static_cast<ssize_t>(header.size())) return fail_errno("send");
  size_t left = size;
  broken_ = true;  // until all of it has gone
  while (left > 0) {
    ssize_t moved = sendfile(socket_.get(), fd, nullptr, left);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return fail_errno("sendfile");
    if (moved == 0) break;
    left -= static_cast<size_t>(moved);
  }
  // The file shrank under us. The frame's size is promised already: break the connection.
  if (left > 0) return fail(ErrorCode::Conflict, "the file was truncated while it was read");
  broken_ = false;
  return size;
}

// 0 at the end of the connection.
Result<size_t> FileChannel::read_some(char* space, size_t size) {
  for (;;) {
    ssize_t got = recv(socket_.get(), space, size, 0);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) return fail_errno("recv");
  }
}

Result<std::optional<wire::Frame>> FileChannel::receive() {
  // What an upload that failed half-way left unread.
  while (data_left_ > 0) {
    ATOLL_ASSIGN(std::string_view skipped, receive_data());
    if (skipped.empty()) break;
  }
  for (;;) {
    ATOLL_ASSIGN(auto frame, in_.next());
    if (frame) return frame;
    char* space = in_.prepare(kReadSize);
    ATOLL_ASSIGN(size_t size, read_some(space, kReadSize));
    if (size == 0) return std::nullopt;
    in_.commit(size);
  }
}

Result<std::string_view> FileChannel::receive_data() {
  while (data_left_ == 0) {
    ATOLL_ASSIGN(auto header, in_.peek());
    if (!header) {
      char* space = in_.prepare(wire::kHeaderBytes);
      ATOLL_ASSIGN(size_t size, read_some(space, wire::kHeaderBytes));
      if (size == 0) return fail(ErrorCode::Cancelled, "the upload was cut off");
      in_.commit(size);
      continue;
    }
    if (header->type != static_cast<uint16_t>(wire::AgentType::FileData)) {
      ATOLL_ASSIGN(auto frame, receive());
      bool end = frame && frame->type == static_cast<uint16_t>(wire::AgentType::FileEnd);
      if (end) return std::string_view();
      return fail(ErrorCode::InvalidArgument, "unexpected frame in an upload");
    }
    in_.take(wire::kHeaderBytes);
    data_left_ = header->size;
  }
  std::string_view part = in_.take(data_left_);
  if (part.empty()) {
    // Nothing buffered: straight from the socket, past the frame buffer.
    if (bulk_.empty()) bulk_.resize(kReadSize);
    ATOLL_ASSIGN(size_t size, read_some(bulk_.data(), std::min(data_left_, bulk_.size())));
    if (size == 0) return fail(ErrorCode::Cancelled, "the upload was cut off");
    part = {bulk_.data(), size};
  }
  data_left_ -= part.size();
  return part;
}

}  // namespace atl::agent
