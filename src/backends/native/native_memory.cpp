// Kept processes. As with files, nothing that is under way is given up.
#include <algorithm>

#include "backends/native/native_backend.h"

namespace atl::native {

Task<Result<CopyTimings>> NativeBackend::keep_memory(MemoryInput input) {
  std::string slot = slot_of(input.session_key);
  if (slot.empty()) co_return fail(ErrorCode::InvalidState, "the sandbox is not running");
  wire::CheckpointRequest request{.slot = slot,
                                  .sandbox = input.session_key,
                                  .image = std::move(input.image),
                                  .state = std::move(input.state),
                                  .end = input.end,
                                  .durable = input.durable};
  auto kept = co_await launcher_->call<wire::Kept>(std::move(request), kNoReplyLimit);
  if (!kept) co_return fail(std::move(kept).error());
  if (input.end) forget(input.session_key);
  co_return CopyTimings{
      .frozen_us = kept->frozen_us, .total_us = kept->total_us, .bytes = kept->bytes};
}

Task<Result<std::shared_ptr<SandboxHandle>>> NativeBackend::revive(CreateInput input,
                                                                   std::string image) {
  std::string key = input.session_key;
  input.gate = false;  // it is revived without one
  auto turn = co_await under_way_.take(key);
  if (live_.contains(key)) co_return fail(ErrorCode::InvalidState, "the sandbox runs already");
  wire::ReviveRequest request{.image = std::move(image), .sandbox = {}};
  ATOLL_CO_ASSIGN(request.sandbox, build_request(input));
  std::string layers = joined(request.sandbox.layers);
  auto built = co_await launcher_->call<wire::Built>(std::move(request), kNoReplyLimit);
  if (!built) co_return fail(std::move(built).error());
  HandlePtr handle = handle_of(*built, input, std::move(layers));
  live_[key] = handle;
  co_return std::shared_ptr<SandboxHandle>(std::move(handle));
}

bool NativeBackend::has_memory(const std::string& image) const {
  return std::find(found_images_.begin(), found_images_.end(), image) != found_images_.end();
}

Task<Result<void>> NativeBackend::forget_memory(std::string image) {
  wire::ForgetRequest request{.image = std::move(image)};
  return launcher_->tell(std::move(request), kNoReplyLimit);
}

Task<Result<MemorySupport>> NativeBackend::memory_support() {
  auto answer = co_await launcher_->call<wire::Criu>(wire::CriuRequest{});
  if (!answer) co_return fail(std::move(answer).error());
  co_return MemorySupport{
      .available = answer->available, .version = answer->version, .reason = answer->reason};
}

}  // namespace atl::native
