// The ways into running processes. envd's clients send each piece of input in a request of its own;
// here they share one stream a process, so that pieces stay in their order and none is lost when
// the process is slow to read.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "api/context.h"
#include "api/e2b/process_body.h"

namespace atl::api::e2b {

class Inputs : public std::enable_shared_from_this<Inputs> {
 public:
  Task<Result<void>> give(const Target& target, const ProcessInfo& process, ProcessOrder order);

 private:
  struct Way {
    explicit Way(boost::asio::any_io_executor executor) : turn(std::move(executor)) {}
    std::shared_ptr<SandboxSession> session;
    std::shared_ptr<ProcessStream> stream;  // null until it is open
    http::AsyncMutex turn;
  };
  using Key = std::pair<std::string, std::pair<int32_t, uint64_t>>;  // sandbox, pid and its start

  Task<Result<void>> open(const Key& key, const std::shared_ptr<Way>& way, const Target& target);
  // Forgets the way when its process has ended.
  Task<void> watch(Key key, std::shared_ptr<Way> way);

  std::map<Key, std::shared_ptr<Way>> ways_;
};

}  // namespace atl::api::e2b
