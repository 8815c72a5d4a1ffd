#include "account/tokens.h"

namespace atl::account {

static constexpr int64_t kRefreshMs = 15 * 60'000;
static constexpr int64_t kCenturyMs = int64_t{100} * 365 * 86'400'000;

Tokens::Tokens(const auth::MasterKey& master)
    : signing_(auth::SigningKey::from_seed(master.derive(auth::kTokenSigningLabel))),
      runtime_key_(master.derive(auth::kRuntimeTokenLabel)),
      preview_key_(master.derive(auth::kPreviewLabel)) {
  verifying_.add(signing_.verify_key());
}

bool Tokens::is_own_credential(std::string_view text, int64_t now_ms) const {
  for (std::string_view prefix : {"sk-atoll-", "e2b_736b2d61746f6c6c2d", "rt-", "tt-"}) {
    if (text.starts_with(prefix)) return true;
  }
  if (auth::link_of_preview_token(text)) return true;
  // Others' tokens have this form too: ours are those that we have signed.
  return auth::verify_scoped_token(text, verifying_, now_ms, kCenturyMs).has_value();
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
