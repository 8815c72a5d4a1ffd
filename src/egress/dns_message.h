// The DNS wire format, as far as addresses go. No input or output; trusts no byte.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "egress/address.h"

namespace atl::egress {

enum class DnsType : uint16_t { A = 1, Cname = 5, Aaaa = 28 };
enum class DnsCode : uint8_t {
  NoError = 0,
  FormatError = 1,
  ServerFailure = 2,
  NoName = 3,
  NotImplemented = 4
};

struct DnsQuery {
  uint16_t id = 0;
  bool recursion_desired = false;
  std::string name;  // as canonical_name() gives it; empty: it is not one
  uint16_t type = 0;
  size_t question_end = 0;
};
// One question of class IN; nothing where it is anything else.
std::optional<DnsQuery> parse_dns_query(std::string_view message);

// Writes an answer to the query into `out` and returns its size. At most as many addresses as fit
// into 512 bytes, which every client takes.
size_t write_dns_answer(std::string_view query, const DnsQuery& parsed, DnsCode code,
                        std::span<const IpAddress> addresses, uint32_t ttl, std::span<char> out);
// To a message that could not be parsed.
size_t write_dns_refusal(std::string_view query, DnsCode code, std::span<char> out);

std::string make_dns_query(uint16_t id, std::string_view name, DnsType type);

struct DnsReply {
  DnsCode code = DnsCode::NoError;
  bool truncated = false;
  std::vector<IpAddress> addresses;
  uint32_t ttl = 0;
};
// Nothing where it does not answer this question. Only addresses at the end of the chain of aliases
// that begins with the name count.
std::optional<DnsReply> parse_dns_reply(std::string_view message, uint16_t id,
                                        std::string_view name, DnsType type);

}  // namespace atl::egress
