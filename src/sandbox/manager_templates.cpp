// What templates and sandboxes have to do with each other.
#include "sandbox/manager.h"

namespace atl::sandbox {

// One whose template is gone goes on with what the backend remembers.
FoundTemplate Manager::template_of(const Record& record) const {
  const std::string& key = record.template_key;
  auto found = backend_.find_template(key.empty() ? record.spec.template_name : key);
  if (found) return *found;
  FoundTemplate gone;
  gone.key = key.empty() ? record.spec.template_name : key;
  return gone;
}

Result<FoundTemplate> Manager::template_for(const Spec& spec, const std::optional<Origin>& origin) {
  if (origin) {
    Record source;
    source.spec.template_name = spec.template_name;
    source.template_key = origin->template_key;
    return template_of(source);
  }
  ATOLL_ASSIGN(FoundTemplate found, backend_.find_template(spec.template_name));
  follow_template(spec.template_name, found);
  return found;
}

void Manager::warm_pool() {
  auto found = backend_.find_template("base");
  if (found) follow_template("base", *found);
  pool_->warm(found ? found->key : "base");
}

// A name that stands for something else now leaves blank sandboxes behind that nobody will take.
void Manager::follow_template(const std::string& name, const FoundTemplate& found) {
  FoundTemplate& before = followed_[name];
  if (before.key == found.key && before.contents == found.contents) return;
  if (!before.key.empty()) pool_->retire(before.key);
  before = found;
}

// One from before there were versions has the first.
static std::string key_of(const Record& record) {
  return record.template_key.empty() ? record.spec.template_name + "@1" : record.template_key;
}

size_t Manager::users_of_template(const std::string& key) const {
  auto coming = template_under_way_.find(key);
  size_t users = coming == template_under_way_.end() ? 0 : coming->second;
  Caller everybody{.all_tenants = true};
  for (const SandboxPtr& sandbox : index_.list(everybody)) users += key_of(sandbox->record) == key;
  for (const auto& snapshot : snapshots_.list(everybody, "")) {
    users += key_of(snapshot->source) == key;
  }
  return users;
}

Task<Result<void>> Manager::template_removed(std::string key) {
  pool_->retire(key);
  std::erase_if(followed_, [&](const auto& item) { return item.second.key == key; });
  co_return co_await collect_templates();
}

Task<Result<void>> Manager::collect_templates() {
  Caller everybody{.all_tenants = true};
  std::vector<SandboxBackend::BackendState> in_use;
  for (const auto& sandbox : index_.list(everybody))
    in_use.push_back(sandbox->record.backend_state);
  for (const auto& snapshot : snapshots_.list(everybody, "")) {
    in_use.push_back(snapshot->source.backend_state);
  }
  return backend_.collect_templates(std::move(in_use));
}

}  // namespace atl::sandbox
