#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "forked_server.h"
#include "http/listener.h"

namespace atl::bench {
namespace {

std::string answer() {
  std::string body = kSmallJson;
  return "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
         "Content-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

void watch(int epoll, int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

void answer_one(int fd, const std::string& text) {
  std::array<char, 4096> block;
  ssize_t got = recv(fd, block.data(), block.size(), MSG_DONTWAIT);
  if (got <= 0) {
    close(fd);
    return;
  }
  // The load generator sends a request in one piece and waits for its answer.
  if (memmem(block.data(), static_cast<size_t>(got), "\r\n\r\n", 4) == nullptr) return;
  (void)send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

void serve_raw(const std::string& path) {
  auto listener = http::listen_on_path(path, 0600);
  if (!listener) return;
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  watch(epoll, listener->fd.get());
  std::string text = answer();
  std::array<epoll_event, 64> events;
  while (true) {
    int ready = epoll_wait(epoll, events.data(), events.size(), -1);
    for (int i = 0; i < ready; i++) {
      if (events[i].data.fd == listener->fd.get()) {
        int accepted = accept4(listener->fd.get(), nullptr, nullptr, SOCK_CLOEXEC);
        if (accepted >= 0) watch(epoll, accepted);
      } else {
        answer_one(events[i].data.fd, text);
      }
    }
  }
}

}  // namespace atl::bench
