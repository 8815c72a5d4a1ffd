#include "account/keys.h"

namespace atl::account {

static constexpr std::string_view kKind = "key";

Result<void> Keys::load() {
  ATOLL_ASSIGN(auto documents, store_.load_documents(kKind));
  for (const store::Document& document : documents) {
    auto key = auth::decode_key(document.body);
    if (!key) return fail(std::move(key).error().context("API key " + document.id));
    ring_.add(std::move(*key));
  }
  return {};
}

Task<Result<auth::MintedKey>> Keys::create(auth::KeyRequest request, int64_t now_ms) {
  auth::MintedKey minted = auth::mint_key(std::move(request), now_ms);
  store::Write write;
  write.put_documents.push_back({.kind = std::string(kKind),
                                 .tenant = minted.key.tenant,
                                 .id = minted.key.id,
                                 .body = auth::encode_key(minted.key)});
  ATOLL_CO_TRY(co_await store_.write(std::move(write)));
  ring_.add(minted.key);
  co_return minted;
}

Task<Result<void>> Keys::remove(std::string tenant, std::string id) {
  KeyPtr found;
  for (const KeyPtr& key : ring_.list(tenant)) {
    if (key->id == id) found = key;
  }
  if (found == nullptr) co_return fail(ErrorCode::NotFound, "no API key '" + id + "'");
  store::Write write;
  write.erase_documents.push_back(
      {.kind = std::string(kKind), .tenant = found->tenant, .id = id, .body = {}});
  ATOLL_CO_TRY(co_await store_.write(std::move(write)));
  ring_.remove(id);
  co_return Result<void>();
}

}  // namespace atl::account
