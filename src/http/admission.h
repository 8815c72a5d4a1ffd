#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "http/message.h"

namespace atl::http {

// Bounds the connections of a server: all of them together, and those from one address. Loopback is
// no address in this sense, as everybody behind a local proxy shares it. An IPv6 client has 2^64
// addresses to itself, so there its network counts.
class Admission {
 public:
  // Never so many that the process is left without descriptors for anything else.
  Admission(size_t max_connections, size_t max_per_address);
  ~Admission();

  // A place; it is free again when the ticket goes.
  class [[nodiscard]] Ticket {
   public:
    Ticket(Ticket&&) noexcept = default;
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket();

   private:
    friend class Admission;
    struct Counts;
    Ticket(std::shared_ptr<Counts> counts, std::string address)
        : counts_(std::move(counts)), address_(std::move(address)) {}
    std::shared_ptr<Counts> counts_;
    std::string address_;
  };

  // Fails with Unavailable when full, ResourceExhausted when that address has its share.
  Result<Ticket> admit(const Peer& peer);

  size_t max_connections() const { return max_connections_; }
  // Some are kept for whoever may open the server's own socket: they have to get in to set things
  // right.
  size_t room_for(const Peer& peer) const;

 private:
  size_t max_connections_;
  size_t max_per_address_;
  std::shared_ptr<Ticket::Counts> counts_;
};

// What connections are counted under; empty for those that are not.
std::string counted_address(const Peer& peer);

}  // namespace atl::http
