#include "api/e2b/inputs.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>

namespace atl::api::e2b {

namespace asio = boost::asio;

Task<Result<void>> Inputs::open(const Key& key, const std::shared_ptr<Way>& way,
                                const Target& target) {
  AttachOptions options;
  options.want_stdout = false;
  options.want_stderr = false;
  ATOLL_CO_ASSIGN(auto stream, co_await target.session->attach(key.second.first, options));
  way->session = target.session;
  way->stream = std::move(stream);
  auto executor = co_await asio::this_coro::executor;
  asio::co_spawn(
      executor, [self = shared_from_this(), key, way] { return self->watch(key, way); },
      asio::detached);
  co_return Result<void>();
}

Task<void> Inputs::watch(Key key, std::shared_ptr<Way> way) {
  auto self = shared_from_this();
  for (;;) {
    auto event = co_await way->stream->next();
    if (!event || event->kind == OutputEvent::Kind::Exited) break;
  }
  ways_.erase(key);
}

Task<Result<void>> Inputs::give(const Target& target, const ProcessInfo& process,
                                ProcessOrder order) {
  auto executor = co_await asio::this_coro::executor;
  Key key(target.sandbox->record.id, {process.pid, process.started_at_ms});
  auto& known = ways_[key];
  if (known == nullptr) known = std::make_shared<Way>(executor);
  std::shared_ptr<Way> way = known;
  auto turn = co_await way->turn.lock();
  if (way->stream == nullptr) {
    auto opened = co_await open(key, way, target);
    if (!opened) {
      ways_.erase(key);
      co_return opened;
    }
  }
  if (order.cols != 0 && order.rows != 0) {
    ATOLL_CO_TRY(co_await way->stream->resize(order.cols, order.rows));
  }
  if (!order.input.empty()) {
    ATOLL_CO_TRY(co_await way->stream->write_input(std::move(order.input)));
  }
  if (order.end) ATOLL_CO_TRY(co_await way->stream->end_input());
  co_return Result<void>();
}

}  // namespace atl::api::e2b
