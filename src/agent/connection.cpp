#include "agent/connection.h"

#include <errno.h>
#include <sys/socket.h>

namespace atl::agent {

static constexpr size_t kReadSize = 16u << 10;

Connection::Connection(EventLoop& loop, UniqueFd fd, wire::FrameBuffer pending)
    : loop_(loop), fd_(std::move(fd)), in_(std::move(pending)) {
  loop_.add(fd_.get(), EPOLLIN, this);
}

Connection::~Connection() { close(); }

void Connection::close() {
  if (!fd_.valid()) return;
  loop_.remove(fd_.get(), this);
  fd_.reset();
}

void Connection::send_error(uint32_t id, const Error& error) {
  wire::Failure failure{.code = static_cast<uint8_t>(error.code()),
                        .sys_errno = error.sys_errno(),
                        .message = error.message(),
                        .field = error.field()};
  send(id, failure);
}

size_t Connection::begin_frame(uint16_t type, std::string_view head, std::span<const char> body) {
  std::string header;
  wire::append_header(header,
                      {.size = static_cast<uint32_t>(head.size() + body.size()), .type = type});
  header.append(head);
  iovec parts[] = {{header.data(), header.size()}, {const_cast<char*>(body.data()), body.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  ssize_t size = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  size_t sent = size > 0 ? static_cast<size_t>(size) : 0;
  if (sent >= header.size()) return sent - header.size();
  out_.append(header, sent);
  update_interest();
  return 0;
}

size_t Connection::send_raw(std::span<const char> bytes) {
  ssize_t size = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return size > 0 ? static_cast<size_t>(size) : 0;
}

void Connection::set_write_wanted(bool wanted) {
  write_wanted_ = wanted;
  update_interest();
}

void Connection::flush() {
  while (unsent() > 0 && !closed()) {
    ssize_t size =
        ::send(fd_.get(), out_.data() + out_begin_, unsent(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) break;  // EAGAIN: later; anything else shows up as a hang-up on the next read
    out_begin_ += static_cast<size_t>(size);
  }
  if (unsent() == 0) {
    out_begin_ = 0;
    if (out_.capacity() > 4096) out_ = std::string();
    out_.clear();
  }
  update_interest();
}

void Connection::update_interest() {
  uint32_t wanted = 0;
  if (!read_paused_) wanted |= EPOLLIN;
  if (unsent() > 0 || write_wanted_) wanted |= EPOLLOUT;
  if (wanted == interest_ || closed()) return;
  interest_ = wanted;
  loop_.modify(fd_.get(), wanted, this);
}

void Connection::set_read_paused(bool paused) {
  read_paused_ = paused;
  update_interest();
}

ssize_t Connection::receive(char* space, size_t size) {
  return recv(fd_.get(), space, size, MSG_DONTWAIT);
}

UniqueFd Connection::lend_socket() {
  if (fd_.valid()) loop_.remove(fd_.get(), this);
  return std::move(fd_);
}

void Connection::take_socket(UniqueFd fd) {
  fd_ = std::move(fd);
  interest_ = EPOLLIN | EPOLLOUT;  // so that what waited goes out, and who has more is asked for it
  loop_.add(fd_.get(), interest_, this);
}

bool Connection::fill() {
  char* space = in_.prepare(kReadSize);
  ssize_t size = receive(space, kReadSize);
  if (size > 0) {
    in_.commit(static_cast<size_t>(size));
    return true;
  }
  return size < 0 && (errno == EAGAIN || errno == EINTR);
}

void Connection::on_ready(uint32_t events) {
  if (events & EPOLLOUT) {
    flush();
    if (unsent() == 0) on_drained();
  }
  if (closed()) return;
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
    bool alive = fill();
    process_input();
    if (!alive && !closed()) {
      close();
      on_closed();
    }
  }
}

void Connection::process_input() {
  while (!closed()) {
    auto frame = in_.next();
    if (!frame) {
      close();
      on_closed();
      return;
    }
    if (!*frame) break;
    on_frame(**frame);
  }
  if (!closed()) in_.shrink();
}

}  // namespace atl::agent
