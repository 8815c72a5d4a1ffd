#include "egress/resolver.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <fstream>

#include "base/random_bytes.h"
#include "base/unique_fd.h"

namespace atl::egress {

namespace asio = boost::asio;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr uint32_t kLeastSeconds = 5;
constexpr uint32_t kMostSeconds = 300;
constexpr size_t kMostKept = 10'000;
constexpr int kTries = 3;
constexpr std::chrono::milliseconds kPatience{2000};

namespace {

// A socket whose waits end with the patience.
constexpr const char* kSilent = "the name server does not answer";

class Descriptor {
 public:
  Descriptor(const asio::any_io_executor& executor, UniqueFd fd)
      : descriptor_(std::make_shared<Socket>(executor, fd.release())), timer_(executor, kPatience) {
    timer_.async_wait([socket = descriptor_](boost::system::error_code error) {
      if (error) return;
      boost::system::error_code ignored;
      socket->cancel(ignored);
    });
  }
  Task<Result<void>> wait(asio::posix::descriptor_base::wait_type what) {
    auto socket = descriptor_;
    // The timer may have fired while nobody waited here, and cancelled nothing.
    if (timer_.expiry() <= asio::steady_timer::clock_type::now()) {
      co_return fail(ErrorCode::Timeout, kSilent);
    }
    auto [error] = co_await socket->async_wait(what, kAwait);
    if (error) co_return fail(ErrorCode::Timeout, kSilent);
    co_return Result<void>();
  }
  int fd() { return descriptor_->native_handle(); }

