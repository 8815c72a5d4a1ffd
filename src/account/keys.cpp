#include "account/keys.h"

namespace atl::account {

static constexpr std::string_view kKind = "key";
static constexpr std::string_view kBootstrapId = "000000000000";

Result<void> Keys::load() {
  ATOLL_ASSIGN(auto documents, store_.load_documents(kKind));
  for (const store::Document& document : documents) {
    auto key = auth::decode_key(document.body);
    if (!key) return fail(std::move(key).error().context("API key " + document.id));
    ATOLL_TRY(ring_.add(std::move(*key)));
  }
  return {};
}

Result<void> Keys::add_bootstrap(const std::string& text) {
  auth::ApiKey key{.id = std::string(kBootstrapId),
                   .tenant = "default",
                   .name = "the installation's own",
                   .role = auth::Role::Admin};
  return ring_.add_verbatim(std::move(key), text);
}

Task<Result<auth::MintedKey>> Keys::create(auth::KeyRequest request, int64_t now_ms) {
  ATOLL_CO_ASSIGN(auth::MintedKey minted, auth::mint_key(request, now_ms));
  store::Write write;
  write.put_documents.push_back({.kind = std::string(kKind),
                                 .tenant = minted.key.tenant,
                                 .id = minted.key.id,
                                 .body = auth::encode_key(minted.key)});
  ATOLL_CO_TRY(co_await store_.write(std::move(write)));
  ATOLL_CO_TRY(ring_.add(minted.key));
  co_return minted;
}

Task<Result<void>> Keys::remove(std::string tenant, std::string id) {
  KeyPtr found;
  for (const KeyPtr& key : ring_.list(tenant)) {
    if (key->id == id) found = key;
  }
  if (found == nullptr) co_return fail(ErrorCode::NotFound, "no API key '" + id + "'");
  if (id == kBootstrapId) {  // it would be back with the next start
    co_return fail(ErrorCode::Conflict,
                   "this key stands in the server's file api-key; replace it there and restart");
  }
  store::Write write;
  write.erase_documents.push_back(
      {.kind = std::string(kKind), .tenant = found->tenant, .id = id, .body = {}});
  ATOLL_CO_TRY(co_await store_.write(std::move(write)));
  co_return ring_.remove(id);
}

}  // namespace atl::account
