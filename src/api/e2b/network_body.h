// What a sandbox may reach and who may reach it, in E2B's words. Where a client says nothing it is
// the public network, both ways.
#pragma once

#include "http/json.h"
#include "sandbox/record.h"

namespace atl::api::e2b {

struct NetworkWish {
  NetworkPolicy policy;
  sandbox::Ingress ingress;  // its ports are public unless `allowPublicTraffic` is false
};

// The fields `allow_internet_access` and `network` of a create.
Result<NetworkWish> read_network(http::JsonObjectReader& reader);
// The body of an update, which has the same without `network` around it. What it does not say of
// the ports stays as it is.
Result<NetworkWish> read_network_update(http::JsonObjectReader& reader,
                                        const sandbox::Ingress& present);

}  // namespace atl::api::e2b
