// Bytes between two connections, both ways, until both have ended.
#pragma once

#include "atoll/task.h"
#include "http/socket.h"

namespace atl::http {

// Whoever counts what goes through a tunnel, and may slow it down.
class TunnelMeter {
 public:
  enum class Way { Out, Back };  // from the near end to the far one, and back

  virtual ~TunnelMeter() = default;
  virtual void moved(Way way, size_t bytes) = 0;
  virtual bool slows() const { return false; }
  virtual Task<void> slow(size_t /*bytes*/) { co_return; }
};

// While it or a relay (relay.h) is under way, the present coroutine does not hear of cancellation:
// the other direction runs beside it and refers to it. abort() of a socket is what ends them.
Task<void> ignore_cancellation();
Task<void> hear_cancellation();

// One direction's end is passed on as such; a failure ends both. Each direction holds at most one
// buffer that the other side has not taken. All three must stay until it returns; abort() of either
// socket ends it soon.
Task<void> tunnel(Socket& near, Socket& far, TunnelMeter& meter);

}  // namespace atl::http
