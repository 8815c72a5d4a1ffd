#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "http/input_buffer.h"
#include "http/socket.h"

namespace atl::http {

// Notices that the client hung up while nobody reads from it. Pipelined bytes that arrive meanwhile
// go to the input buffer; once that is full the watch is blind, which only a client that pipelines
// kilobytes behind a long request will see.
class PeerWatch : public std::enable_shared_from_this<PeerWatch> {
 public:
  PeerWatch(Socket& socket, InputBuffer& input) : socket_(&socket), input_(&input) {}

  // Runs at once if the peer is gone already.
  void subscribe(std::function<void()> callback);
  void start();
  // Forgets the subscribers; the socket and the buffer may go.
  void stop();
  bool gone() const { return gone_; }
  // Wakes the subscribers: also for deadlines and shutdown, where the peer might as well be gone.
  void fire();

 private:
  void arm();
  void look();

  Socket* socket_;
  InputBuffer* input_;
  bool started_ = false;
  bool stopped_ = false;
  bool gone_ = false;
  std::vector<std::function<void()>> callbacks_;
};

}  // namespace atl::http
