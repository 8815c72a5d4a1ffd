// What templates and sandboxes have to do with each other.
#include "sandbox/manager.h"

namespace atl::sandbox {

Result<FoundTemplate> Manager::template_of(const Record& record) const {
  const std::string& key = record.template_key;
  return backend_.find_template(key.empty() ? record.spec.template_name : key);
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

size_t Manager::users_of_template(const std::string& key) const {
  auto coming = template_under_way_.find(key);
  size_t users = coming == template_under_way_.end() ? 0 : coming->second;
  for (const SandboxPtr& sandbox : index_.list(Caller{.all_tenants = true})) {
    const Record& record = sandbox->record;
    // One from before there were versions has the first.
    users += key ==
             (record.template_key.empty() ? record.spec.template_name + "@1" : record.template_key);
  }
  return users;
}

Task<Result<void>> Manager::template_removed(std::string key) {
  pool_->retire(key);
  std::erase_if(followed_, [&](const auto& item) { return item.second.key == key; });
  co_return co_await collect_templates();
}

Task<Result<void>> Manager::collect_templates() {
  std::vector<std::string> contents;
  for (const SandboxPtr& sandbox : index_.list(Caller{.all_tenants = true})) {
    contents.push_back(sandbox->record.template_contents);
  }
  for (const auto& [name, followed] : followed_) contents.push_back(followed.contents);
  return backend_.collect_templates(std::move(contents));
}

}  // namespace atl::sandbox
