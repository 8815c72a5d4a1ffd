#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "atoll/task.h"
#include "base/result.h"

namespace atl::http {

// The body of the request being handled. Valid until the handler returns; one read at a time.
// A client that goes away half way makes a read fail with Unavailable, a silent one with Timeout.
class BodyReader {
 public:
  virtual ~BodyReader() = default;

  // Reads what is there, at least one byte, straight into `into`; 0 is the end of the body.
  virtual Task<Result<size_t>> read(std::span<char> into) = 0;
  // The length the client announced; none for a chunked body.
  virtual std::optional<uint64_t> content_length() const = 0;

  // The whole rest of the body, or TooLarge once it exceeds `limit`. Counts against the server's
  // memory budget, and fails with ResourceExhausted where that is spent.
  Task<Result<std::string>> read_all(size_t limit);

  virtual std::optional<uint64_t> remaining() const = 0;
  virtual Task<Result<void>> wait_readable() = 0;

 protected:
  virtual Result<void> take_memory(size_t) { return {}; }
};

// A body that is already in memory: for requests without a connection, such as in tests.
class StringBody final : public BodyReader {
 public:
  explicit StringBody(std::string data) : data_(std::move(data)) {}

  Task<Result<size_t>> read(std::span<char> into) override;
  std::optional<uint64_t> content_length() const override { return data_.size(); }
  std::optional<uint64_t> remaining() const override { return data_.size() - position_; }
  Task<Result<void>> wait_readable() override;

 private:
  std::string data_;
  size_t position_ = 0;
};

}  // namespace atl::http
