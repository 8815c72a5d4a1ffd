#include "http/body.h"

#include <algorithm>
#include <cstring>

namespace atl::http {

Task<Result<std::string>> BodyReader::read_all(size_t limit) {
  constexpr size_t kStep = 64 * 1024;
  std::optional<uint64_t> announced = remaining();
  if (announced && *announced > limit) {
    co_return fail(ErrorCode::TooLarge,
                   "request body is larger than " + std::to_string(limit) + " bytes");
  }
  std::string all;
  size_t used = 0;
  while (true) {
    // An announced length is believed as far as bytes have come: announcing costs a client nothing.
    size_t room = std::clamp(used, kStep, 16 * kStep);
    if (announced) room = std::clamp<size_t>(*announced - used, 1, room);
    if (used + room > all.size()) ATOLL_CO_TRY(take_memory(used + room - all.size()));
    all.resize(used + room);
    ATOLL_CO_ASSIGN(size_t got, co_await read(std::span(all).subspan(used)));
    used += got;
    if (got == 0) break;
    if (used > limit) {
      co_return fail(ErrorCode::TooLarge,
                     "request body is larger than " + std::to_string(limit) + " bytes");
    }
  }
  all.resize(used);
  co_return all;
}

Task<Result<size_t>> StringBody::read(std::span<char> into) {
  size_t count = std::min(into.size(), data_.size() - position_);
  std::memcpy(into.data(), data_.data() + position_, count);
  position_ += count;
  co_return count;
}

Task<Result<void>> StringBody::wait_readable() { co_return Result<void>(); }

}  // namespace atl::http
