// One at a time for each key: whoever comes meanwhile waits for the one before. On one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "async/one_shot.h"

namespace atl::async {

class KeyedTurns {
 public:
  class [[nodiscard]] Turn {
   public:
    Turn(KeyedTurns& turns, std::string key) : turns_(&turns), key_(std::move(key)) {}
    Turn(Turn&& other) noexcept
        : turns_(std::exchange(other.turns_, nullptr)), key_(std::move(other.key_)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->end(key_);
    }

   private:
    KeyedTurns* turns_;
    std::string key_;
  };

  Task<Turn> take(std::string key) {
    while (taken_.contains(key)) {
      auto ended = std::make_shared<OneShot<bool>>();
      taken_[key].push_back(ended);
      co_await ended->wait();
    }
    taken_[key];
    co_return Turn(*this, std::move(key));
  }

 private:
  void end(const std::string& key) {
    auto ended = taken_.extract(key);
    for (auto& waiting : ended.mapped()) waiting->set(true);
  }

  std::map<std::string, std::vector<std::shared_ptr<OneShot<bool>>>> taken_;
};

}  // namespace atl::async
