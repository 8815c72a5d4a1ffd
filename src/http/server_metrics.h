#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/metrics.h"
#include "http/server_observer.h"

namespace atl::http {

// Counts what a server does, as atoll_http_...: requests by method, route and status, how long each
// route takes, bytes of bodies, connections. The registry must outlive it. Methods and paths that
// no route has are counted as "other": they are a client's to choose, and time series cost memory.
class ServerMetrics final : public ServerObserver {
 public:
  explicit ServerMetrics(MetricsRegistry& registry);

  void request_finished(const FinishedRequest& request) override;
  void connection_opened(Peer::Kind kind) override;
  void connection_closed(Peer::Kind kind) override;
  void connection_refused(Peer::Kind kind) override;

 private:
  struct Connections {
    Gauge& open;
    Counter& opened;
    Counter& refused;
  };
  static Connections connections_of(MetricsRegistry& registry, const char* transport);
  Connections& of(Peer::Kind kind) { return kind == Peer::Kind::Unix ? unix_ : tcp_; }

  struct Key {
    std::string_view method;  // one of a few constants
    std::string_view pattern;
    int status;
    bool operator==(const Key&) const = default;
  };
  struct HashKey {
    size_t operator()(const Key& key) const;
  };
  struct Series {
    Counter* requests;
    Histogram* seconds;
    std::unique_ptr<std::string> pattern;  // what the key points to
  };
  Series& series_of(Key key);

  MetricsRegistry& registry_;
  Counter& body_bytes_;
  Counter& incomplete_;
  Connections unix_;
  Connections tcp_;
  std::unordered_map<Key, Series, HashKey> series_;
};

}  // namespace atl::http
