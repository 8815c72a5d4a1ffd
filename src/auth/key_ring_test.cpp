#include "auth/key_ring.h"

#include <gmock/gmock.h>

#include "auth/digest.h"

namespace atl::auth {
namespace {

class Keys : public testing::Test {
 protected:
  MintedKey add(std::string tenant, int64_t created = 1, int64_t expires = 0) {
    MintedKey minted =
        mint_key({.tenant = std::move(tenant), .name = "key", .expires_at_ms = expires}, created)
            .value();
    EXPECT_TRUE(ring_.add(minted.key));
    return minted;
  }
  std::string why(std::string_view presented, int64_t now = 0) const {
    auto found = ring_.find(presented, now);
    if (found) return "";
    EXPECT_EQ(found.error().code(), ErrorCode::Unauthenticated);
    return found.error().message();
  }

  KeyRing ring_;
  const std::string refusal_ = "the API key is not valid";
};

TEST_F(Keys, AreFoundByTheirText) {
  MintedKey a = add("acme"), b = add("other");
  EXPECT_EQ((*ring_.find(a.text, 0))->tenant, "acme");
  EXPECT_EQ((*ring_.find(b.text, 0))->tenant, "other");
}

TEST_F(Keys, UnknownAndWrongAreToldTheSame) {
  MintedKey key = add("acme");
  MintedKey stranger = mint_key({.tenant = "acme", .name = "key"}, 0).value();
  std::string mixed = key.text.substr(0, 22) + stranger.text.substr(22);
  for (const std::string& text :
       {std::string(), std::string("x"), stranger.text, mixed, key.text + "x", key.text.substr(1),
        key.key.id, key.key.secret_hash, std::string(1 << 20, 'x')}) {
    EXPECT_EQ(why(text), refusal_) << text.substr(0, 80);
  }
  for (size_t at = 0; at < key.text.size(); at++) {
    std::string altered = key.text;
    altered[at] = altered[at] == 'A' ? 'B' : 'A';
    EXPECT_EQ(why(altered), refusal_);
  }
}

TEST_F(Keys, OnlyTheOwnerLearnsThatAKeyHasExpired) {
  MintedKey key = add("acme", 1, 1000);
  EXPECT_EQ(why(key.text, 999), "");
  EXPECT_THAT(why(key.text, 1000), testing::HasSubstr("expired"));
  std::string wrong = key.text;
  wrong.back() = wrong.back() == 'A' ? 'B' : 'A';
  EXPECT_EQ(why(wrong, 1000), refusal_);
}

TEST_F(Keys, ARemovedKeyIsUnknownAndLeavesHoldersAlone) {
  MintedKey key = add("acme");
  auto held = ring_.find(key.text, 0).value();
  EXPECT_TRUE(ring_.remove(key.key.id));
  EXPECT_EQ(why(key.text), refusal_);
  EXPECT_EQ(held->tenant, "acme");
  EXPECT_EQ(ring_.remove(key.key.id).error().code(), ErrorCode::NotFound);
  EXPECT_TRUE(ring_.add(key.key)) << "and may come back";
}

TEST_F(Keys, ListsOneTenantOldestFirst) {
  add("acme", 20);
  add("other", 15);
  add("acme", 10);
  auto keys = ring_.list("acme");
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0]->created_at_ms, 10);
  EXPECT_EQ(keys[1]->created_at_ms, 20);
  EXPECT_EQ(ring_.list().size(), 3u);
  EXPECT_TRUE(ring_.list("nobody").empty());
}

TEST_F(Keys, ChosenTextsWorkWhateverTheirForm) {
  ApiKey key{.id = "00000000000a", .tenant = "acme", .name = "bootstrap", .role = Role::Admin};
  std::string own_form = mint_key({.tenant = "acme", .name = "x"}, 0)->text;
  EXPECT_TRUE(ring_.add_verbatim(key, "correct-horse-battery"));
  key.id = "00000000000b";
  EXPECT_TRUE(ring_.add_verbatim(key, own_form)) << "the id within is not the key's";
  EXPECT_EQ((*ring_.find("correct-horse-battery", 0))->role, Role::Admin);
  EXPECT_EQ((*ring_.find(own_form, 0))->id, "00000000000b");
  EXPECT_EQ(why("correct-horse-batterz"), refusal_);
  EXPECT_TRUE(ring_.remove("00000000000a"));
  EXPECT_EQ(why("correct-horse-battery"), refusal_);
}

TEST_F(Keys, WeakChosenTextsAreRefused) {
  ApiKey key{.id = "00000000000a", .tenant = "acme", .name = "bootstrap"};
  for (const std::string& text :
       {std::string(), std::string(15, 'x'), std::string(513, 'x'),
        std::string("correct horse battery"), std::string("correct-horse-battery\n")}) {
    EXPECT_EQ(ring_.add_verbatim(key, text).error().code(), ErrorCode::InvalidArgument) << text;
  }
}

TEST_F(Keys, NothingIsThereTwice) {
  MintedKey key = add("acme");
  EXPECT_EQ(ring_.add(key.key).error().code(), ErrorCode::Conflict);
  ApiKey renamed = key.key;
  renamed.id = "00000000000a";
  EXPECT_EQ(ring_.add(renamed).error().code(), ErrorCode::Conflict);
  EXPECT_EQ(ring_.list().size(), 1u);
  ApiKey broken = key.key;
  broken.id = "x";
  EXPECT_EQ(ring_.add(broken).error().code(), ErrorCode::InvalidArgument);
}

}  // namespace
}  // namespace atl::auth
