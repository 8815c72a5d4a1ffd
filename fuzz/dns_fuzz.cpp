// Datagrams of sandboxes and of name servers. The first byte chooses whose the rest is.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "egress/dns_message.h"
#include "egress/name.h"

using namespace atl::egress;

static void check_query(std::string_view bytes) {
  std::array<char, 1500> out;
  auto query = parse_dns_query(bytes);
  if (!query) {
    (void)write_dns_refusal(bytes, DnsCode::FormatError, out);
    return;
  }
  if (query->question_end > bytes.size()) abort();
  std::array<IpAddress, 40> many;
  size_t size = write_dns_answer(bytes, *query, DnsCode::NoError, many, 60, out);
  if (size > out.size()) abort();
  if (query->name.empty() || size == 0) return;
  // What we ask upstream for is what was asked for.
  auto again = parse_dns_query(make_dns_query(query->id, query->name, DnsType::A));
  if (!again || again->name != query->name) abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 1300) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'q') {
    check_query(bytes);
  } else if (auto reply = parse_dns_reply(bytes, 0x4141, "a.test", DnsType::A)) {
    for (const IpAddress& address : reply->addresses) {
      if (!address.is_v4()) abort();
    }
  }
  return 0;
}
