#include "backends/native/native_backend.h"

#include <algorithm>

#include "base/random_id.h"
#include "image/template.h"

namespace atl::native {

static wire::Configure configuration(const CreateInput& input) {
  wire::Configure request;
  request.sandbox_id = input.session_key;
  request.profile = input.profile;
  request.workdir = input.workdir.empty() ? "/workspace" : input.workdir;
  request.default_user = input.default_user;
  request.awaited = input.awaited;
  for (const auto& [name, value] : input.env) request.env.push_back(name + "=" + value);
  return request;
}

static constexpr const char* kLayers = "layers";

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ",") + name;
  return all;
}

std::vector<std::string> layers_in(const std::map<std::string, std::string>& metadata) {
  std::vector<std::string> names;
  auto found = metadata.find(kLayers);
  std::string_view text = found == metadata.end() ? std::string_view() : found->second;
  while (!text.empty()) {
    size_t comma = std::min(text.find(','), text.size());
    names.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return names;
}

NativeBackend::NativeBackend(boost::asio::any_io_executor executor,
                             std::shared_ptr<LauncherClient> launcher, NativeOptions options)
    : executor_(std::move(executor)),
      launcher_(std::move(launcher)),
      options_(std::move(options)),
      templates_(options_.data_dir + "/templates"),
      importer_(executor_, launcher_, options_.data_dir) {
  launcher_->on_ended([this](const wire::Ended& ended) { slot_ended(ended); });
}

Task<Result<void>> NativeBackend::start() {
  wire::StatusRequest request;
  for (bool more = true; more;) {
    auto status = co_await launcher_->call<wire::Status>(request);
    if (!status) co_return fail(std::move(status).error().context("asking the launcher"));
    for (const wire::LiveSlot& slot : status->slots) found_slots_.insert(slot.slot);
    auto take = [&request](std::vector<std::string>& from, std::vector<std::string>& into) {
      request.from += static_cast<uint32_t>(from.size());
      into.insert(into.end(), from.begin(), from.end());
    };
    take(status->sandboxes, found_sandboxes_);
    take(status->states, found_states_);
    take(status->images, found_images_);
    degraded_ = std::move(status->degraded);
    more = status->more;
  }
  co_return Result<void>();
}

Task<Result<void>> NativeBackend::reserve(uint32_t slots) {
  return launcher_->tell(wire::ReserveRequest{.slots = slots});
}

Result<FoundTemplate> NativeBackend::find_template(const std::string& reference) {
  ATOLL_ASSIGN(image::Template manifest,
               templates_.find(reference.empty() ? options_.default_template : reference));
  FoundTemplate found{.key = manifest.key(), .contents = {}, .settings = {}};
  for (const std::string& layer : manifest.layers) found.contents += layer + " ";
  found.settings = std::move(manifest.defaults);
  return found;
}

Result<std::vector<std::string>> NativeBackend::layers_of(const std::string& template_key) {
  const std::string& key = template_key.empty() ? options_.default_template : template_key;
  ATOLL_ASSIGN(image::Template manifest, templates_.find(key));
  // Manifests list layers from the bottom up, overlayfs from the top down.
  return std::vector<std::string>(manifest.layers.rbegin(), manifest.layers.rend());
}

// A sandbox stays on the layers it was made on, whatever becomes of its template's name.
Result<std::vector<std::string>> NativeBackend::layers_for(const CreateInput& input) {
  auto known = layers_in(input.existing_metadata);
  if (!known.empty()) return known;
  return layers_of(input.template_key);
}

std::string NativeBackend::socket_of(const std::string& slot) const {
  return options_.run_dir + "/agents/" + slot + ".sock";
}

Task<Result<std::shared_ptr<SandboxHandle>>> NativeBackend::create(CreateInput input) {
  if (!is_valid_id(input.session_key)) {
    co_return fail(Error(ErrorCode::InvalidArgument, "a session key is 1 to 64 of a-z, 0-9 and '-'")
                       .with_field("sessionKey"));
  }
  std::string key = input.session_key;
  auto turn = co_await under_way_.take(key);
  if (auto live = live_.find(key); live != live_.end()) co_return live->second;
  auto slot = input.existing_metadata.find("slot");
  bool found = slot != input.existing_metadata.end() && found_slots_.contains(slot->second);
  if (input.reattach_only && !found) {
    co_return fail(ErrorCode::NotFound, "sandbox " + key + " is not running any more");
  }
  auto handle = found ? co_await reattach(input, slot->second) : co_await build(std::move(input));
  if (!handle) co_return fail(std::move(handle).error());
  live_[key] = *handle;
  co_return std::move(*handle);
}

Task<Result<NativeBackend::HandlePtr>> NativeBackend::reattach(const CreateInput& input,
                                                               const std::string& slot) {
  auto session =
      std::make_unique<NativeSession>(executor_, input.session_key, socket_of(slot), nullptr);
  // All told again: the server may have died between doing a thing and recording it, or before it
  // had told the agent the first time. Limits that cannot be set are no reason to end it.
  wire::LimitsRequest limits{.slot = slot, .sandbox = input.session_key, .limits = input.limits};
  (void)co_await launcher_->tell(std::move(limits));
  wire::FreezeRequest freeze{.slot = slot, .frozen = input.frozen};
  ATOLL_CO_TRY(co_await launcher_->tell(std::move(freeze)));
  if (!input.keep_settings) session->assign(configuration(input));
  // A frozen agent cannot answer; it is greeted when it is thawed.
  if (!input.frozen) ATOLL_CO_TRY(co_await session->control());
  found_slots_.erase(slot);
  Place place{slot, {}};
  auto layers = input.existing_metadata.find(kLayers);
  if (layers != input.existing_metadata.end()) place.layers = layers->second;
  co_return std::make_shared<NativeHandle>(*this, std::move(place), std::move(session),
                                           BuildTimings{});
}

Result<wire::BuildRequest> NativeBackend::build_request(const CreateInput& input) {
  wire::BuildRequest request;
  ATOLL_ASSIGN(request.layers, layers_for(input));
  request.sandbox = input.session_key;
  request.limits = input.limits;
  request.ephemeral = input.ephemeral;
  request.existing = input.existing;
  request.gate = input.gate;
  return request;
}

NativeBackend::HandlePtr NativeBackend::handle_of(const wire::Built& built,
                                                  const CreateInput& input, std::string layers) {
  auto session =
      std::make_unique<NativeSession>(executor_, input.session_key, socket_of(built.slot), nullptr);
  session->assign(configuration(input));
  BuildTimings timings{.total_us = built.total_us,
                       .overlay_us = built.overlay_us,
                       .attach_us = built.attach_us,
                       .slot_was_ready = built.slot_was_ready};
  return std::make_shared<NativeHandle>(*this, Place{built.slot, std::move(layers)},
                                        std::move(session), timings, input.gate);
}

Task<Result<NativeBackend::HandlePtr>> NativeBackend::build(CreateInput input) {
  ATOLL_CO_ASSIGN(wire::BuildRequest request, build_request(input));
  std::string layers = joined(request.layers);
  // Not to be given up: nobody else would know of the sandbox that comes of it in the end.
  auto built = co_await launcher_->call<wire::Built>(std::move(request), kNoReplyLimit);
  if (!built) co_return fail(std::move(built).error());
  co_return handle_of(*built, input, std::move(layers));
}

Task<Result<void>> NativeBackend::discard(std::string session_key) {
  wire::DiscardRequest request{.sandbox = std::move(session_key)};
  return launcher_->tell(std::move(request));
}

Task<Result<void>> NativeBackend::reclaim(Known known) {
  for (const std::string& slot : std::exchange(found_slots_, {})) {
    wire::DestroyRequest request{.slot = slot, .sandbox = ""};
    ATOLL_CO_TRY(co_await launcher_->tell(std::move(request)));
  }
  for (const std::string& sandbox : std::exchange(found_sandboxes_, {})) {
    if (known.sandbox(sandbox)) continue;
    ATOLL_CO_TRY(co_await discard(sandbox));
  }
  // Older versions, too: what they stand on is wanted for as long as they are.
  std::set<std::string> layers;
  ATOLL_CO_ASSIGN(auto templates, image::list_template_versions(options_.data_dir + "/templates"));
  for (const image::Template& found : templates)
    layers.insert(found.layers.begin(), found.layers.end());
  for (const std::string& state : std::exchange(found_states_, {})) {
    if (known.state(state) || layers.contains(state)) continue;
    ATOLL_CO_TRY(co_await drop_state(state));
  }
  for (const std::string& image : std::exchange(found_images_, {})) {
    if (known.memory && known.memory(image)) continue;
    ATOLL_CO_TRY(co_await forget_memory(image));
  }
  co_return Result<void>();
}

void NativeBackend::slot_ended(const wire::Ended& ended) {
  for (const auto& [key, handle] : live_) {
    if (handle->slot() != ended.slot) continue;
    EndedSandbox report{.session_key = key, .out_of_memory = ended.oom};
    forget(key);
    if (ended_) ended_(report);
    return;
  }
}

void NativeBackend::forget(const std::string& session_key) {
  auto it = live_.find(session_key);
  if (it == live_.end()) return;
  it->second->native_session().close();
  live_.erase(it);
}

SessionState NativeHandle::capture_state() const {
  return {.backend_name = backend_.name(),
          .session_key = session_->id(),
          .metadata = {{"slot", place_.slot}, {kLayers, place_.layers}}};
}

Task<Result<void>> NativeHandle::ready() {
  ATOLL_CO_TRY(co_await session_->control());
  co_return Result<void>();
}

void NativeHandle::assign(CreateInput input) {
  input.session_key = session_->id();
  session_->assign(configuration(input));
}

Task<Result<void>> NativeHandle::set_limits(Limits limits) {
  wire::LimitsRequest request{.slot = place_.slot, .sandbox = session_->id(), .limits = limits};
  return backend_.launcher_->tell(std::move(request));
}

Task<Result<void>> NativeHandle::set_frozen(bool frozen) {
  wire::FreezeRequest request{.slot = place_.slot, .frozen = frozen};
  return backend_.launcher_->tell(std::move(request));
}

Task<Result<HostUsage>> NativeHandle::usage() {
  wire::UsageRequest request{.slot = place_.slot, .sandbox = session_->id()};
  auto reply = co_await backend_.launcher_->call<wire::UsageReply>(request);
  if (!reply) co_return fail(std::move(reply).error());
  HostUsage usage{reply->usage, reply->cache_bytes, reply->disk_bytes};
  co_return usage;
}

Task<Result<void>> NativeHandle::dispose() {
  wire::StopRequest request{.slot = place_.slot};
  backend_.forget(session_->id());
  return backend_.launcher_->tell(std::move(request));
}

Task<Result<void>> NativeHandle::destroy() {
  wire::DestroyRequest request{.slot = place_.slot, .sandbox = session_->id()};
  backend_.forget(session_->id());
  return backend_.launcher_->tell(std::move(request));
}

}  // namespace atl::native
