#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "http/message.h"

namespace atl::http {

struct FinishedRequest {
  std::string_view method;   // as sent, so anything; empty where the head could not be read
  std::string_view pattern;  // of its route, valid as long as the server; empty where none matched
  int status = 0;            // 101 for a WebSocket; 0 where nothing was answered
  bool complete = false;     // the answer was sent to its end
  // From the head's arrival to the end of the answer: of a stream, however long it lasts.
  std::chrono::nanoseconds duration{};
  uint64_t body_bytes = 0;  // of the answer, without framing; not known of a WebSocket
};

// Hears what a server does, on the server's thread. Must be quick, and must not throw.
class ServerObserver {
 public:
  virtual ~ServerObserver() = default;

  virtual void request_finished(const FinishedRequest& request) = 0;
  virtual void connection_opened(Peer::Kind kind) = 0;
  virtual void connection_closed(Peer::Kind kind) = 0;
  // There were too many already.
  virtual void connection_refused(Peer::Kind kind) = 0;
};

}  // namespace atl::http
