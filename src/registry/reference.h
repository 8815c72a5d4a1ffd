// Names of images in registries: "ghcr.io/owner/name:tag", "localhost:5000/name@sha256:...".
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::registry {

struct Reference {
  std::string host;  // with its port, where one was given
  std::string repository;
  std::string tag;     // "latest" where nothing was said
  std::string digest;  // 64 hex digits; wins over the tag

  // As it is asked for: the tag, or "sha256:...".
  std::string selector() const;
  std::string text() const;
};

// The host must be given, and look like one: it has a dot or a port, or is "localhost".
Result<Reference> parse_reference(std::string_view text);

// Whether the text begins with something that can only be a registry's host.
bool names_registry(std::string_view text);

// 127.0.0.0/8, ::1 or localhost, with or without a port: needs no encryption.
bool is_loopback(std::string_view host);

}  // namespace atl::registry
