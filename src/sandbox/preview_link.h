// Links to sandboxes' ports: who may open what, until when.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atoll/result.h"
#include "store/store.h"

namespace atl::sandbox {

enum class LinkAccess : uint8_t {
  Private,  // with a credential of the sandbox's, or a token that was made for the link just now
  Public,   // anybody
  Signed,   // whoever has the URL, until it expires
};
std::string_view to_string(LinkAccess access);
std::optional<LinkAccess> parse_link_access(std::string_view text);

struct PreviewLink {
  std::string id;
  std::string tenant;
  std::string sandbox;
  std::string generation;  // of the sandbox
  uint16_t port = 0;
  LinkAccess access = LinkAccess::Private;
  int64_t created_at_ms = 0;
  int64_t expires_at_ms = 0;  // 0: never

  bool expired(int64_t now_ms) const { return expires_at_ms != 0 && expires_at_ms <= now_ms; }
};

// All links of this server. Knows nothing of who asks; the manager writes what changes.
class PreviewLinks {
 public:
  static constexpr std::string_view kKind = "preview";  // of their documents
  static constexpr size_t kMostOfSandbox = 256;

  Result<void> load(const std::vector<store::Document>& documents);
  void add(PreviewLink link);
  void remove(const std::string& id);

  const PreviewLink* find(const std::string& id) const;
  std::vector<const PreviewLink*> of(const std::string& sandbox) const;  // oldest first
  const std::map<std::string, PreviewLink>& all() const { return links_; }
  bool is_public(const std::string& sandbox, uint16_t port, int64_t now_ms) const;

  static store::Document document(const PreviewLink& link);

 private:
  std::map<std::string, PreviewLink> links_;                    // by id
  std::map<std::string, std::vector<std::string>> of_sandbox_;  // ids, oldest first
};

}  // namespace atl::sandbox
