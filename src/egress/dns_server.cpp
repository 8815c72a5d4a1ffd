// Names for a sandbox: answered where its policy knows them, and never asked for otherwise.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "egress/outlet.h"

namespace atl::egress {

namespace asio = boost::asio;
constexpr size_t kBatch = 32;
constexpr size_t kMostQuery = 1232;
constexpr size_t kMostAnswer = 1500;
constexpr int kMostWaiting = 256;

namespace {

// Datagrams with the address they were sent to, which their answers must come from.
struct Batch {
  struct Slot {
    char query[kMostQuery];
    char answer[kMostAnswer];
    sockaddr_storage peer;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(in6_pktinfo))];
    iovec part;
  };
  std::array<Slot, kBatch> slots;
  std::array<mmsghdr, kBatch> messages;

  int receive(int fd) {
    for (size_t i = 0; i < kBatch; i++) {
      Slot& slot = slots[i];
      slot.part = {slot.query, sizeof slot.query};
      msghdr& header = messages[i].msg_hdr;
      header = {};
      header.msg_name = &slot.peer;
      header.msg_namelen = sizeof slot.peer;
      header.msg_iov = &slot.part;
      header.msg_iovlen = 1;
      header.msg_control = slot.control;
      header.msg_controllen = sizeof slot.control;
    }
    return recvmmsg(fd, messages.data(), kBatch, MSG_DONTWAIT, nullptr);
  }

  // What was received with the destination becomes what is sent with the source.
  static void answer_from_there(msghdr& header) {
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
      if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
        auto* info = reinterpret_cast<in_pktinfo*>(CMSG_DATA(c));
        info->ipi_spec_dst = info->ipi_addr;
        info->ipi_ifindex = 0;
      } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
        reinterpret_cast<in6_pktinfo*>(CMSG_DATA(c))->ipi6_ifindex = 0;
      }
    }
  }
};

// An answer that had to be asked for.
struct Pending {
  std::string query;
  sockaddr_storage peer{};
  socklen_t peer_size = 0;
  std::string control;
};

void send_one(int fd, const Pending& pending, std::string& answer) {
  iovec part{answer.data(), answer.size()};
  msghdr header{};
  header.msg_name = const_cast<sockaddr_storage*>(&pending.peer);
  header.msg_namelen = pending.peer_size;
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = const_cast<char*>(pending.control.data());
  header.msg_controllen = pending.control.size();
  (void)sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

void Outlet::report_name(const DnsQuery& query, const Verdict& verdict) {
  Basis basis;
  basis.name = query.name;
  basis.protocol = Protocol::Dns;
  basis.port = 53;
  refused(basis, verdict);
}

size_t Outlet::answer_from(const Resolver::AnswerPtr& answer, std::string_view query,
                           const DnsQuery& parsed, const Verdict& verdict, std::span<char> out) {
  std::array<IpAddress, 16> given;
  size_t count = 0;
  std::string why;
  for (const IpAddress& address : answer->addresses) {
    if (count == given.size()) break;
    auto guarded = around_.guard.refuses(address);
    if (!guarded) guarded = policy_->denied_by(address);
    if (guarded) {
      why = *guarded;
      continue;
    }
    given[count++] = address;
    bool by_port = verdict.permit >= 0 && !policy_->permit(verdict.permit).ports.empty();
    if (by_port || !policy_->value().domains.empty()) pin(address, parsed.name);
  }
  DnsCode code = answer->code;
  if (count == 0 && !why.empty()) {
    report_name(parsed, {false, verdict.rule, parsed.name + " is out of reach: " + why, -1});
    code = DnsCode::NoName;
  }
  return write_dns_answer(query, parsed, code, {given.data(), count}, answer->ttl_left(), out);
}

size_t Outlet::answer_now(std::string_view query, std::span<char> out, bool& waiting) {
  auto parsed = parse_dns_query(query);
  if (!parsed) return write_dns_refusal(query, DnsCode::FormatError, out);
  Verdict verdict{false, "", "not a host name", -1};
  if (!parsed->name.empty()) verdict = policy_->judge(parsed->name, 0, Protocol::Dns);
  if (!verdict.allowed) {
    report_name(*parsed, verdict);
    return write_dns_answer(query, *parsed, DnsCode::NoName, {}, 0, out);
  }
  auto type = static_cast<DnsType>(parsed->type);
  if (type != DnsType::A && type != DnsType::Aaaa) {
    // There is nothing of that kind: no keys for an encrypted hello, no other way around.
    return write_dns_answer(query, *parsed, DnsCode::NoError, {}, 0, out);
  }
  auto answer = around_.resolver.cached(parsed->name, type);
  if (answer != nullptr) return answer_from(answer, query, *parsed, verdict, out);
  waiting = true;
  return 0;
}

Task<std::string> Outlet::answer_later(std::string query) {
  std::string out(kMostAnswer, '\0');
  auto parsed = parse_dns_query(query);
  if (!parsed) co_return std::string();
  auto answer = co_await around_.resolver.resolve(parsed->name, static_cast<DnsType>(parsed->type));
  Verdict verdict = policy_->judge(parsed->name, 0, Protocol::Dns);
  size_t size = 0;
  if (answer && verdict.allowed) {
    size = answer_from(*answer, query, *parsed, verdict, out);
  } else {
    if (!answer) verdict.reason = answer.error().message();
    DnsCode code = answer ? DnsCode::NoName : DnsCode::ServerFailure;
    size = write_dns_answer(query, *parsed, code, {}, 0, out);
  }
  out.resize(size);
  co_return out;
}

Task<void> Outlet::dns_loop(std::shared_ptr<Descriptor> socket) {
  auto self = shared_from_this();
  static Batch batch;  // one thread; used between waits only
  auto waiting_answers = std::make_shared<int>(0);
  for (;;) {
    auto [error] = co_await socket->async_wait(asio::posix::descriptor_base::wait_read,
                                               asio::as_tuple(asio::use_awaitable));
    if (error || closed_) co_return;
    int fd = socket->native_handle();
    int received = batch.receive(fd);
    unsigned ready = 0;
    for (int i = 0; i < received; i++) {
      mmsghdr& message = batch.messages[static_cast<size_t>(i)];
      Batch::Slot& slot = batch.slots[static_cast<size_t>(i)];
      std::string_view query(slot.query, message.msg_len);
      Batch::answer_from_there(message.msg_hdr);
      bool waiting = false;
      size_t size = answer_now(query, slot.answer, waiting);
      if (size > 0) {
        slot.part = {slot.answer, size};
        if (ready != static_cast<unsigned>(i)) std::swap(batch.messages[ready], message);
        ready++;
      }
      if (!waiting || *waiting_answers >= kMostWaiting) continue;
      Pending pending{.query = std::string(query), .control = {}};
      pending.peer = slot.peer;
      pending.peer_size = message.msg_hdr.msg_namelen;
      pending.control.assign(slot.control, message.msg_hdr.msg_controllen);
      (*waiting_answers)++;
      auto later = [self, socket, waiting_answers, pending]() -> Task<void> {
        std::string answer = co_await self->answer_later(pending.query);
        (*waiting_answers)--;
        if (!answer.empty() && socket->is_open())
          send_one(socket->native_handle(), pending, answer);
      };
      asio::co_spawn(around_.executor, later, asio::detached);
    }
    if (ready > 0) (void)sendmmsg(fd, batch.messages.data(), ready, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

}  // namespace atl::egress
