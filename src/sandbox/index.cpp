#include "sandbox/index.h"

#include <algorithm>

namespace atl::sandbox {

bool Index::reserve_name(const std::string& tenant, const std::string& name) {
  if (by_id_.contains(name)) return false;
  return id_by_name_.try_emplace({tenant, name}).second;
}

void Index::release_name(const std::string& tenant, const std::string& name) {
  id_by_name_.erase({tenant, name});
}

void Index::add(const SandboxPtr& sandbox) {
  const Record& record = sandbox->record;
  by_id_[record.id] = sandbox;
  const std::string& tenant = record.owner.tenant;
  if (!record.spec.name.empty()) id_by_name_[{tenant, record.spec.name}] = record.id;
  if (!record.spec.idempotency_key.empty()) {
    id_by_key_[{tenant, record.spec.idempotency_key}] = record.id;
  }
  count(record.owner, record.spec.limits, true);
}

void Index::remove(const Sandbox& sandbox) {
  const Record& record = sandbox.record;
  if (by_id_.erase(record.id) == 0) return;
  const std::string& tenant = record.owner.tenant;
  if (!record.spec.name.empty()) id_by_name_.erase({tenant, record.spec.name});
  if (!record.spec.idempotency_key.empty()) {
    id_by_key_.erase({tenant, record.spec.idempotency_key});
  }
  count(record.owner, record.spec.limits, false);
}

SandboxPtr Index::find(const std::string& id) const {
  auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second;
}

SandboxPtr Index::find(const Caller& caller, const std::string& id_or_name) const {
  auto named = id_by_name_.find({caller.owner.tenant, id_or_name});
  SandboxPtr found = find(named == id_by_name_.end() ? id_or_name : named->second);
  return found != nullptr && caller.may_see(found->record) ? found : nullptr;
}

SandboxPtr Index::find_by_key(const std::string& tenant, const std::string& key) const {
  auto it = id_by_key_.find({tenant, key});
  return it == id_by_key_.end() ? nullptr : find(it->second);
}

std::vector<SandboxPtr> Index::list(const Caller& caller) const {
  std::vector<SandboxPtr> visible;
  for (const auto& [id, sandbox] : by_id_) {
    if (caller.may_see(sandbox->record)) visible.push_back(sandbox);
  }
  std::sort(visible.begin(), visible.end(), [](const SandboxPtr& a, const SandboxPtr& b) {
    return a->record.created_at_ms < b->record.created_at_ms;
  });
  return visible;
}

auth::Quota Index::used(const std::string& key_id) const {
  auto it = used_.find(key_id);
  return it == used_.end() ? auth::Quota{} : it->second;
}

void Index::change_limits(Sandbox& sandbox, const Limits& limits) {
  count(sandbox.record.owner, sandbox.record.spec.limits, false);
  sandbox.record.spec.limits = limits;
  count(sandbox.record.owner, limits, true);
}

void Index::count(const Owner& owner, const Limits& limits, bool added) {
  if (owner.key_id.empty()) return;
  auth::Quota& total = used_[owner.key_id];
  auth::Quota one = demand(limits);
  auto apply = [added](auto& sum, auto part) { sum = added ? sum + part : sum - part; };
  apply(total.sandboxes, one.sandboxes);
  apply(total.cpu_millis, one.cpu_millis);
  apply(total.memory_bytes, one.memory_bytes);
  apply(total.disk_bytes, one.disk_bytes);
  if (total.sandboxes == 0) used_.erase(owner.key_id);
}

}  // namespace atl::sandbox
