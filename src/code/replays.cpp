#include "code/replays.h"

#include <boost/asio/co_spawn.hpp>

namespace atl::code {

Task<Result<Replays::Text>> Replays::once(std::string key, Maker make) {
  auto self = shared_from_this();
  auto executor = co_await boost::asio::this_coro::executor;
  forget_old();
  auto waiter = std::make_shared<async::OneShot<Result<Text>>>();
  auto known = entries_.find(key);
  if (known != entries_.end() && known->second.text != nullptr) co_return known->second.text;
  bool under_way = known != entries_.end();
  entries_[key].waiting.push_back(waiter);
  if (!under_way) {
    boost::asio::co_spawn(executor, make(),
                          [self, key](std::exception_ptr thrown, Result<Answer> answer) {
                            if (thrown) answer = fail(ErrorCode::Internal, "unexpected failure");
                            self->finish(key, std::move(answer));
                          });
  }
  co_return co_await waiter->wait();
}

void Replays::finish(const std::string& key, Result<Answer> answer) {
  Entry& entry = entries_[key];
  Result<Text> text = answer ? Result<Text>(answer->text) : fail(answer.error());
  for (Waiter& waiter : std::exchange(entry.waiting, {})) waiter->set(text);
  if (!answer || !answer->keep || answer->text->size() > kMostBytes / 4) {
    entries_.erase(key);
    return;
  }
  entry.text = answer->text;
  entry.made_at_ms = clock_();
  bytes_ += entry.text->size();
  kept_.push_back(key);
  while (bytes_ > kMostBytes || kept_.size() > kMostKeys) forget(std::string(kept_.front()));
}

void Replays::forget(const std::string& key) {
  auto entry = entries_.find(key);
  bytes_ -= entry->second.text->size();
  entries_.erase(entry);
  kept_.pop_front();
}

void Replays::forget_old() {
  while (!kept_.empty() && entries_[kept_.front()].made_at_ms + kKeptMs < clock_()) {
    forget(std::string(kept_.front()));
  }
}

}  // namespace atl::code
