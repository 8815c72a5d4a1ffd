#include "auth/api_key.h"

#include <gmock/gmock.h>

#include <limits>

#include "auth/digest.h"
#include "base/base64url.h"

namespace atl::auth {
namespace {

const KeyRequest kRequest{.tenant = "acme",
                          .name = "ci \xC3\xA9 \"x\"",
                          .role = Role::ReadOnly,
                          .quota = {3, 1500, 1ull << 40, 7},
                          .rate_per_s = 20,
                          .expires_at_ms = 99};

TEST(ApiKey, TextCarriesTheIdAndThirtyTwoRandomBytes) {
  MintedKey minted = mint_key(kRequest, 5).value();
  EXPECT_EQ(minted.key.id.size(), 12u);
  EXPECT_TRUE(minted.text.starts_with("sk-atoll-" + minted.key.id + "-"));
  EXPECT_EQ(base64url_decode(minted.text.substr(22))->size(), 32u);
  EXPECT_EQ(id_in_key(minted.text), minted.key.id);
  EXPECT_EQ(minted.key.secret_hash, sha256_hex(minted.text));
  EXPECT_EQ(minted.key.created_at_ms, 5);
  EXPECT_NE(mint_key(kRequest, 5)->text, minted.text);
}

TEST(ApiKey, RecordsReadBackAndHoldNoSecret) {
  MintedKey minted = mint_key(kRequest, 5).value();
  std::string record = encode_key(minted.key);
  EXPECT_EQ(record.find(minted.text.substr(22)), std::string::npos);
  auto back = decode_key(record);
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(*back, minted.key);
}

TEST(ApiKey, IdsAreTakenOnlyFromTextsOfOurForm) {
  std::string text = mint_key(kRequest, 0)->text;
  EXPECT_EQ(id_in_key(""), "");
  EXPECT_EQ(id_in_key(text + "x"), "");
  EXPECT_EQ(id_in_key(text.substr(1)), "");
  EXPECT_EQ(id_in_key("SK" + text.substr(2)), "");
  EXPECT_EQ(id_in_key("sk-atoll-XXXXXXXXXXXX" + text.substr(21)), "");
  EXPECT_EQ(id_in_key(text.replace(21, 1, "_")), "");
}

std::string field_at_fault(std::string record, std::string_view from, std::string_view to) {
  size_t at = record.find(from);
  if (at == record.npos) return "no such text";
  auto key = decode_key(record.replace(at, from.size(), to));
  return key ? "accepted" : key.error().field();
}

TEST(ApiKey, StrangeRecordsAreRefused) {
  ApiKey key = mint_key({.tenant = "acme", .name = "ci", .role = Role::Admin}, 5)->key;
  std::string record = encode_key(key);
  EXPECT_EQ(field_at_fault(record, "\"admin\"", "\"root\""), "role");
  EXPECT_EQ(field_at_fault(record, "\"acme\"", "\"../x\""), "tenant");
  EXPECT_EQ(field_at_fault(record, "\"ci\"", "\"a\\nb\""), "name");
  EXPECT_EQ(field_at_fault(record, "\"ci\"", "\"\""), "name");
  EXPECT_EQ(field_at_fault(record, key.id, "0123456789AB"), "id");
  EXPECT_EQ(field_at_fault(record, key.secret_hash, "00"), "secretHash");
  EXPECT_EQ(field_at_fault(record, "\"ratePerSecond\":0", "\"ratePerSecond\":-1"), "ratePerSecond");
  EXPECT_EQ(field_at_fault(record, "\"expiresAt\":0", "\"expiresAt\":1e9"), "expiresAt");
  EXPECT_EQ(field_at_fault(record, "\"cpuMillis\":0", "\"cpuMillis\":4294967296"),
            "quota.cpuMillis");
  EXPECT_EQ(field_at_fault(record, "\"cpuMillis\":0", "\"cpuMillis\":0,\"gpus\":1"), "quota.gpus");
  EXPECT_EQ(field_at_fault(record, "{\"id\"", "{\"admin\":true,\"id\""), "admin");
  EXPECT_EQ(field_at_fault(record, "{\"id\"", "{\"name\":\"x\",\"id\""), "name");
  EXPECT_FALSE(decode_key(""));
  EXPECT_FALSE(decode_key("[]"));
}

TEST(ApiKey, OnlyWhatCanBeStoredIsMinted) {
  EXPECT_EQ(mint_key({.tenant = "", .name = "x"}, 0).error().field(), "tenant");
  EXPECT_EQ(mint_key({.tenant = "a", .name = std::string(129, 'x')}, 0).error().field(), "name");
  EXPECT_EQ(mint_key({.tenant = "a", .name = "\xFF"}, 0).error().field(), "name");
  EXPECT_EQ(mint_key({.tenant = "a", .name = "x", .expires_at_ms = -1}, 0).error().field(),
            "expiresAt");
  Quota huge{.disk_bytes = std::numeric_limits<uint64_t>::max()};
  EXPECT_EQ(mint_key({.tenant = "a", .name = "x", .quota = huge}, 0).error().field(), "quota");
}

TEST(Role, NamesReadBack) {
  for (Role role : {Role::Admin, Role::Member, Role::ReadOnly}) {
    EXPECT_EQ(parse_role(to_string(role)), role);
  }
  EXPECT_FALSE(parse_role("Admin"));
}

}  // namespace
}  // namespace atl::auth
