// Blank sandboxes of each template, made ahead. Taking one is O(1); the pool refills itself behind
// the caller's back, grows while demand outruns it, and gives back what was not needed for a while.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "atoll/sandbox_backend.h"

namespace atl::sandbox {

struct PoolOptions {
  uint32_t target = 4;     // a template's ready sandboxes; 0: no pool
  uint32_t maximum = 128;  // under lasting demand
  Limits limits;           // what blank ones are made with
  // Of the blank ones beyond `target`, half of those that nobody needed for so long go.
  std::chrono::milliseconds idle = std::chrono::minutes(1);
};

// How time passes for the pool's shrinking.
using Sleep = std::function<Task<void>(std::chrono::milliseconds)>;
Task<void> sleep_for(std::chrono::milliseconds time);

class Pool : public std::enable_shared_from_this<Pool> {
 public:
  Pool(boost::asio::any_io_executor executor, SandboxBackend& backend, PoolOptions options,
       Sleep sleep = sleep_for);

  // Null where none is ready. Does not refill: the caller says so when its own work is done.
  std::shared_ptr<SandboxHandle> take(const std::string& template_name);
  // Fills the shelf; at once where it runs low, else when the present rush is over.
  void refill(const std::string& template_name);
  void warm(const std::string& template_name);
  // Nobody will ask for this template again: its blank ones go.
  void retire(const std::string& template_name);
  // A blank one died; it is of no use any more.
  void forget(const std::string& session_key);
  bool contains(const std::string& session_key) const;
  std::map<std::string, size_t> sizes() const;
  // Why none can be made at present, where that is so.
  std::optional<Error> trouble(const std::string& template_name) const;
  const Limits& limits() const { return options_.limits; }
  // Destroys what is ready and stops refilling.
  Task<void> drain();

 private:
  struct Shelf {
    std::deque<std::shared_ptr<SandboxHandle>> ready;
    uint32_t target = 0;
    size_t untouched = 0;  // the fewest that were ready since the last look
    size_t under_way = 0;
    bool refill_due = false;
    int failures = 0;
    std::optional<Error> trouble;  // of the last attempt
    int generation = 0;            // counts how often it was retired
    bool retired = false;
  };
  void grow(Shelf& shelf);
  Task<void> add_one(std::string template_name, int generation);
  Task<void> destroy(std::deque<std::shared_ptr<SandboxHandle>> handles);
  Task<Result<std::shared_ptr<SandboxHandle>>> build(const std::string& template_name);
  Task<void> shrink();
  Task<void> shed(Shelf& shelf);
  Task<void> refills_ended();

  boost::asio::any_io_executor executor_;
  SandboxBackend& backend_;
  PoolOptions options_;
  boost::asio::steady_timer quiet_;
  std::map<std::string, Shelf> shelves_;
  Sleep sleep_;
  size_t retiring_ = 0;
  bool shrinking_ = false;
  bool draining_ = false;
};

}  // namespace atl::sandbox
