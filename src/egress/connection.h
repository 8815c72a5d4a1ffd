// One connection out of a sandbox, from its first bytes to its end.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "egress/outlet.h"
#include "http/tunnel.h"

namespace atl::egress {

class Connection : public std::enable_shared_from_this<Connection>, public http::TunnelMeter {
 public:
  static void start(std::shared_ptr<Outlet> outlet, UniqueFd client, Basis basis);
  Connection(std::shared_ptr<Outlet> outlet, UniqueFd client, Basis basis);
  ~Connection() override;

  bool allowed_by(const Policy& policy) const;
  void abort(std::string reason);
  bool idle_at(std::chrono::steady_clock::time_point now) const;
  const std::string& domain() const { return domain_; }

  // For those who carry its bytes.
  Outlet& outlet() { return *outlet_; }
  http::Socket& client() { return *client_; }
  const Basis& basis() const { return basis_; }
  bool aborted() const { return aborted_; }
  void sent(size_t bytes) {
    entry_.sent += bytes;
    active_ = std::chrono::steady_clock::now();
  }
  void received(size_t bytes) {
    entry_.received += bytes;
    active_ = std::chrono::steady_clock::now();
  }
  void note_address(const IpAddress& address) { entry_.address = address.text(); }
  // What abort() closes beside the client.
  void set_upstream(http::Socket* upstream) { upstream_ = upstream; }
  // Requests of one connection may be for several hosts. False: it was refused.
  bool begin_request(const std::string& host, const Verdict& verdict);
  void note_refusal() { refused_ = true; }
  const TrafficLimits& limits() const { return limits_; }
  // Bytes of a size as fast as the limits allow.
  Task<void> throttled(size_t bytes);
  // Bytes both ways until both have ended.
  Task<void> pump_both(http::Socket& upstream);
  void moved(Way way, size_t bytes) override { way == Way::Out ? sent(bytes) : received(bytes); }
  bool slows() const override { return limited_; }
  Task<void> slow(size_t bytes) override { return throttled(bytes); }
  bool has_limit() const { return limited_; }

 private:
  Task<void> run();
  Task<Result<void>> serve();
  Task<Result<void>> serve_by_address(const Verdict& verdict);
  Task<Result<void>> serve_tls(std::string server_name);
  Task<Result<void>> serve_pinned(const std::string& name);
  Task<Result<void>> serve_intercepted();
  Task<Result<void>> serve_dns();
  enum class Kind { Tls, Http, Other, Silent, Gone };
  struct First {
    Kind kind = Kind::Silent;
    std::string server_name;
  };
  Task<First> first_bytes(std::chrono::milliseconds patience);
  Task<Result<void>> relay(Outlet::Reached reached);
  bool admit(const Verdict& verdict);
  void refuse(const Verdict& verdict);
  void refuse_tls(const Verdict& verdict);
  void end_at_once();

  std::shared_ptr<Outlet> outlet_;
  std::optional<http::Socket> client_;
  http::Socket* upstream_ = nullptr;
  Basis basis_;
  std::string domain_;  // of the permit
  wire::TrafficEntry entry_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point active_ = began_;
  bool refused_ = false;
  bool aborted_ = false;
  bool limited_ = false;
  TrafficLimits limits_;
};

}  // namespace atl::egress
