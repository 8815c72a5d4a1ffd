// Load on a way out, from inside: requests over TLS, lookups, new connections. Prints one number.
//   load requests ADDRESS PORT NAME PATH SECONDS THREADS   requests a second
//   load bytes ADDRESS PORT NAME PATH SECONDS THREADS      bytes a second
//   load dns ADDRESS NAME SECONDS                          answers a second
//   load first ADDRESS PORT NAME COUNT                     median microseconds to a finished
//   handshake
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void die(const char* what) {
  perror(what);
  exit(1);
}

int connect_to(const char* address, int port, int type) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, address, &to.sin_addr);
  int fd = socket(AF_INET, type, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) die("connect");
  int on = 1;
  if (type == SOCK_STREAM) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

SSL* handshake(SSL_CTX* context, int fd, const char* name) {
  SSL* ssl = SSL_new(context);
  SSL_set_fd(ssl, fd);
  SSL_set_tlsext_host_name(ssl, name);
  if (SSL_connect(ssl) != 1) die("TLS");
  return ssl;
}

struct Totals {
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> bytes{0};
};

void ask_for(SSL* ssl, const std::string& request, std::string& buffer, Totals& totals) {
  if (SSL_write(ssl, request.data(), static_cast<int>(request.size())) <= 0) die("write");
  std::string head;
  size_t body = 0;
  for (;;) {
    int got = SSL_read(ssl, buffer.data(), static_cast<int>(buffer.size()));
    if (got <= 0) die("read");
    totals.bytes += static_cast<uint64_t>(got);
    head.append(buffer.data(), static_cast<size_t>(got));
    size_t end = head.find("\r\n\r\n");
    if (end == head.npos) continue;
    size_t at = head.find("Content-Length: ");
    if (at == head.npos) die("no length");
    size_t length = strtoull(head.c_str() + at + 16, nullptr, 10);
    for (body = head.size() - end - 4; body < length; body += static_cast<size_t>(got)) {
      got = SSL_read(ssl, buffer.data(), static_cast<int>(buffer.size()));
      if (got <= 0) die("read");
      totals.bytes += static_cast<uint64_t>(got);
    }
    break;
  }
  totals.requests++;
}

double load(char** arguments, bool count_bytes) {
  std::string request =
      std::string("GET ") + arguments[3] + " HTTP/1.1\r\nHost: " + arguments[2] + "\r\n\r\n";
  auto seconds = std::chrono::duration<double>(atof(arguments[4]));
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  Totals totals;
  std::vector<std::thread> threads;
  auto began = Clock::now();
  for (int i = 0; i < atoi(arguments[5]); i++) {
    threads.emplace_back([&] {
      SSL* ssl = handshake(context, connect_to(arguments[0], atoi(arguments[1]), SOCK_STREAM),
                           arguments[2]);
      std::string buffer(64 * 1024, '\0');
      while (Clock::now() - began < seconds) ask_for(ssl, request, buffer, totals);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::chrono::duration<double> took = Clock::now() - began;
  return static_cast<double>(count_bytes ? totals.bytes : totals.requests) / took.count();
}

double lookups(char** arguments) {
  std::string query("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12);
  for (std::string name = arguments[1]; !name.empty();) {
    size_t dot = std::min(name.find('.'), name.size());
    query.push_back(static_cast<char>(dot));
    query += name.substr(0, dot);
    name.erase(0, dot + 1);
  }
  query.append("\0\0\x01\0\x01", 5);
  int fd = connect_to(arguments[0], 53, SOCK_DGRAM);
  auto limit = std::chrono::duration<double>(atof(arguments[2]));
  auto began = Clock::now();
  uint64_t answers = 0;
  int outstanding = 0;
  while (Clock::now() - began < limit) {
    for (; outstanding < 32; outstanding++) (void)!send(fd, query.data(), query.size(), 0);
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, 100) == 0) outstanding = 0;  // lost
    char answer[1500];
    while (recv(fd, answer, sizeof answer, MSG_DONTWAIT) > 0) {
      if (answer[7] == 0) die("an empty answer");
      answers++;
      if (outstanding > 0) outstanding--;
    }
  }
  std::chrono::duration<double> took = Clock::now() - began;
  return static_cast<double>(answers) / took.count();
}

double first(char** arguments) {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  std::vector<double> times;
  for (int i = 0; i < atoi(arguments[3]); i++) {
    auto began = Clock::now();
    int fd = connect_to(arguments[0], atoi(arguments[1]), SOCK_STREAM);
    SSL* ssl = handshake(context, fd, arguments[2]);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count());
    SSL_free(ssl);
    close(fd);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int count, char** arguments) {
  std::string mode = count > 1 ? arguments[1] : "";
  double result = 0;
  if (mode == "requests" && count == 8) {
    result = load(arguments + 2, false);
  } else if (mode == "bytes" && count == 8) {
    result = load(arguments + 2, true);
  } else if (mode == "dns" && count == 5) {
    result = lookups(arguments + 2);
  } else if (mode == "first" && count == 6) {
    result = first(arguments + 2);
  } else {
    fprintf(stderr, "see the first lines of bench/egress/load.cpp\n");
    return 2;
  }
  printf("%.1f\n", result);
  return 0;
}
