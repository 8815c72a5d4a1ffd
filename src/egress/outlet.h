// One sandbox's way out: its sockets, the policy that holds now, and what goes on.
#pragma once

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "egress/authority.h"
#include "egress/policy.h"
#include "egress/resolver.h"
#include "egress/throttle.h"
#include "http/deadline.h"
#include "http/socket.h"
#include "wire/egress_messages.h"

namespace atl::egress {

// What all outlets share.
struct Surroundings {
  boost::asio::any_io_executor executor;
  http::DeadlineQueue& deadlines;
  Resolver& resolver;
  AddressGuard& guard;
  std::shared_ptr<http::TlsClientContext> upstream_trust;
  std::function<void(const std::string& slot, wire::TrafficEntry entry)> report;
};

// On what a connection's permission rests; asked again when the policy changes.
struct Basis {
  std::string name;  // empty: by address
  IpAddress address;
  uint16_t port = 0;
  Protocol protocol = Protocol::Opaque;
  bool intercepted = false;
};

class Connection;

// A connection to a server that may serve another request.
struct Upstream {
  http::Socket socket;
  IpAddress address;
  std::chrono::steady_clock::time_point idle_since{};
};

class Outlet : public std::enable_shared_from_this<Outlet> {
 public:
  using PolicyPtr = std::shared_ptr<const Policy>;

  Outlet(Surroundings& around, std::string slot);
  ~Outlet();

  void open(std::array<UniqueFd, 4> sockets);
  // Holds when it returns. How many connections it has closed.
  Result<uint32_t> set_policy(std::unique_ptr<Policy> policy, std::string_view ca_seed);
  void close();
  // Ends what has been idle for too long.
  void sweep(std::chrono::steady_clock::time_point now);

  const PolicyPtr& policy() const { return policy_; }
  const std::string& slot() const { return slot_; }
  Surroundings& around() { return around_; }
  Authority* authority() { return authority_.get(); }
  std::string certificate() const {
    return authority_ == nullptr ? std::string() : authority_->certificate();
  }

  // A name that this sandbox was told has this address.
  std::string pinned_name(const IpAddress& address, uint16_t port) const;
  void pin(const IpAddress& address, const std::string& name);

  // Our own resolution, then every check, then a connection to that very address.
  struct Reached {
    UniqueFd fd;
    IpAddress address;
  };
  Task<Result<Reached>> reach(std::string name, uint16_t port, IpAddress preferred);
  Task<Result<Reached>> reach_address(IpAddress address, uint16_t port);

  std::unique_ptr<Upstream> take_idle(const std::string& key);
  void give_idle(const std::string& key, std::unique_ptr<Upstream> upstream);

  void report(wire::TrafficEntry entry);
  void refused(const Basis& basis, const Verdict& verdict, std::string request = {});
  Throttle& bytes() { return bytes_; }
  Throttle& requests() { return requests_; }
  Throttle& bytes_of(const std::string& domain, const TrafficLimits& limits);
  Throttle& requests_of(const std::string& domain, const TrafficLimits& limits);

  void add(Connection* connection) { connections_.insert(connection); }
  void remove(Connection* connection) { connections_.erase(connection); }
  size_t connections_to(const std::string& domain) const;

  // DNS, over either transport: the answer's size. `waiting`: it must be asked for first.
  size_t answer_now(std::string_view query, std::span<char> out, bool& waiting);
  Task<std::string> answer_later(std::string query);

 private:
  using Descriptor = boost::asio::posix::stream_descriptor;
  Task<void> accept_loop(std::shared_ptr<Descriptor> listener);
  Task<void> dns_loop(std::shared_ptr<Descriptor> socket);
  // False where there are no descriptors for more.
  bool accept_all(int listener);
  size_t answer_from(const Resolver::AnswerPtr& answer, std::string_view query,
                     const DnsQuery& parsed, const Verdict& verdict, std::span<char> out);
  void report_name(const DnsQuery& query, const Verdict& verdict);

  Surroundings& around_;
  std::string slot_;
  PolicyPtr policy_;
  std::unique_ptr<Authority> authority_;
  std::vector<std::string> authority_domains_;
  std::vector<std::shared_ptr<Descriptor>> sockets_;
  std::set<Connection*> connections_;
  struct Pin {
    std::set<std::string> names;
  };
  std::map<IpAddress, Pin> pins_;
  std::map<std::string, std::vector<std::unique_ptr<Upstream>>> idle_;
  Throttle bytes_;
  Throttle requests_;
  std::map<std::string, Throttle> bytes_by_domain_;
  std::map<std::string, Throttle> requests_by_domain_;
  bool closed_ = false;
};

}  // namespace atl::egress