 private:
  using Socket = asio::posix::stream_descriptor;
  std::shared_ptr<Socket> descriptor_;
  asio::steady_timer timer_;
};

Result<UniqueFd> connect_to(const Endpoint& server, int type) {
  sockaddr_storage address{};
  socklen_t size = server.address.fill(address, server.port);
  UniqueFd fd(socket(address.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return fail_errno("socket", "a name server");
  int connected = connect(fd.get(), reinterpret_cast<sockaddr*>(&address), size);
  if (connected != 0 && errno != EINPROGRESS) return fail_errno("connect", "a name server");
  return fd;
}

std::string key_of(const std::string& name, DnsType type) {
  return (type == DnsType::A ? "4" : "6") + name;
}

Result<Endpoint> parse_server(std::string_view text) {
  Endpoint endpoint;
  std::string_view host = text;
  size_t colon = text.find_last_of(':');
  bool bracketed = text.starts_with('[');
  bool has_port =
      colon != text.npos && (bracketed ? text[colon - 1] == ']' : text.find(':') == colon);
  if (has_port) {
    host = text.substr(0, colon);
    std::string_view digits = text.substr(colon + 1);
    std::from_chars(digits.data(), digits.data() + digits.size(), endpoint.port);
  }
  if (bracketed) host = host.substr(1, host.find(']') - 1);
  auto address = IpAddress::parse(host.substr(0, host.find('%')));
  if (!address || endpoint.port == 0) {
    return fail(ErrorCode::InvalidArgument,
                "dns_upstream: '" + std::string(text) + "' is not ADDRESS:PORT");
  }
  endpoint.address = *address;
  return endpoint;
}

}  // namespace

Result<std::vector<Endpoint>> name_servers(const std::string& setting) {
  std::vector<Endpoint> servers;
  if (!setting.empty()) {
    ATOLL_ASSIGN(Endpoint server, parse_server(setting));
    servers.push_back(server);
    return servers;
  }
  std::ifstream file("/etc/resolv.conf");
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kWord = "nameserver";
    if (!line.starts_with(kWord)) continue;
    size_t begin = line.find_first_not_of(" \t", kWord.size());
    if (begin == line.npos) continue;
    size_t end = line.find_first_of(" \t#;", begin);
    if (auto server = parse_server("[" + line.substr(begin, end - begin) + "]")) {
      servers.push_back(*server);
    }
  }
  return servers;
}

uint32_t Resolver::Answer::ttl_left() const {
  auto left = std::chrono::duration_cast<std::chrono::seconds>(expires - Clock::now()).count();
  return left > 1 ? static_cast<uint32_t>(left) : 1;
}

Resolver::AnswerPtr Resolver::cached(const std::string& name, DnsType type) {
  auto found = cache_.find(key_of(name, type));
  if (found == cache_.end()) return nullptr;
  if (found->second->expires > Clock::now()) return found->second;
  cache_.erase(found);
  return nullptr;
}

Task<Result<Resolver::AnswerPtr>> Resolver::resolve(std::string name, DnsType type) {
  if (auto known = cached(name, type)) co_return known;
  std::string key = key_of(name, type);
  auto [place, first] = under_way_.try_emplace(key);
  if (!first) {
    auto waiting = std::make_shared<async::OneShot<Result<AnswerPtr>>>();
    place->second.push_back(waiting);
    co_return co_await waiting->wait();
  }
  auto answer = co_await ask(name, type);
  auto waiters = std::move(under_way_[key]);
  under_way_.erase(key);
  for (const Waiting& waiter : waiters) waiter->set(answer);
  co_return answer;
}

Task<Result<std::vector<IpAddress>>> Resolver::addresses(std::string name) {
  std::vector<IpAddress> all;
  auto four = co_await resolve(name, DnsType::A);
  if (four) all = (*four)->addresses;
  if (with_v6_) {
    auto six = co_await resolve(name, DnsType::Aaaa);
    if (six) all.insert(all.end(), (*six)->addresses.begin(), (*six)->addresses.end());
  }
  if (all.empty() && !four) co_return fail(std::move(four).error());
  co_return all;
}

Task<Result<Resolver::AnswerPtr>> Resolver::ask(const std::string& name, DnsType type) {
  std::string key = key_of(name, type);
  if (type == DnsType::Aaaa && !with_v6_) {
    DnsReply none;
    none.ttl = kMostSeconds;
    co_return keep(key, std::move(none));
  }
  if (servers_.empty()) co_return fail(ErrorCode::Unavailable, "this host has no name server");
  Error last(ErrorCode::Unavailable, "no name server answers");
  for (int i = 0; i < kTries; i++) {
    const Endpoint& server = servers_[static_cast<size_t>(i) % servers_.size()];
    auto reply = co_await ask_server(server, name, type);
    if (!reply) {
      last = std::move(reply).error();
      continue;
    }
    bool final = reply->code == DnsCode::NoError || reply->code == DnsCode::NoName;
    if (final) co_return keep(key, std::move(*reply));
    last = Error(ErrorCode::Unavailable, "the name server refuses to answer");
  }
  co_return fail(std::move(last));
}

Resolver::AnswerPtr Resolver::keep(const std::string& key, DnsReply reply) {
  auto answer = std::make_shared<Answer>();
  answer->code = reply.code;
  answer->addresses = std::move(reply.addresses);
  uint32_t seconds = std::clamp(reply.ttl, kLeastSeconds, kMostSeconds);
  answer->expires = Clock::now() + std::chrono::seconds(seconds);
  if (cache_.size() >= kMostKept) {
    std::erase_if(cache_, [](const auto& entry) { return entry.second->expires <= Clock::now(); });
    if (cache_.size() >= kMostKept) cache_.clear();
  }
  cache_[key] = answer;
  return answer;
}

Task<Result<DnsReply>> Resolver::ask_server(const Endpoint& server, const std::string& name,
                                            DnsType type) {
  uint16_t id = 0;
  random_bytes(&id, sizeof id);
  std::string query = make_dns_query(id, name, type);
  ATOLL_CO_ASSIGN(std::string message, co_await over_udp(server, query));
  auto reply = parse_dns_reply(message, id, name, type);
  if (reply && reply->truncated) {
    ATOLL_CO_ASSIGN(message, co_await over_tcp(server, query));
    reply = parse_dns_reply(message, id, name, type);
  }
  if (!reply) co_return fail(ErrorCode::Unavailable, "the name server answers something else");
  co_return std::move(*reply);
}

// The kernel chooses the port, and takes datagrams of that server only.
Task<Result<std::string>> Resolver::over_udp(const Endpoint& server, const std::string& query) {
  ATOLL_CO_ASSIGN(UniqueFd fd, connect_to(server, SOCK_DGRAM));
  Descriptor socket(executor_, std::move(fd));
  if (send(socket.fd(), query.data(), query.size(), MSG_NOSIGNAL) < 0) {
    co_return fail_errno("send", "to a name server");
  }
  for (;;) {
    ATOLL_CO_TRY(co_await socket.wait(asio::posix::descriptor_base::wait_read));
    char buffer[4096];
    ssize_t size = recv(socket.fd(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (size < 0 && errno == EAGAIN) continue;
    if (size < 0) co_return fail_errno("recv", "from a name server");
    // Somebody's guess at our answer: wait for the real one.
    bool ours = size >= 2 && memcmp(buffer, query.data(), 2) == 0;
    if (ours) co_return std::string(buffer, static_cast<size_t>(size));
  }
}

Task<Result<std::string>> Resolver::over_tcp(const Endpoint& server, const std::string& query) {
  ATOLL_CO_ASSIGN(UniqueFd fd, connect_to(server, SOCK_STREAM));
  Descriptor socket(executor_, std::move(fd));
  ATOLL_CO_TRY(co_await socket.wait(asio::posix::descriptor_base::wait_write));
  std::string framed;
  framed.push_back(static_cast<char>(query.size() >> 8));
  framed.push_back(static_cast<char>(query.size() & 0xff));
  framed += query;
  if (send(socket.fd(), framed.data(), framed.size(), MSG_NOSIGNAL) < 0) {
    co_return fail_errno("send", "to a name server");
  }
  std::string reply;
  for (;;) {
    ATOLL_CO_TRY(co_await socket.wait(asio::posix::descriptor_base::wait_read));
    char buffer[4096];
    ssize_t size = recv(socket.fd(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (size < 0 && errno == EAGAIN) continue;
    if (size <= 0) co_return fail(ErrorCode::Unavailable, "the name server hung up");
    reply.append(buffer, static_cast<size_t>(size));
    if (reply.size() < 2) continue;
    size_t wanted =
        static_cast<size_t>(static_cast<uint8_t>(reply[0])) << 8 | static_cast<uint8_t>(reply[1]);
    if (reply.size() >= 2 + wanted) co_return reply.substr(2, wanted);
  }
}

}  // namespace atl::egress
