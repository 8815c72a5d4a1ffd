// Traffic into a sandbox, as far as its lifetime is concerned.
#pragma once

#include "http/tunnel.h"
#include "sandbox/manager.h"

namespace atl::api {

// While a request waits for its answer its sandbox is in use; from then on, and in tunnels, it is
// what moves that keeps a sandbox from being idle: a page that is merely open does not.
class Traffic : public http::TunnelMeter {
 public:
  Traffic(sandbox::Manager& manager, sandbox::SandboxPtr sandbox)
      : manager_(manager), sandbox_(std::move(sandbox)) {
    sandbox_->in_use++;
    sandbox_->visits++;
  }
  // Each holds descriptors and a connection of the server, which others want too.
  static Result<void> check_room(const sandbox::Sandbox& sandbox) {
    constexpr int kMostOfSandbox = 512;
    if (sandbox.visits < kMostOfSandbox) return {};
    return fail(Error(ErrorCode::ResourceExhausted, "the sandbox has too many requests at once")
                    .with_retry_after(1000));
  }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;
  ~Traffic() override {
    answered();
    sandbox_->visits--;
  }

  void moved(Way, size_t) override { manager_.note_activity(*sandbox_); }
  void answered() {
    if (!std::exchange(waiting_, false)) return;
    sandbox_->in_use--;
    manager_.note_activity(*sandbox_);
  }

 private:
  sandbox::Manager& manager_;
  sandbox::SandboxPtr sandbox_;
  bool waiting_ = true;
};

}  // namespace atl::api
