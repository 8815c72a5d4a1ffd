// Answers that are given again: whoever asks with the same key within a quarter of an hour gets the
// same one, also while it is being made. Bounded: the oldest go first.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "async/one_shot.h"
#include "atoll/result.h"

namespace atl::code {

class Replays : public std::enable_shared_from_this<Replays> {
 public:
  static constexpr int64_t kKeptMs = 15 * 60 * 1000;
  static constexpr size_t kMostBytes = 64u << 20;
  static constexpr size_t kMostKeys = 4096;

  using Text = std::shared_ptr<const std::string>;
  struct Answer {
    Text text;
    bool keep = false;  // else a later request with the key is a new attempt
  };
  using Maker = std::function<Task<Result<Answer>>()>;
  using Clock = int64_t (*)();  // milliseconds, never backwards
  explicit Replays(Clock clock) : clock_(clock) {}

  // What is begun goes on when the one who asked goes away.
  Task<Result<Text>> once(std::string key, Maker make);
  size_t bytes() const { return bytes_; }

 private:
  using Waiter = std::shared_ptr<async::OneShot<Result<Text>>>;
  struct Entry {
    std::vector<Waiter> waiting;  // while it is being made
    Text text;                    // null until then
    int64_t made_at_ms = 0;
  };
  void finish(const std::string& key, Result<Answer> answer);
  void forget_old();
  void forget(const std::string& key);

  Clock clock_;
  std::map<std::string, Entry> entries_;
  std::deque<std::string> kept_;  // oldest first
  size_t bytes_ = 0;
};

}  // namespace atl::code
