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
  }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;
  ~Traffic() override { answered(); }

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
