#include "registry/registry_client.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "image/digest.h"
#include "image/sha256.h"

namespace atl::registry {
namespace {

namespace json = boost::json;

constexpr int kMaxRedirects = 5;
constexpr size_t kMaxTokenBytes = 64 << 10;
constexpr size_t kMaxErrorBytes = 64 << 10;
constexpr const char* kManifestTypes =
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.docker.distribution.manifest.v2+json";

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// What the registry says of its refusal, in one line without surprises.
std::string reason_of(http::ResponseStream& response) {
  auto body = response.read_all(kMaxErrorBytes);
  if (!body) return "";
  boost::system::error_code error;
  json::value value = json::parse(*body, error);
  if (error || !value.is_object()) return "";
  const json::value* errors = value.get_object().if_contains("errors");
  if (errors == nullptr || !errors->is_array() || errors->get_array().empty()) return "";
  const json::value& first = errors->get_array().front();
  const json::value* message =
      first.is_object() ? first.get_object().if_contains("message") : nullptr;
  if (message == nullptr || !message->is_string()) return "";
  std::string text(std::string_view(message->get_string()).substr(0, 200));
  for (char& c : text) {
    if (c < ' ' || c == 0x7f) c = '?';
  }
  return ": " + text;
}

Error refused(http::ResponseStream& response, const std::string& what) {
  int status = response.status();
  std::string words =
      fmt::format("the registry answers {} to {}{}", status, what, reason_of(response));
  if (status == 401 || status == 403) {
    return Error(ErrorCode::PermissionDenied,
                 words + "; give credentials with --user or ATOLL_REGISTRY_USER");
  }
  if (status == 404) return Error(ErrorCode::NotFound, words);
  if (status == 429 || status >= 500) return Error(ErrorCode::Unavailable, words);
  return Error(ErrorCode::InvalidArgument, words);
}

Result<void> check_text(const std::string& text, const std::string& digest) {
  image::Sha256 hash;
  hash.update(text.data(), text.size());
  std::string found = hash.finish();
  if (found == digest) return {};
  return fail(ErrorCode::InvalidArgument,
              fmt::format("the contents do not match the image: sha256:{} was promised, sha256:{} "
                          "came",
                          digest, found));
}

}  // namespace

RegistryClient::RegistryClient(Reference reference, RegistryOptions options)
    : reference_(std::move(reference)), options_(std::move(options)) {
  bool plain = options_.insecure || is_loopback(reference_.host);
  origin_ = (plain ? "http://" : "https://") + reference_.host;
}

Result<RegistryClient::Url> RegistryClient::parse_url(std::string_view text) {
  size_t scheme = text.find("://");
  bool known = text.starts_with("http://") || text.starts_with("https://");
  if (!known || text.find_first_of("\r\n \t") != text.npos || text.size() > 16384) {
    return fail(ErrorCode::InvalidArgument, "the registry leads to something that is no URL");
  }
  size_t path = std::min(text.find_first_of("/?#", scheme + 3), text.size());
  std::string_view target = text.substr(path, text.find('#') - path);
  Url url{std::string(text.substr(0, path)), std::string(target)};
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  return url;
}

Result<void> RegistryClient::check_allowed(const Url& url) const {
  std::string_view host = std::string_view(url.origin).substr(url.origin.find("://") + 3);
  bool same = url.origin == origin_;
  bool encrypted = url.origin.starts_with("https://");
  bool own_host = is_loopback(host);
  // A registry elsewhere has no business with what listens on this host alone.
  if (own_host && !is_loopback(reference_.host)) {
    return fail(ErrorCode::PermissionDenied, "the registry leads to this host itself");
  }
  if (same || encrypted || own_host || options_.insecure) return {};
  return fail(ErrorCode::PermissionDenied, "the registry leads to " + url.origin.substr(0, 200) +
                                               ", which is not encrypted; --insecure allows that");
}

Result<http::Client> RegistryClient::client_for(const std::string& origin) {
  std::lock_guard lock(mutex_);
  auto known = clients_.find(origin);
  if (known != clients_.end()) return known->second;
  http::ClientOptions options;
  options.io_timeout = options_.io_timeout;
  options.ca_file = options_.ca_file;
  ATOLL_ASSIGN(http::Client client, http::Client::create(origin, options));
  clients_.emplace(origin, client);
  return client;
}

std::string RegistryClient::authorization() {
  std::lock_guard lock(mutex_);
  return authorization_;
}

Result<http::ResponseStream> RegistryClient::follow(Url url, http::Headers headers) {
  for (int redirects = 0;; redirects++) {
    ATOLL_TRY(check_allowed(url));
    ATOLL_ASSIGN(http::Client client, client_for(url.origin));
    ATOLL_ASSIGN(http::ResponseStream response, client.open("GET", url.target, headers));
    if (!is_redirect(response.status())) return response;
    auto location = response.headers().get("location");
    if (!location || redirects == kMaxRedirects) {
      return fail(ErrorCode::InvalidArgument, "the registry's redirects lead nowhere");
    }
    std::string next(*location);
    if (next.starts_with('/')) next = url.origin + next;
    ATOLL_ASSIGN(Url target, parse_url(next));
    // The credentials are the registry's alone.
    if (target.origin != url.origin) headers.remove("authorization");
    url = std::move(target);
  }
}

Result<std::string> RegistryClient::fetch_token(const Challenge& challenge) {
  ATOLL_ASSIGN(Url url,
               parse_url(token_url(challenge, "repository:" + reference_.repository + ":pull")));
  http::Headers headers;
  if (!options_.credentials.empty()) {
    headers.add("authorization", basic_authorization(options_.credentials));
  }
  ATOLL_ASSIGN(http::ResponseStream response, follow(std::move(url), std::move(headers)));
  if (!response.ok()) return fail(refused(response, "the request for a token"));
  ATOLL_ASSIGN(std::string body, response.read_all(kMaxTokenBytes));
  boost::system::error_code error;
  json::value value = json::parse(body, error);
  if (!error && value.is_object()) {
    for (const char* name : {"token", "access_token"}) {
      const json::value* token = value.get_object().if_contains(name);
      if (token == nullptr || !token->is_string()) continue;
      std::string text(token->get_string());
      if (http::is_field_value(text) && !text.empty()) return "Bearer " + text;
    }
  }
  return fail(ErrorCode::InvalidArgument, "the registry's token server gives no token");
}

Result<std::string> RegistryClient::log_in(const http::ResponseStream& response) {
  auto field = response.headers().get("www-authenticate");
  if (!field) return fail(ErrorCode::PermissionDenied, "the registry refuses to say how to log in");
  ATOLL_ASSIGN(Challenge challenge, parse_challenge(*field));
  if (challenge.scheme == Challenge::Scheme::Bearer) return fetch_token(challenge);
  if (options_.credentials.empty()) {
    return fail(ErrorCode::PermissionDenied,
                "the registry wants a user and a password; give them with --user or "
                "ATOLL_REGISTRY_USER");
  }
  return basic_authorization(options_.credentials);
}

Result<http::ResponseStream> RegistryClient::get(const std::string& path, http::Headers headers) {
  Url url{origin_, "/v2/" + reference_.repository + path};
  http::Headers first = headers;
  if (std::string known = authorization(); !known.empty()) first.add("authorization", known);
  ATOLL_ASSIGN(http::ResponseStream response, follow(url, std::move(first)));
  // A token may also have run out on the way.
  if (response.status() != 401) return response;
  ATOLL_ASSIGN(std::string fresh, log_in(response));
  {
    std::lock_guard lock(mutex_);
    authorization_ = fresh;
  }
  headers.add("authorization", fresh);
  return follow(std::move(url), std::move(headers));
}

Result<std::string> RegistryClient::get_manifest(const std::string& selector) {
  http::Headers headers{{"accept", kManifestTypes}};
  ATOLL_ASSIGN(http::ResponseStream response, get("/manifests/" + selector, std::move(headers)));
  if (!response.ok()) return fail(refused(response, reference_.text()));
  ATOLL_ASSIGN(std::string text, response.read_all(image::kMaxDocumentBytes));
  if (auto promised = response.headers().get("docker-content-digest")) {
    ATOLL_ASSIGN(std::string digest, image::parse_digest(*promised));
    ATOLL_TRY(check_text(text, digest));
  }
  return text;
}

Result<std::string> RegistryClient::manifest() {
  ATOLL_ASSIGN(std::string text, get_manifest(reference_.selector()));
  if (!reference_.digest.empty()) ATOLL_TRY(check_text(text, reference_.digest));
  return text;
}

Result<std::string> RegistryClient::manifest(const image::Descriptor& wanted) {
  ATOLL_ASSIGN(std::string text, get_manifest("sha256:" + wanted.digest));
  return text;
}

Result<std::string> RegistryClient::document(const image::Descriptor& blob) {
  ATOLL_ASSIGN(http::ResponseStream response, get("/blobs/sha256:" + blob.digest, {}));
  if (!response.ok()) return fail(refused(response, "sha256:" + blob.digest));
  return response.read_all(image::kMaxDocumentBytes);
}

Result<http::ResponseStream> RegistryClient::blob(const image::Descriptor& blob, uint64_t& offset) {
  http::Headers headers;
  if (offset > 0) headers.add("range", fmt::format("bytes={}-", offset));
  ATOLL_ASSIGN(http::ResponseStream response, get("/blobs/sha256:" + blob.digest, headers));
  if (response.status() == 200) {
    offset = 0;
    return response;
  }
  auto range = response.headers().get("content-range");
  if (response.status() == 206 && range && range->starts_with(fmt::format("bytes {}-", offset))) {
    return response;
  }
  return fail(refused(response, "sha256:" + blob.digest));
}

}  // namespace atl::registry
