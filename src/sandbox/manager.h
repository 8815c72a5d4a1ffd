// All sandboxes of this server: create, find, stop, resume, delete; names and lifetimes. One
// thread. Everything a caller was told survives the server's death.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "async/one_shot.h"
#include "atoll/sandbox_backend.h"
#include "http/async_mutex.h"
#include "sandbox/pool.h"
#include "sandbox/record.h"
#include "store/store.h"

namespace atl::sandbox {

enum class Source : uint8_t { Pool, Cold, Reattached };

class Sandbox {
 public:
  explicit Sandbox(boost::asio::any_io_executor executor, Record initial)
      : record(std::move(initial)), lifecycle(std::move(executor)) {}

  Record record;
  std::shared_ptr<SandboxHandle> handle;  // null unless running or paused
  Source source = Source::Cold;
  int64_t create_us = 0;
  int64_t last_activity_ms = 0;
  int in_use = 0;              // requests under way inside it: it is not idle
  http::AsyncMutex lifecycle;  // one change of state at a time
  bool deleted = false;
};
using SandboxPtr = std::shared_ptr<Sandbox>;

struct Changes {
  std::optional<Limits> limits;
  std::optional<uint32_t> idle_timeout_s;
  std::optional<uint32_t> max_lifetime_s;
  std::optional<std::map<std::string, std::string>> metadata;
};

class Manager : public std::enable_shared_from_this<Manager> {
 public:
  Manager(boost::asio::any_io_executor executor, SandboxBackend& backend, store::Store& store,
          PoolOptions pool);

  // Finds again what an earlier server left, and clears away what nobody was promised.
  Task<Result<void>> start();
  void warm_pool() { pool_->warm("base"); }
  // Empties the pool; with `end_all` also stops every sandbox.
  Task<void> shut_down(bool end_all);

  Task<Result<SandboxPtr>> create(Spec spec);
  Task<Result<void>> remove(SandboxPtr sandbox);
  Task<Result<void>> stop(SandboxPtr sandbox, std::string reason);
  Task<Result<void>> resume(SandboxPtr sandbox);
  Task<Result<void>> set_paused(SandboxPtr sandbox, bool paused);
  Task<Result<void>> update(SandboxPtr sandbox, Changes changes);

  // By id or by name.
  Result<SandboxPtr> find(const std::string& id_or_name) const;
  std::vector<SandboxPtr> list() const;  // oldest first
  // The live session of a running sandbox; counts as activity. It outlives a stop or delete that
  // comes while it is in use: its calls then fail.
  Result<std::shared_ptr<SandboxSession>> session(Sandbox& sandbox) const;

  SandboxBackend& backend() { return backend_; }
  const Pool& pool() const { return *pool_; }
  const Limits& default_limits() const { return pool_->limits(); }

 private:
  Result<void> check(const Spec& spec) const;
  Task<Result<SandboxPtr>> build(Spec spec);
  Task<Result<SandboxPtr>> claim(std::shared_ptr<SandboxHandle> handle, Spec spec);
  Task<Result<SandboxPtr>> build_cold(Spec spec);
  using Saved = std::shared_ptr<async::OneShot<Result<void>>>;
  Saved save_meanwhile(const SandboxPtr& sandbox);
  Task<Result<SandboxPtr>> acknowledge(SandboxPtr sandbox, Result<void> configured, Saved saved);
  SandboxPtr describe(std::shared_ptr<SandboxHandle> handle, Spec spec, Source source) const;
  Task<Result<void>> save(const Sandbox& sandbox);
  Task<Result<void>> adopt(Record record);
  void sandbox_ended(const EndedSandbox& ended);
  Task<void> record_end(SandboxPtr sandbox, std::shared_ptr<SandboxHandle> ended,
                        bool out_of_memory);
  Task<void> enforce_lifetimes();
  Task<void> expire(SandboxPtr sandbox, std::string reason);
  CreateInput input_for(const std::string& id, const Spec& spec) const;

  boost::asio::any_io_executor executor_;
  SandboxBackend& backend_;
  store::Store& store_;
  std::shared_ptr<Pool> pool_;
  boost::asio::steady_timer lifetime_timer_;
  std::map<std::string, SandboxPtr> by_id_;
  std::map<std::string, std::string> id_by_name_;  // also names of creations under way
  std::map<std::string, std::string> id_by_key_;   // idempotency
  std::map<std::string, std::vector<std::shared_ptr<async::OneShot<bool>>>> keys_under_way_;
  bool stopping_ = false;
};

int64_t wall_clock_ms();

}  // namespace atl::sandbox
