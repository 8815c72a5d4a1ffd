// What sandboxes may reach.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/log.h"
#include "egress/policy.h"
#include "egress/policy_json.h"
#include "sandbox/manager.h"

namespace atl::sandbox {
namespace {

constexpr const char* kBundle = "/etc/ssl/certs/ca-certificates.crt";
constexpr const char* kOwnCertificate = "/usr/local/share/ca-certificates/atoll-egress.crt";
constexpr std::string_view kBegin = "# Atoll: whom this sandbox trusts for hosts with rules\n";
constexpr std::string_view kEnd = "# Atoll: end\n";
constexpr uint64_t kMostBundle = 4u << 20;

bool denies_all(const NetworkPolicy& policy) { return policy.mode == NetworkPolicy::Mode::DenyAll; }

constexpr const char* kRoot = "root";  // whoever the sandbox's commands run as

Task<Result<void>> write_text(SandboxSession& session, std::string path, std::string text) {
  WriteOptions options{.mode = 0, .user = kRoot};
  ATOLL_CO_ASSIGN(auto writer, co_await session.write_file(std::move(path), std::move(options)));
  ATOLL_CO_TRY(co_await writer->write(text));
  ATOLL_CO_TRY(co_await writer->finish());
  co_return Result<void>();
}

// What was added before goes.
void remove_block(std::string& bundle) {
  size_t begin = bundle.find(kBegin);
  size_t end = begin == bundle.npos ? begin : bundle.find(kEnd, begin);
  if (end != bundle.npos) bundle.erase(begin, end + kEnd.size() - begin);
}

}  // namespace

// Programs that bring their own list of authorities are told of ours; those that want a key to be
// there find something that is not one.
void Manager::add_network_env(const NetworkPolicy& policy, CreateInput& input) const {
  if (!egress::has_rules(policy)) return;
  for (const char* name :
       {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT",
        "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "DENO_CERT"}) {
    input.env.emplace(name, kBundle);
  }
  input.env.emplace("NODE_EXTRA_CA_CERTS", kOwnCertificate);
  for (const std::string& name : egress::secret_names(policy)) {
    input.env.emplace(name, "atoll-secret-" + name);
  }
}

Task<Result<void>> Manager::apply_network(Sandbox& sandbox, Missing missing) {
  const Record& record = sandbox.record;
  const NetworkPolicy& policy = record.spec.network;
  if (sandbox.handle == nullptr) co_return Result<void>();
  auto handle = sandbox.handle;
  NetworkRules rules{.policy = {}, .deny_all = denies_all(policy), .secrets = {}, .ca_seed = {}};
  rules.policy = egress::write_policy(policy);
  std::vector<std::string> names = egress::secret_names(policy);
  if (!names.empty() && network_.secrets) {
    rules.secrets = network_.secrets(record.owner.tenant, names);
  }
  for (const std::string& name : names) {
    if (missing == Missing::Accept || rules.secrets.contains(name)) continue;
    co_return fail(Error(ErrorCode::InvalidArgument, "the policy names the secret " + name +
                                                         ", which does not exist; set it "
                                                         "first")
                       .with_field("network"));
  }
  if (egress::has_rules(policy) && network_.seed) {
    rules.ca_seed = network_.seed("egress-ca/" + record.id + "/" + record.generation);
  }
  ATOLL_CO_ASSIGN(NetworkHolds holds, co_await handle->set_network(std::move(rules)));
  if (record.status == Status::Paused) co_return Result<void>();  // nothing inside can answer
  co_return co_await prepare_inside(sandbox, std::move(holds));
}

Task<Result<void>> Manager::prepare_inside(Sandbox& sandbox, NetworkHolds holds) {
  SandboxSession& session = sandbox.handle->session();
  if (holds.certificate.empty() || holds.certificate == sandbox.trusted_ca) {
    co_return Result<void>();
  }
  ATOLL_CO_TRY(co_await trust_inside(session, holds.certificate));
  sandbox.trusted_ca = std::move(holds.certificate);
  co_return Result<void>();
}

// In the bundle that is, and where update-ca-certificates finds it when it makes the next.
Task<Result<void>> Manager::trust_inside(SandboxSession& session, const std::string& certificate) {
  ATOLL_CO_TRY(co_await session.make_directory("/usr/local/share/ca-certificates", true, kRoot));
  ATOLL_CO_TRY(co_await write_text(session, kOwnCertificate, certificate));
  std::string bundle;
  auto reader = co_await session.read_file(kBundle, ReadOptions{.limit = kMostBundle});
  while (reader) {
    ATOLL_CO_ASSIGN(std::string_view part, co_await (*reader)->read());
    if (part.empty()) break;
    bundle.append(part);
  }
  remove_block(bundle);
  if (!bundle.empty() && !bundle.ends_with('\n')) bundle.push_back('\n');
  bundle.append(kBegin).append(certificate).append(kEnd);
  ATOLL_CO_TRY(co_await session.make_directory("/etc/ssl/certs", true, kRoot));
  co_return co_await write_text(session, kBundle, std::move(bundle));
}

Task<Result<void>> Manager::set_network(SandboxPtr sandbox, NetworkPolicy policy,
                                        std::optional<Ingress> ingress) {
  auto lock = co_await sandbox->lifecycle.lock();
  if (sandbox->deleted) co_return fail(ErrorCode::NotFound, "the sandbox has been deleted");
  Record& record = sandbox->record;
  Record before = record;
  record.spec.network = std::move(policy);
  if (ingress) record.spec.ingress = std::move(*ingress);
  auto applied = co_await apply_network(*sandbox, Missing::Refuse);
  bool env_changes =
      egress::has_rules(record.spec.network) || egress::has_rules(before.spec.network);
  bool running = sandbox->handle != nullptr && record.status == Status::Running;
  if (applied && env_changes && running) {
    auto input = input_for(record.id, record.owner, record.spec, template_of(record));
    if (!input) {
      applied = fail(std::move(input).error());
    } else {
      sandbox->handle->assign(std::move(*input));
      applied = co_await sandbox->handle->ready();
    }
  }
  if (applied) applied = co_await save(*sandbox, "sandbox.updated");
  if (applied) co_return applied;
  // What cannot be kept has not happened.
  record = std::move(before);
  (void)co_await apply_network(*sandbox, Missing::Accept);
  co_return applied;
}

Task<void> Manager::secret_changed(std::string tenant, std::string name) {
  auto self = shared_from_this();
  std::vector<SandboxPtr> concerned;
  for (const auto& [id, sandbox] : index_.all()) {
    if (sandbox->record.owner.tenant != tenant || sandbox->handle == nullptr) continue;
    auto names = egress::secret_names(sandbox->record.spec.network);
    if (std::find(names.begin(), names.end(), name) != names.end()) concerned.push_back(sandbox);
  }
  for (const SandboxPtr& sandbox : concerned) {
    auto lock = co_await sandbox->lifecycle.lock();
    auto applied = co_await apply_network(*sandbox, Missing::Accept);
    if (applied) continue;
    log(LogLevel::Error, "a sandbox does not have the new value of a secret",
        {{"sandbox", sandbox->record.id}, {"error", applied.error().message()}});
  }
}

void Manager::note_traffic(const std::string& id, std::vector<NetworkEntry> entries) {
  SandboxPtr sandbox = index_.find(id);
  if (sandbox == nullptr) return;
  std::vector<std::string> news;
  for (NetworkEntry& entry : entries) {
    const NetworkEntry& added = sandbox->network_log.add(std::move(entry));
    if (added.allowed || !sandbox->network_log.is_news(added)) continue;
    boost::json::object data{{"sandboxId", id},       {"protocol", added.protocol},
                             {"name", added.name},    {"address", added.address},
                             {"port", added.port},    {"rule", added.rule},
                             {"reason", added.reason}};
    news.push_back(boost::json::serialize(data));
  }
  if (news.empty()) return;
  auto tell = [self = shared_from_this(), sandbox, news]() -> Task<void> {
    store::Write change;
    const Record& record = sandbox->record;
    for (const std::string& data : news) {
      change.events.push_back(
          self->events_.make(record.owner.tenant, record.id, "network.denied", data));
    }
    (void)co_await self->write(std::move(change));
  };
  boost::asio::co_spawn(executor_, tell, boost::asio::detached);
}

}  // namespace atl::sandbox
