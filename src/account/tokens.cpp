#include "account/tokens.h"

namespace atl::account {

static constexpr int64_t kRefreshMs = 15 * 60'000;

Tokens::Tokens(const auth::MasterKey& master)
    : signing_(auth::SigningKey::from_seed(master.derive(auth::kTokenSigningLabel))),
      runtime_key_(master.derive(auth::kRuntimeTokenLabel)) {
  verifying_.add(signing_.verify_key());
}

Result<auth::MintedToken> Tokens::refresh(std::string_view token, const std::string& sandbox,
                                          const std::string& generation, int64_t now_ms) const {
  auto old = auth::verify_scoped_token(token, verifying_, now_ms, kRefreshMs);
  if (!old) return fail(std::move(old).error());
  ATOLL_TRY(old->check_target(sandbox, generation));
  auth::ScopedTokenRequest request{
      .tenant = old->tenant,
      .sandbox = sandbox,
      .generation = generation,
      .scope = old->scope,
      .session = old->session,
      .ttl_minutes = (old->expires_at_ms - old->issued_at_ms) / 60'000};
  return mint(request, now_ms);
}

}  // namespace atl::account
