// Every sandbox, found by id, by name within its tenant, and by idempotency key; and what the
// sandboxes of each API key add up to.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/sandbox.h"

namespace atl::sandbox {

class Index {
 public:
  // Takes a name before there is a sandbox to go with it; false where it is taken.
  bool reserve_name(const std::string& tenant, const std::string& name);
  void release_name(const std::string& tenant, const std::string& name);

  // The same for what it will take of its key's quota.
  void reserve(const Owner& owner, const Limits& limits) { count(owner, limits, true); }
  void release(const Owner& owner, const Limits& limits) { count(owner, limits, false); }
  void add(const SandboxPtr& sandbox);
  void remove(const Sandbox& sandbox);
  bool contains(const std::string& id) const { return by_id_.contains(id); }
  size_t size() const { return by_id_.size(); }

  SandboxPtr find(const std::string& id) const;
  SandboxPtr find(const Caller& caller, const std::string& id_or_name) const;
  SandboxPtr find_by_key(const std::string& tenant, const std::string& idempotency_key) const;
  std::vector<SandboxPtr> list(const Caller& caller) const;  // oldest first
  const std::map<std::string, SandboxPtr>& all() const { return by_id_; }

  auth::Quota used(const std::string& key_id) const;
  void change_limits(Sandbox& sandbox, const Limits& limits);

 private:
  using Scoped = std::pair<std::string, std::string>;  // tenant, name or key
  void count(const Owner& owner, const Limits& limits, bool added);

  std::map<std::string, SandboxPtr> by_id_;
  std::map<Scoped, std::string> id_by_name_;  // empty id: a creation under way
  std::map<Scoped, std::string> id_by_key_;
  std::map<std::string, auth::Quota> used_;  // by API key
};

}  // namespace atl::sandbox
