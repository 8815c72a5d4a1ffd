#include "http/forwarding.h"

namespace atl::http {

bool is_hop_by_hop(std::string_view name, const Headers& headers) {
  static constexpr std::string_view kNames[] = {
      "connection", "keep-alive",        "proxy-connection", "proxy-authorization", "te",
      "trailer",    "transfer-encoding", "upgrade",          "content-length",      "expect"};
  for (std::string_view known : kNames) {
    if (equals_ignoring_case(name, known)) return true;
  }
  return headers.has_token("Connection", name);
}

bool wants_upgrade(const Headers& headers) {
  return headers.has_token("Connection", "upgrade") && headers.contains("Upgrade");
}

}  // namespace atl::http
