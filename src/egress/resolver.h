// Names to addresses, by asking the host's name servers; answers are kept as long as they say.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "async/one_shot.h"
#include "atoll/task.h"
#include "base/result.h"
#include "egress/dns_message.h"

namespace atl::egress {

struct Endpoint {
  IpAddress address;
  uint16_t port = 53;
};

// "ADDRESS:PORT" or "ADDRESS", or what /etc/resolv.conf says where it is empty.
Result<std::vector<Endpoint>> name_servers(const std::string& setting);

class Resolver {
 public:
  using Clock = std::chrono::steady_clock;
  struct Answer {
    DnsCode code = DnsCode::NoError;
    std::vector<IpAddress> addresses;
    Clock::time_point expires;
    uint32_t ttl_left() const;
  };
  using AnswerPtr = std::shared_ptr<const Answer>;

  Resolver(boost::asio::any_io_executor executor, std::vector<Endpoint> servers, bool with_v6)
      : executor_(std::move(executor)), servers_(std::move(servers)), with_v6_(with_v6) {}

  // The name is one that somebody may ask for: it leaves this host.
  AnswerPtr cached(const std::string& name, DnsType type);
  Task<Result<AnswerPtr>> resolve(std::string name, DnsType type);
  // Addresses of both kinds.
  Task<Result<std::vector<IpAddress>>> addresses(std::string name);

 private:
  Task<Result<AnswerPtr>> ask(const std::string& name, DnsType type);
  Task<Result<DnsReply>> ask_server(const Endpoint& server, const std::string& name, DnsType type);
  Task<Result<std::string>> over_udp(const Endpoint& server, const std::string& query);
  Task<Result<std::string>> over_tcp(const Endpoint& server, const std::string& query);
  AnswerPtr keep(const std::string& key, DnsReply reply);

  using Waiting = std::shared_ptr<async::OneShot<Result<AnswerPtr>>>;
  boost::asio::any_io_executor executor_;
  std::vector<Endpoint> servers_;
  bool with_v6_;
  std::unordered_map<std::string, AnswerPtr> cache_;  // by type and name
  std::map<std::string, std::vector<Waiting>> under_way_;
};

}  // namespace atl::egress
