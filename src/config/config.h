// What `atoll serve` was told, by flags, environment, file and defaults; settings.h lists the names
// and the defaults.
#pragma once

#include <cstdint>
#include <string>

#include "atoll/types.h"

namespace atl::config {

struct Tls {
  std::string certificate;  // PEM files; both or none
  std::string key;
};

// Of sandboxes whose creator says nothing. 0: never.
struct Lifetimes {
  uint32_t max_s = 0;
  uint32_t idle_s = 0;
  uint32_t delete_after_stop_s = 0;
};

struct Config {
  std::string data_dir;
  std::string run_dir;
  std::string listen;  // ADDRESS:PORT, or "none"
  Tls tls;
  std::string public_url;  // without a slash at its end; empty: what `listen` gives
  std::string allowed_origin;
  std::string preview_domain;
  std::string cgroup;
  std::string user;  // the account the server runs as
  uint32_t pool = 0;
  uint32_t reserve = 0;
  uint64_t storage_bytes = 0;
  std::string criu;                  // directory; empty: where it is usually found
  uint64_t memory_images_bytes = 0;  // 0: no limit
  std::string on_exit;  // "keep" or "stop": what becomes of sandboxes at a graceful end
  std::string log_level;
  std::string log_format;
  Limits default_limits;         // of sandboxes whose creator says nothing
  uint32_t rate_per_second = 0;  // requests of one key; 0: no limit
  uint32_t max_sandboxes = 0;    // on this host; 0: no limit
  Lifetimes lifetimes;
  bool audit = false;
  bool metrics_public = false;  // GET /metrics over TCP without a key
  uint32_t events_keep_hours = 0;
  std::string dns_upstream;          // ADDRESS:PORT; empty: the host's name servers
  std::string egress_allow_private;  // subnets with commas between
  std::string egress_steering;       // "auto", "program" or "redirection"
  std::string egress_ca;             // PEM file; empty: the system's authorities

  int ready_fd = -1;  // a flag only: gets "ready\n" once requests are served
};

}  // namespace atl::config
