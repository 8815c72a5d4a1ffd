#include "egress/authority.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cstring>

namespace atl::egress {
namespace {

constexpr size_t kMostLeaves = 256;
constexpr long kDay = 86'400;
constexpr long kAuthorityDays = 3650;
constexpr long kLeafDays = 30;  // contexts live as long as this process at most

template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Number = std::unique_ptr<BIGNUM, Free<BN_clear_free>>;

tl::unexpected<Error> broken(std::string_view what) {
  return fail(ErrorCode::Internal, std::string(what) + ": " + http::openssl_reason());
}

// A private key of P-256 from 32 bytes: reduced to [1, n-1], its point computed.
Result<Key> key_from(std::string_view seed) {
  std::unique_ptr<EC_GROUP, Free<EC_GROUP_free>> group(
      EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1));
  std::unique_ptr<BN_CTX, Free<BN_CTX_free>> scratch(BN_CTX_new());
  Number value(BN_bin2bn(reinterpret_cast<const unsigned char*>(seed.data()),
                         static_cast<int>(seed.size()), nullptr));
  Number limit(BN_dup(EC_GROUP_get0_order(group.get())));
  if (!group || !value || !limit || !scratch || seed.size() != 32) return broken("a key's seed");
  BN_sub_word(limit.get(), 1);
  BN_mod(value.get(), value.get(), limit.get(), scratch.get());
  BN_add_word(value.get(), 1);
  std::unique_ptr<EC_POINT, Free<EC_POINT_free>> point(EC_POINT_new(group.get()));
  EC_POINT_mul(group.get(), point.get(), value.get(), nullptr, nullptr, scratch.get());
  unsigned char encoded[65];
  size_t size = EC_POINT_point2oct(group.get(), point.get(), POINT_CONVERSION_UNCOMPRESSED, encoded,
                                   sizeof encoded, scratch.get());
  std::unique_ptr<OSSL_PARAM_BLD, Free<OSSL_PARAM_BLD_free>> builder(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0);
  OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, encoded, size);
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_PRIV_KEY, value.get());
  std::unique_ptr<OSSL_PARAM, Free<OSSL_PARAM_free>> parameters(
      OSSL_PARAM_BLD_to_param(builder.get()));
  std::unique_ptr<EVP_PKEY_CTX, Free<EVP_PKEY_CTX_free>> context(
      EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* key = nullptr;
  if (EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_KEYPAIR, parameters.get()) != 1) {
    return broken("a sandbox's key");
  }
  return Key(key);
}

Result<Certificate> blank_certificate(EVP_PKEY* key, const std::string& name, long days) {
  Certificate certificate(X509_new());
  unsigned char serial[16];
  RAND_bytes(serial, sizeof serial);
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7f) | 0x40);
  Number number(BN_bin2bn(serial, sizeof serial, nullptr));
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate.get()));
  X509_set_version(certificate.get(), X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), days * kDay);
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  // A common name has at most 64 bytes; the name that counts is the alternative one.
  std::string shown = name.substr(0, 64);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(shown.c_str()), -1, -1, 0);
  if (X509_set_pubkey(certificate.get(), key) != 1) return broken("a certificate");
  return certificate;
}

Result<void> extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return broken("a certificate's extension");
  }
  return {};
}

std::string constraints(const std::vector<std::string>& domains) {
  std::string text;
  for (std::string_view domain : domains) {
    if (domain == "*") return "";
    if (domain.starts_with("*.")) domain.remove_prefix(2);
    text += (text.empty() ? "critical,permitted;DNS:" : ",permitted;DNS:") + std::string(domain);
  }
  return text;
}

Result<std::string> to_pem(X509* certificate) {
  std::unique_ptr<BIO, Free<BIO_free_all>> out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(out.get(), certificate) != 1) return broken("a certificate");
  char* text = nullptr;
  long size = BIO_get_mem_data(out.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

int choose_http1(SSL*, const unsigned char** out, unsigned char* out_size,
                 const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr unsigned char kOurs[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  int found =
      SSL_select_next_proto(&chosen, out_size, kOurs, sizeof kOurs - 1, offered, offered_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

}  // namespace

struct Authority::Keys {
  Key authority;
  Certificate certificate;
  Key leaf;  // one for all names: they are all ours
};

Authority::Authority(std::unique_ptr<Keys> keys) : keys_(std::move(keys)) {}
Authority::~Authority() = default;

Result<std::unique_ptr<Authority>> Authority::create(std::string_view seed,
                                                     const std::vector<std::string>& domains) {
  auto keys = std::make_unique<Keys>();
  ATOLL_ASSIGN(keys->authority, key_from(seed));
  ATOLL_ASSIGN(keys->certificate,
               blank_certificate(keys->authority.get(), "Atoll sandbox egress", kAuthorityDays));
  X509* certificate = keys->certificate.get();
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  ATOLL_TRY(extend(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  ATOLL_TRY(extend(certificate, certificate, NID_key_usage, "critical,keyCertSign"));
  ATOLL_TRY(extend(certificate, certificate, NID_subject_key_identifier, "hash"));
  std::string permitted = constraints(domains);
  if (!permitted.empty()) {
    ATOLL_TRY(extend(certificate, certificate, NID_name_constraints, permitted));
  }
  if (X509_sign(certificate, keys->authority.get(), EVP_sha256()) == 0) return broken("signing");
  keys->leaf.reset(EVP_EC_gen("P-256"));
  if (!keys->leaf) return broken("a key");
  std::unique_ptr<Authority> made(new Authority(std::move(keys)));
  ATOLL_ASSIGN(made->pem_, to_pem(certificate));
  return made;
}

Result<http::SslContext> Authority::make_context(const std::string& name) {
  ATOLL_ASSIGN(Certificate leaf, blank_certificate(keys_->leaf.get(), name, kLeafDays));
  X509* issuer = keys_->certificate.get();
  X509_set_issuer_name(leaf.get(), X509_get_subject_name(issuer));
  ATOLL_TRY(extend(leaf.get(), issuer, NID_basic_constraints, "critical,CA:FALSE"));
  ATOLL_TRY(extend(leaf.get(), issuer, NID_key_usage, "critical,digitalSignature"));
  ATOLL_TRY(extend(leaf.get(), issuer, NID_ext_key_usage, "serverAuth"));
  ATOLL_TRY(extend(leaf.get(), issuer, NID_authority_key_identifier, "keyid:always"));
  ATOLL_TRY(extend(leaf.get(), issuer, NID_subject_alt_name, "DNS:" + name));
  if (X509_sign(leaf.get(), keys_->authority.get(), EVP_sha256()) == 0) return broken("signing");
  http::SslContext context(SSL_CTX_new(TLS_server_method()));
  if (!context) return broken("TLS");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_read_ahead(context.get(), 1);
  SSL_CTX_set_alpn_select_cb(context.get(), choose_http1, nullptr);
  if (SSL_CTX_use_certificate(context.get(), leaf.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), keys_->leaf.get()) != 1) {
    return broken("a leaf certificate");
  }
  return context;
}

Result<ssl_ctx_st*> Authority::context_for(const std::string& name) {
  auto found = by_name_.find(name);
  if (found != by_name_.end()) {
    recent_.splice(recent_.begin(), recent_, found->second);
    return recent_.front().context.get();
  }
  ATOLL_ASSIGN(http::SslContext context, make_context(name));
  recent_.push_front({name, std::move(context)});
  by_name_[name] = recent_.begin();
  if (recent_.size() > kMostLeaves) {
    by_name_.erase(recent_.back().name);
    recent_.pop_back();
  }
  return recent_.front().context.get();
}

}  // namespace atl::egress
