#include "api/preview/protocol.h"

#include "api/preview/address.h"
#include "api/preview/fields.h"
#include "api/preview/page.h"
#include "api/preview/visitor.h"
#include "api/preview_url.h"
#include "api/traffic.h"
#include "http/forwarding.h"
#include "http/relay.h"

namespace atl::api::preview {
namespace {

constexpr int64_t kCookieSeconds = 12 * 3600;

// Ends what goes on after its link was removed.
class Visit : public http::TunnelMeter {
 public:
  Visit(Traffic& traffic, http::Socket& upstream, std::function<bool()> holds)
      : traffic_(traffic), upstream_(upstream), holds_(std::move(holds)) {}
  void moved(Way way, size_t bytes) override {
    traffic_.moved(way, bytes);
    if (!holds_()) upstream_.abort();
  }

 private:
  Traffic& traffic_;
  http::Socket& upstream_;
  std::function<bool()> holds_;
};

class Ports {
 public:
  Ports(Service& service, boost::asio::any_io_executor executor)
      : service_(service), executor_(executor), deadlines_(executor) {}

  Task<void> serve(std::optional<Address> address, http::Request& request,
                   http::ResponseWriter& writer) {
    auto done = address ? co_await answer(*address, request, writer)
                        : Result<void>(fail(ErrorCode::NotFound,
                                            "this names no port of a sandbox: it is "
                                            "PORT-ID.DOMAIN, or /preview/ID/PORT/"));
    if (done || writer.started()) co_return;
    (void)co_await writer.send(refusal(request, done.error()));
  }

 private:
  Task<Result<void>> answer(Address& address, http::Request& request,
                            http::ResponseWriter& writer) {
    ATOLL_CO_ASSIGN(Admitted admitted, admit(service_, request, address));
    if (request.method == "CONNECT" || request.method == "TRACE") {
      co_return fail(ErrorCode::NotSupported, request.method + " is not passed on");
    }
    address.target = target_inward(service_, address.target);
    bool opens =
        admitted.by == Admitted::By::Url && address.form == Form::Host && is_navigation(request);
    if (opens) co_return co_await give_cookie(admitted, address, writer);
    ATOLL_CO_TRY(Traffic::check_room(*admitted.sandbox));
    co_return co_await pass(admitted, address, request, writer);
  }

  // The address bar, the history and the pages that are linked from there need not know the token.
  Task<Result<void>> give_cookie(const Admitted& admitted, const Address& address,
                                 http::ResponseWriter& writer) {
    const sandbox::PreviewLink* link = service_.manager.previews().find(admitted.link);
    if (link == nullptr) co_return fail(ErrorCode::NotFound, "the link has been removed");
    int64_t now = sandbox::wall_clock_ms() / 1000;
    int64_t until = now + kCookieSeconds;
    if (link->expires_at_ms != 0) until = std::min(until, link->expires_at_ms / 1000);
    std::string_view name = cookie_name(service_.settings);
    std::string cookie =
        std::string(name) + "=" +
        service_.tokens.preview_token(grant_of(*link), auth::PreviewPlace::Cookie, until) +
        "; Path=/; HttpOnly; SameSite=Lax; Max-Age=" + std::to_string(until - now);
    if (name.starts_with("__Host-")) cookie += "; Secure";
    // "//host" would be another host's.
    size_t start = std::min(address.target.find_first_not_of("/\\"), address.target.size());
    http::Response response = http::Response::empty(303);
    response.headers.add("Location", "/" + address.target.substr(start));
    response.headers.add("Set-Cookie", std::move(cookie));
    response.headers.add("Cache-Control", "no-store");
    response.headers.add("Referrer-Policy", "no-referrer");
    co_return co_await writer.send(std::move(response));
  }

  Task<Result<void>> pass(const Admitted& admitted, const Address& address, http::Request& request,
                          http::ResponseWriter& writer) {
    sandbox::SandboxPtr sandbox = admitted.sandbox;
    auto traffic = std::make_shared<Traffic>(service_.manager, sandbox);
    ATOLL_CO_ASSIGN(UniqueFd fd, co_await service_.manager.dial(sandbox, address.port));
    http::Socket upstream(executor_, std::move(fd), deadlines_);
    http::RelayPlan plan;
    plan.target = address.target;
    plan.headers = fields_inward(service_, request, address, sandbox->record.spec.ingress);
    plan.upgrade = http::wants_upgrade(request.headers);
    plan.on_head = [&](http::ResponseHead& head) {
      traffic->answered();
      clean_outward(service_, request, address, head);
    };
    Visit visit(*traffic, upstream, [&] { return holds(service_, admitted, address); });
    http::RelayEnds ends{request, writer, upstream, visit};
    co_return co_await http::relay(ends, std::move(plan));
  }

  Service& service_;
  boost::asio::any_io_executor executor_;
  http::DeadlineQueue deadlines_;
};

}  // namespace

std::vector<Protocol> protocols(Service& service, boost::asio::any_io_executor executor) {
  auto ports = std::make_shared<Ports>(service, std::move(executor));
  const ServiceSettings& settings = service.settings;
  std::string domain = settings.preview_domain;
  size_t scheme = settings.base_url.find("://");
  std::string_view own =
      scheme == std::string::npos ? "" : std::string_view(settings.base_url).substr(scheme + 3);
  std::string own_host = bare_host(own.substr(0, own.find('/')));
  Protocol by_host{.dialect = own_dialect(), .routes = {}};
  by_host.claims = [domain, own_host](const http::Request& request) {
    return is_port_host(request.headers.get("host").value_or(""), domain, own_host);
  };
  by_host.rest = [ports, domain](http::Request& request, http::ResponseWriter& writer) {
    return ports->serve(address_by_host(request, domain), request, writer);
  };
  Protocol by_path{.dialect = own_dialect(), .routes = {}};
  by_path.claims = [](const http::Request& request) { return is_port_path(request.target); };
  by_path.rest = [ports](http::Request& request, http::ResponseWriter& writer) {
    return ports->serve(address_by_path(request), request, writer);
  };
  std::vector<Protocol> both;
  both.push_back(std::move(by_host));
  both.push_back(std::move(by_path));
  return both;
}

}  // namespace atl::api::preview
