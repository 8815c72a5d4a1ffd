#include "registry/reference.h"

#include "image/digest.h"

namespace atl::registry {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view kHost =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]";
constexpr std::string_view kTag =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

bool only(std::string_view text, std::string_view allowed) {
  return text.find_first_not_of(allowed) == text.npos;
}

// Letters and digits, with '.', '_' or '-' between them.
bool is_component(std::string_view part) {
  if (part.empty() || kLower.find(part.front()) == kLower.npos ||
      kLower.find(part.back()) == kLower.npos) {
    return false;
  }
  return part.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-") == part.npos;
}

bool is_repository(std::string_view name) {
  if (name.empty() || name.size() > 255) return false;
  for (;;) {
    size_t slash = name.find('/');
    if (!is_component(name.substr(0, slash))) return false;
    if (slash == name.npos) return true;
    name.remove_prefix(slash + 1);
  }
}

bool is_host(std::string_view host) {
  if (host.empty() || host.size() > 255 || !only(host, kHost)) return false;
  return host == "localhost" || host.find_first_of(".:") != host.npos;
}

bool is_tag(std::string_view tag) {
  if (tag.empty() || tag.size() > 128 || !only(tag, kTag)) return false;
  return tag.front() != '.' && tag.front() != '-';
}

std::string_view without_port(std::string_view host) {
  size_t colon = host.rfind(':');
  if (colon == host.npos || host.find(']', colon) != host.npos) return host;
  return only(host.substr(colon + 1), kDigits) ? host.substr(0, colon) : host;
}

}  // namespace

std::string Reference::selector() const { return digest.empty() ? tag : "sha256:" + digest; }

std::string Reference::text() const {
  return host + "/" + repository + (digest.empty() ? ":" + tag : "@sha256:" + digest);
}

bool names_registry(std::string_view text) {
  size_t slash = text.find('/');
  return slash != text.npos && slash > 0 && text.front() != '.' && is_host(text.substr(0, slash));
}

Result<Reference> parse_reference(std::string_view text) {
  auto refuse = [&](std::string_view why) {
    return fail(Error(ErrorCode::InvalidArgument,
                      "'" + std::string(text.substr(0, 300)) + "' " + std::string(why))
                    .with_field("source"));
  };
  if (!names_registry(text)) {
    return refuse("is neither a file nor REGISTRY/NAME:TAG; the registry has a dot or a port");
  }
  Reference reference;
  size_t slash = text.find('/');
  reference.host = text.substr(0, slash);
  std::string_view name = text.substr(slash + 1);
  if (size_t at = name.find('@'); at != name.npos) {
    ATOLL_ASSIGN(reference.digest, image::parse_digest(name.substr(at + 1)));
    name = name.substr(0, at);
  }
  reference.tag = "latest";
  if (size_t colon = name.find(':'); colon != name.npos) {
    reference.tag = name.substr(colon + 1);
    name = name.substr(0, colon);
    if (!is_tag(reference.tag)) return refuse("has a malformed tag");
  }
  if (!is_repository(name)) return refuse("has a malformed repository name");
  reference.repository = name;
  // Docker Hub's names are not its hosts, and its own images have a folder that nobody writes.
  if (reference.host == "docker.io" || reference.host == "index.docker.io") {
    reference.host = "registry-1.docker.io";
    if (name.find('/') == name.npos) reference.repository = "library/" + reference.repository;
  }
  return reference;
}

bool is_loopback(std::string_view host) {
  host = without_port(host);
  if (host == "localhost" || host == "[::1]") return true;
  return host.starts_with("127.") && only(host, "0123456789.") && host.size() <= 15;
}

}  // namespace atl::registry
