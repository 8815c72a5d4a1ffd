// The pull half of the registry protocol (OCI distribution, Docker registry v2), over the blocking
// HTTP client. Safe to share between threads.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "http/client.h"
#include "image/image_documents.h"
#include "registry/challenge.h"
#include "registry/reference.h"

namespace atl::registry {

struct RegistryOptions {
  Credentials credentials;
  bool insecure = false;  // plain HTTP also beyond loopback
  std::string ca_file;    // instead of the system's certificates
  std::chrono::milliseconds io_timeout{60'000};
};

class RegistryClient {
 public:
  RegistryClient(Reference reference, RegistryOptions options);

  // The manifest or index that the reference names, verified where it names it by digest.
  Result<std::string> manifest();
  Result<std::string> manifest(const image::Descriptor& wanted);
  // A blob of at most kMaxDocumentBytes, not verified.
  Result<std::string> document(const image::Descriptor& blob);
  // A blob from `offset` on. Where the registry gives all of it instead, `offset` becomes 0.
  Result<http::ResponseStream> blob(const image::Descriptor& blob, uint64_t& offset);

  const Reference& reference() const { return reference_; }

 private:
  struct Url {
    std::string origin;  // "https://host:port"
    std::string target;
  };
  static Result<Url> parse_url(std::string_view text);
  Result<Url> url_of(const std::string& path) const;
  Result<void> check_allowed(const Url& url) const;
  Result<http::Client> client_for(const std::string& origin);
  // Follows redirects and answers a request to log in.
  Result<http::ResponseStream> get(const std::string& path, http::Headers headers);
  Result<http::ResponseStream> follow(Url url, http::Headers headers);
  Result<std::string> log_in(const http::ResponseStream& refused);
  Result<std::string> fetch_token(const Challenge& challenge);
  Result<std::string> get_manifest(const std::string& selector);
  std::string authorization();

  Reference reference_;
  RegistryOptions options_;
  std::string origin_;
  std::mutex mutex_;
  std::map<std::string, http::Client> clients_;
  std::string authorization_;
};

}  // namespace atl::registry
