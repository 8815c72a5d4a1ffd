#include "http/server_metrics.h"

#include <algorithm>
#include <array>
#include <functional>

namespace atl::http {
namespace {

constexpr std::string_view kOther = "other";
constexpr std::array<std::string_view, 7> kMethods = {"GET",   "POST", "PUT",    "DELETE",
                                                      "PATCH", "HEAD", "OPTIONS"};

std::string_view known_method(std::string_view method) {
  auto found = std::find(kMethods.begin(), kMethods.end(), method);
  return found == kMethods.end() ? kOther : *found;
}

}  // namespace

size_t ServerMetrics::HashKey::operator()(const Key& key) const {
  size_t hash = std::hash<std::string_view>()(key.pattern);
  return hash ^ (reinterpret_cast<size_t>(key.method.data()) * 31) ^
         (static_cast<size_t>(key.status) << 20);
}

ServerMetrics::ServerMetrics(MetricsRegistry& registry)
    : registry_(registry),
      body_bytes_(registry.counter("atoll_http_response_body_bytes_total",
                                   "Bytes of response bodies, without framing.")),
      incomplete_(registry.counter("atoll_http_incomplete_responses_total",
                                   "Responses that were cut short or never sent.")),
      unix_(connections_of(registry, "unix")),
      tcp_(connections_of(registry, "tcp")) {}

ServerMetrics::Connections ServerMetrics::connections_of(MetricsRegistry& registry,
                                                         const char* transport) {
  MetricsRegistry::Labels labels = {{"transport", transport}};
  return {registry.gauge("atoll_http_connections", "Open connections.", labels),
          registry.counter("atoll_http_connections_total", "Connections accepted.", labels),
          registry.counter("atoll_http_connections_refused_total",
                           "Connections turned away because there were too many.", labels)};
}

ServerMetrics::Series& ServerMetrics::series_of(Key key) {
  auto found = series_.find(key);
  if (found != series_.end()) return found->second;
  auto pattern = std::make_unique<std::string>(key.pattern);
  key.pattern = *pattern;
  std::string method(key.method);
  Counter& requests = registry_.counter(
      "atoll_http_requests_total", "Requests answered.",
      {{"method", method}, {"route", *pattern}, {"status", std::to_string(key.status)}});
  Histogram& seconds = registry_.histogram(
      "atoll_http_request_duration_seconds",
      "From a request's head to the end of its answer; of streams, their whole life.",
      latency_seconds_bounds(), {{"method", method}, {"route", *pattern}});
  return series_.emplace(key, Series{&requests, &seconds, std::move(pattern)}).first->second;
}

void ServerMetrics::request_finished(const FinishedRequest& request) {
  std::string_view pattern = request.pattern.empty() ? kOther : request.pattern;
  Series& series = series_of({known_method(request.method), pattern, request.status});
  series.requests->add();
  series.seconds->observe(std::chrono::duration<double>(request.duration).count());
  body_bytes_.add(request.body_bytes);
  if (!request.complete) incomplete_.add();
}

void ServerMetrics::connection_opened(Peer::Kind kind) {
  of(kind).open.add(1);
  of(kind).opened.add();
}
void ServerMetrics::connection_closed(Peer::Kind kind) { of(kind).open.add(-1); }
void ServerMetrics::connection_refused(Peer::Kind kind) { of(kind).refused.add(); }

}  // namespace atl::http
