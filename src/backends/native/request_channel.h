// Requests on a connection that carries many at once: each waits for the reply with its id, in
// whatever order replies come, no longer than its limit, and not beyond the connection's end.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/one_shot.h"
#include "atoll/result.h"
#include "atoll/task.h"
#include "base/unique_fd.h"
#include "wire/frame.h"

namespace atl::native {

// How long a reply may take; none where it is work that takes the time, such as a command.
using ReplyLimit = std::optional<std::chrono::milliseconds>;
inline constexpr ReplyLimit kReplyLimit = std::chrono::seconds(60);
inline constexpr ReplyLimit kNoReplyLimit;

class RequestChannel {
 public:
  virtual ~RequestChannel() = default;
  RequestChannel(const RequestChannel&) = delete;
  RequestChannel& operator=(const RequestChannel&) = delete;

  template <class Reply, class Request>
  Task<Result<Reply>> call(Request request, ReplyLimit limit = kReplyLimit) {
    std::string bytes;
    uint32_t id = next_id_++;
    wire::append_frame(bytes, id, request);
    ATOLL_CO_ASSIGN(RawReply reply, co_await exchange(id, std::move(bytes), limit));
    if (reply.type != static_cast<uint16_t>(Reply::kType)) {
      co_return fail(ErrorCode::Internal, "unexpected reply from " + peer_);
    }
    co_return wire::decode<Reply>(reply.payload);
  }
  // The descriptors that come with the reply.
  template <class Reply, class Request>
  Task<Result<std::vector<UniqueFd>>> call_for_fds(Request request,
                                                   ReplyLimit limit = kReplyLimit) {
    std::string bytes;
    uint32_t id = next_id_++;
    wire::append_frame(bytes, id, request);
    ATOLL_CO_ASSIGN(RawReply reply, co_await exchange(id, std::move(bytes), limit));
    if (reply.type != static_cast<uint16_t>(Reply::kType)) {
      co_return fail(ErrorCode::Internal, "unexpected reply from " + peer_);
    }
    co_return std::move(reply.fds);
  }

 protected:
  struct RawReply {
    uint16_t type = 0;
    std::string payload;
    std::vector<UniqueFd> fds = {};
  };

  // `peer` names the other end in errors.
  explicit RequestChannel(std::string peer) : peer_(std::move(peer)) {}

  virtual Task<Result<void>> send(std::string bytes) = 0;
  // A reply that nobody waits for any more is dropped.
  void answer(uint32_t id, Result<RawReply> reply);
  // The connection has ended.
  void fail_all(const Error& error);

 private:
  using Waiting = std::shared_ptr<async::OneShot<Result<RawReply>>>;
  Task<Result<RawReply>> exchange(uint32_t id, std::string bytes, ReplyLimit limit);
  Task<Result<RawReply>> wait(Waiting waiting, std::chrono::milliseconds limit);

  std::string peer_;
  std::map<uint32_t, Waiting> waiting_;
  uint32_t next_id_ = 1;
};

}  // namespace atl::native
