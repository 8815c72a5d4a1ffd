// A server on a Unix socket in a directory of its own, for tests, and raw bytes to throw at it.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include "http/client.h"
#include "http/server.h"

namespace atl::http::testing {

// How long a test waits for what should come at once.
inline constexpr int kPatienceMs = 20'000;

class TempDir {
 public:
  TempDir() {
    std::string name = "/tmp/atoll-http-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// A client that says exactly what it is told to.
class RawConnection {
 public:
  explicit RawConnection(UniqueFd fd) : fd_(std::move(fd)) {}
  explicit RawConnection(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(0, ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)));
  }

  RawConnection& send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return *this;
  }
  // Everything up to and including `end`, or all there is when the server closes first.
  std::string read_until(std::string_view end) {
    while (received_.find(end) == std::string::npos && read_some()) {
    }
    size_t at = received_.find(end);
    size_t length = at == std::string::npos ? received_.size() : at + end.size();
    std::string out = received_.substr(0, length);
    received_.erase(0, length);
    return out;
  }
  std::string read_to_end() {
    while (read_some()) {
    }
    return std::move(received_);
  }
  bool read_some() {
    pollfd polled{fd_.get(), POLLIN, 0};
    if (::poll(&polled, 1, kPatienceMs) <= 0) {
      ADD_FAILURE() << "the server said nothing; so far: " << received_;
      return false;
    }
    char block[16 * 1024];
    ssize_t got = ::recv(fd_.get(), block, sizeof(block), 0);
    if (got <= 0) return false;
    received_.append(block, static_cast<size_t>(got));
    return true;
  }
  void half_close() { ::shutdown(fd_.get(), SHUT_WR); }
  void close() { fd_.reset(); }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  std::string received_;
};

class TestServer {
 public:
  explicit TestServer(const std::function<void(Router&)>& routes,
                      const ServerOptions& options = ServerOptions()) {
    Router router;
    routes(router);
    server_ = std::make_unique<Server>(context_.get_executor(), std::move(router), options);
    auto listening = server_->listen_unix(path());
    EXPECT_TRUE(listening) << listening.error().message();
    thread_ = std::thread([this] { context_.run(); });
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  ~TestServer() {
    stop(std::chrono::milliseconds(0));
    run([this] { server_.reset(); });
    work_.reset();
    thread_.join();
  }

  std::string path() const { return dir_.file("s"); }
  std::string endpoint() const { return "unix:" + path(); }
  RawConnection connect() const { return RawConnection(path()); }
  Client client(ClientOptions options = ClientOptions()) const {
    return std::move(*Client::create(endpoint(), options));
  }
  Server& server() { return *server_; }

  // On the server's thread, to its end.
  void run(const std::function<void()>& action) {
    std::promise<void> done;
    boost::asio::post(context_, [&] {
      action();
      done.set_value();
    });
    done.get_future().wait();
  }
  void stop(std::chrono::milliseconds grace) {
    std::promise<void> done;
    boost::asio::co_spawn(context_, server_->stop(grace),
                          [&](const std::exception_ptr&) { done.set_value(); });
    done.get_future().wait();
  }
  size_t connection_count() {
    size_t count = 0;
    run([&] { count = server_->connection_count(); });
    return count;
  }

 private:
  TempDir dir_;
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      context_.get_executor()};
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

// Echoes the body of any request to "/echo", answers "hello" on "/hello".
inline void add_basic_routes(Router& router) {
  router.add("GET", "/hello", [](Request&, ResponseWriter& writer) -> Task<void> {
    co_await writer.send(Response::text("hello"));
  });
  router.add("POST", "/echo", [](Request& request, ResponseWriter& writer) -> Task<void> {
    auto body = co_await request.body->read_all(1024 * 1024);
    if (!body) {
      co_await writer.send_error(body.error());
    } else {
      co_await writer.send(Response::text(std::move(*body)));
    }
  });
}

}  // namespace atl::http::testing
