#include "account/secrets.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/base64url.h"

namespace atl::account {

namespace json = boost::json;

static constexpr std::string_view kKind = "secret";
static constexpr size_t kMaxValue = 64u << 10;
static constexpr size_t kMaxSecrets = 1000;  // of a tenant

namespace {

// They become environment variables.
bool is_valid_name(std::string_view name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto plain = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= 128 && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), plain);
}

tl::unexpected<Error> bad(std::string_view field, std::string message) {
  return fail(Error(ErrorCode::InvalidArgument, std::move(message)).with_field(field));
}

tl::unexpected<Error> missing(const std::string& name, std::string_view field) {
  return fail(
      Error(ErrorCode::NotFound, "no secret '" + name + "'; set it first").with_field(field));
}

}  // namespace

Result<void> Secrets::load() {
  ATOLL_ASSIGN(auto documents, store_.load_documents(kKind));
  for (const store::Document& document : documents) {
    try {
      json::value parsed = json::parse(document.body);
      const json::object& object = parsed.as_object();
      SecretInfo info{.tenant = document.tenant,
                      .name = document.id,
                      .created_at_ms = object.at("createdAtMs").to_number<int64_t>(),
                      .updated_at_ms = object.at("updatedAtMs").to_number<int64_t>()};
      auto box = base64url_decode(std::string_view(object.at("box").as_string()));
      if (!box) return fail(ErrorCode::Internal, "damaged secret " + document.id);
      sealed_[{document.tenant, document.id}] = {std::move(info), std::move(*box)};
    } catch (const std::exception& error) {
      return fail(ErrorCode::Internal, "damaged secret " + document.id + ": " + error.what());
    }
  }
  return {};
}

std::vector<SecretInfo> Secrets::list(const std::string& tenant) const {
  std::vector<SecretInfo> list;
  for (const auto& [place, secret] : sealed_) {
    if (place.first == tenant) list.push_back(secret.info);
  }
  return list;
}

Result<SecretInfo> Secrets::info(const std::string& tenant, const std::string& name) const {
  auto it = sealed_.find({tenant, name});
  if (it == sealed_.end()) return missing(name, "name");
  return it->second.info;
}

Task<Result<SecretInfo>> Secrets::put(std::string tenant, std::string name, std::string value,
                                      Mode mode, int64_t now_ms) {
  if (!is_valid_name(name)) {
    co_return bad("name", "a secret's name is 1 to 128 letters, digits and '_', no digit first");
  }
  if (value.size() > kMaxValue || value.find('\0') != value.npos) {
    co_return bad("value", "a secret has at most 65536 bytes and no NUL byte");
  }
  auto known = sealed_.find({tenant, name});
  bool exists = known != sealed_.end();
  if (mode == Mode::Create && exists) {
    co_return fail(Error(ErrorCode::Conflict, "the secret '" + name + "' exists; update it")
                       .with_field("name"));
  }
  if (mode == Mode::Update && !exists) co_return missing(name, "name");
  if (!exists && list(tenant).size() >= kMaxSecrets) {
    co_return fail(ErrorCode::ResourceExhausted, "a tenant has at most 1000 secrets");
  }
  Sealed next{.info = {.tenant = tenant, .name = name, .created_at_ms = now_ms}};
  ATOLL_CO_ASSIGN(next.box, box_.seal(value, {.tenant = tenant, .name = name}));
  OPENSSL_cleanse(value.data(), value.size());
  if (exists) next.info.created_at_ms = known->second.info.created_at_ms;
  next.info.updated_at_ms = now_ms;
  json::object body{{"createdAtMs", next.info.created_at_ms},
                    {"updatedAtMs", next.info.updated_at_ms},
                    {"box", base64url_encode(next.box)}};
  store::Write write;
  write.put_documents.push_back(
      {.kind = std::string(kKind), .tenant = tenant, .id = name, .body = json::serialize(body)});
  ATOLL_CO_TRY(co_await store_.write(std::move(write)));
  SecretInfo info = next.info;
  sealed_[{tenant, name}] = std::move(next);
  co_return info;
}

Task<Result<void>> Secrets::remove(std::string tenant, std::string name) {
  if (!sealed_.contains({tenant, name})) co_return missing(name, "name");
  store::Write write;
  write.erase_documents.push_back(
      {.kind = std::string(kKind), .tenant = tenant, .id = name, .body = {}});
  ATOLL_CO_TRY(co_await store_.write(std::move(write)));
  sealed_.erase({tenant, name});
  co_return Result<void>();
}

Result<std::map<std::string, std::string>> Secrets::open(
    const std::string& tenant, const std::vector<std::string>& names) const {
  std::map<std::string, std::string> values;
  for (const std::string& name : names) {
    auto it = sealed_.find({tenant, name});
    if (it == sealed_.end()) return missing(name, "secrets");
    ATOLL_ASSIGN(auto value, box_.open(it->second.box, {.tenant = tenant, .name = name}));
    values[name] = value.text();
  }
  return values;
}

Result<std::map<std::string, std::string>> Secrets::open_all(const std::string& tenant) const {
  std::vector<std::string> names;
  for (const SecretInfo& info : list(tenant)) names.push_back(info.name);
  return open(tenant, names);
}

}  // namespace atl::account
