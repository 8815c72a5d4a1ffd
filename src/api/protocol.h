// How a protocol joins the server: its routes, how its requests say who asks, and how it says no.
// Authorization, rate limits and the audit log are the same for all.
#pragma once

#include <functional>
#include <vector>

#include "api/routes.h"

namespace atl::api {

struct Protocol {
  Dialect dialect;
  std::vector<Route> routes;
  // Which requests are its own, whatever their path; none: its paths stand beside ours.
  http::Router::Claim claims = nullptr;
  // Says in the path's parameters what the request names elsewhere, before anything is asked.
  std::function<void(Service&, http::Request&)> address = nullptr;
  // For those of its own that no route is for; it sees to everything itself. None: 404.
  http::Handler rest = nullptr;
};

http::Router make_router(Service& service, std::vector<Protocol> further);

}  // namespace atl::api
