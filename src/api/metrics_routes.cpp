// The server's own numbers, for Prometheus.
#include "api/routes.h"

namespace atl::api {
namespace {

Task<Result<void>> metrics(Context& context, http::Request&, http::ResponseWriter& writer) {
  http::Response response{.status = 200, .headers = {}, .body = context.service.metrics.render()};
  response.headers.set("content-type", std::string(kMetricsContentType));
  co_return co_await writer.send(std::move(response));
}

}  // namespace

void add_sandbox_metrics(Service& service) {
  using sandbox::Status;
  sandbox::Manager& manager = service.manager;
  for (Status status :
       {Status::Provisioning, Status::Running, Status::Paused, Status::Stopped, Status::Failed}) {
    auto count = [&manager, status] {
      double sum = 0;
      for (const auto& [id, one] : manager.index().all()) sum += one->record.status == status;
      return sum;
    };
    service.metrics.gauge("atoll_sandboxes", "Sandboxes by status.",
                          {{"status", std::string(to_string(status))}}, count);
  }
  auto ready = [&manager] {
    double sum = 0;
    for (const auto& [name, size] : manager.pool().sizes()) sum += static_cast<double>(size);
    return sum;
  };
  service.metrics.gauge("atoll_pool_ready", "Sandboxes made ahead.", {}, ready);
  auto newest = [&manager] { return static_cast<double>(manager.events().newest()); };
  service.metrics.gauge("atoll_events_last_id", "The id of the newest event.", {}, newest);
}

void add_metrics_routes(ControlRoutes& routes, const ServiceSettings& settings) {
  Access access = settings.public_metrics ? Access::Open : Access::Admin;
  routes.add(access, "GET", "/metrics", metrics);
}

}  // namespace atl::api
