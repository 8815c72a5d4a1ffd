// Copies of sandboxes' files. Nobody else would know of a copy that was given up, so none is.
#include "backends/native/native_backend.h"

namespace atl::native {

static CopyTimings timings_of(const wire::Kept& kept) {
  return {.frozen_us = kept.frozen_us, .total_us = kept.total_us, .bytes = kept.bytes};
}

std::string NativeBackend::slot_of(const std::string& session_key) const {
  auto live = live_.find(session_key);
  return live == live_.end() ? std::string() : live->second->slot();
}

Task<Result<CopyTimings>> NativeBackend::keep_state(std::string session_key, std::string state) {
  wire::KeepRequest request{
      .slot = slot_of(session_key), .sandbox = session_key, .state = std::move(state)};
  ATOLL_CO_ASSIGN(auto kept, co_await launcher_->call<wire::Kept>(request, kNoReplyLimit));
  co_return timings_of(kept);
}

Task<Result<CopyTimings>> NativeBackend::copy_state(std::string state, std::string session_key) {
  wire::CopyRequest request{
      .state = std::move(state), .slot = {}, .sandbox = {}, .copy = session_key};
  ATOLL_CO_ASSIGN(auto kept, co_await launcher_->call<wire::Kept>(request, kNoReplyLimit));
  co_return timings_of(kept);
}

Task<Result<CopyTimings>> NativeBackend::copy_files(std::string from, std::string session_key) {
  wire::CopyRequest request{
      .state = {}, .slot = slot_of(from), .sandbox = from, .copy = std::move(session_key)};
  ATOLL_CO_ASSIGN(auto kept, co_await launcher_->call<wire::Kept>(request, kNoReplyLimit));
  co_return timings_of(kept);
}

Task<Result<void>> NativeBackend::restore_state(std::string session_key, std::string state) {
  if (live_.contains(session_key)) {
    co_return fail(ErrorCode::InvalidState, "a running sandbox cannot be restored; stop it first");
  }
  wire::RestoreRequest request{.sandbox = std::move(session_key), .state = std::move(state)};
  co_return co_await launcher_->tell(std::move(request), kNoReplyLimit);
}

Task<Result<void>> NativeBackend::drop_state(std::string state) {
  wire::DropRequest request{.state = std::move(state)};
  return launcher_->tell(std::move(request));
}

Task<Result<Difference>> NativeBackend::diff_states(DiffInput input) {
  CreateInput pinned;
  pinned.existing_metadata = std::move(input.metadata);
  wire::DiffRequest request{.before = std::move(input.before),
                            .after = std::move(input.after),
                            .sandbox = std::move(input.session_key),
                            .layers = {},
                            .with_texts = input.with_texts};
  ATOLL_CO_ASSIGN(request.layers, layers_for(pinned));
  ATOLL_CO_ASSIGN(auto reply, co_await launcher_->call<wire::Difference>(request));
  Difference difference;
  difference.complete = reply.complete;
  for (wire::FileChange& change : reply.changes) {
    difference.changes.push_back({.kind = static_cast<StateChange::Kind>(change.kind),
                                  .type = static_cast<char>(change.type),
                                  .path = std::move(change.path),
                                  .size_before = change.size_before,
                                  .size_after = change.size_after,
                                  .text = std::move(change.text)});
  }
  co_return difference;
}

Task<Result<StorageInfo>> NativeBackend::storage(uint64_t grow_to) {
  auto reply = co_await launcher_->call<wire::StorageReply>(wire::StorageRequest{grow_to});
  if (!reply) co_return fail(std::move(reply).error());
  co_return StorageInfo{.bytes = reply->bytes,
                        .free_bytes = reply->free_bytes,
                        .host_free_bytes = reply->host_free_bytes,
                        .growable = reply->growable,
                        .lacking = reply->lacking};
}

}  // namespace atl::native
