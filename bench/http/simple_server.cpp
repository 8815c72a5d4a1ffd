#include <boost/asio/io_context.hpp>

#include "forked_server.h"
#include "http/server.h"
#include "http/sse.h"

namespace atl::bench {
namespace {

Task<void> small_json(http::Request&, http::ResponseWriter& writer) {
  (void)co_await writer.send(http::Response::json(kSmallJson));
}

Task<void> events(http::Request&, http::ResponseWriter& writer) {
  http::EventStream stream(writer);
  if (!co_await stream.start()) co_return;
  if (!co_await stream.send("hello", kSmallJson)) co_return;
  co_await writer.closed();
}

http::Router simple_router() {
  http::Router router;
  router.add("GET", "/json", small_json);
  router.add("GET", "/events", events);
  return router;
}

}  // namespace

void serve_simple(const std::string& path) {
  boost::asio::io_context context{1};
  http::Server server(context.get_executor(), simple_router());
  if (!server.listen_unix(path)) return;
  context.run();
}

void serve_simple_tls(const std::string& path, int listener, const http::TlsOptions& tls) {
  boost::asio::io_context context{1};
  http::Server server(context.get_executor(), simple_router());
  auto loaded = http::TlsContext::create(tls);
  if (!loaded || !server.listen_fd(UniqueFd(listener), *loaded)) return;
  if (!server.listen_unix(path)) return;
  context.run();
}

}  // namespace atl::bench
