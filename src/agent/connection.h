// A framed connection to the server: non-blocking, with what the socket would not take kept until
// it does.
#pragma once

#include <sys/uio.h>

#include <memory>
#include <span>
#include <string>

#include "agent/event_loop.h"
#include "base/unique_fd.h"
#include "wire/agent_messages.h"
#include "wire/frame.h"

namespace atl::agent {

class Connection : public Watcher {
 public:
  Connection(EventLoop& loop, UniqueFd fd, wire::FrameBuffer pending);
  ~Connection() override;

  template <class Message>
  void send(uint32_t id, const Message& message) {
    wire::append_frame(out_, id, message);
    flush();
  }
  void send_error(uint32_t id, const Error& error);
  // Begins a frame whose payload is `head` followed by `body`, and returns how much of `body` the
  // socket took. The caller sends the rest with send_raw(), from where the bytes lie: nothing is
  // copied. Only while unsent() is 0.
  size_t begin_frame(uint16_t type, std::string_view head, std::span<const char> body);
  size_t send_raw(std::span<const char> bytes);
  // Bytes the socket has not taken yet.
  size_t unsent() const { return out_.size() - out_begin_; }

  void on_ready(uint32_t events) override;
  // Handles frames that are buffered already.
  void process_input();

  // For a checkpoint: the socket leaves, everything else stays, and what is sent meanwhile waits.
  UniqueFd lend_socket();
  void take_socket(UniqueFd fd);
  // It will not come back.
  void abandon() { on_closed(); }

 protected:
  virtual void on_frame(const wire::Frame& frame) = 0;
  virtual void on_closed() = 0;  // the connection is to be dropped by its owner
  virtual void on_drained() {}   // everything sent so far has left
  // on_drained() is called when the socket takes bytes again.
  void set_write_wanted(bool wanted);
  // While paused the peer is held back by its full socket.
  void set_read_paused(bool paused);
  void close();
  bool closed() const { return !fd_.valid(); }
  virtual ssize_t receive(char* space, size_t size);

  EventLoop& loop_;
  UniqueFd fd_;
  wire::FrameBuffer in_;

 private:
  void flush();
  void update_interest();
  bool fill();

  std::string out_;
  size_t out_begin_ = 0;
  uint32_t interest_ = EPOLLIN;
  bool read_paused_ = false;
  bool write_wanted_ = false;
};

}  // namespace atl::agent
