// Ways into sandboxes' ports.
#include <boost/json.hpp>

#include "client/client_impl.h"
#include "client/decode.h"
#include "http/blocking_socket.h"
#include "http/target.h"

namespace atl {
namespace {

namespace json = boost::json;
using client::member;
using client::number_of;
using client::parse_answer;
using client::runtime_target;
using client::text_of;

PreviewInfo to_preview(const json::value& value) {
  PreviewInfo info;
  info.id = text_of(value, "previewId");
  info.sandbox = text_of(value, "sandboxId");
  info.port = static_cast<uint16_t>(number_of(value, "port"));
  info.access = text_of(value, "access");
  info.status = text_of(value, "status");
  info.url = text_of(value, "url");
  info.expires_at = text_of(value, "expiresAt");
  info.json = json::serialize(value);
  return info;
}

}  // namespace

struct PortConnection::State {
  std::unique_ptr<http::BlockingSocket> socket;
  std::string ahead;
};

PortConnection::PortConnection(std::unique_ptr<State> state) : state_(std::move(state)) {}
PortConnection::PortConnection(PortConnection&&) noexcept = default;
PortConnection& PortConnection::operator=(PortConnection&&) noexcept = default;
PortConnection::~PortConnection() = default;

static size_t take(std::string& ahead, std::span<char> into) {
  size_t size = ahead.copy(into.data(), into.size());
  ahead.erase(0, size);
  return size;
}

Result<size_t> PortConnection::read(std::span<char> into) {
  if (!state_->ahead.empty()) return take(state_->ahead, into);
  return state_->socket->read(into);
}

Result<void> PortConnection::write(std::string_view bytes) {
  return state_->socket->write({bytes});
}

Result<std::optional<size_t>> PortConnection::try_read(std::span<char> into) {
  if (!state_->ahead.empty()) return std::optional<size_t>(take(state_->ahead, into));
  return state_->socket->try_read(into);
}

Result<size_t> PortConnection::try_write(std::string_view bytes) {
  http::WriteParts parts{bytes};
  ATOLL_TRY(state_->socket->try_write(parts));
  return bytes.size() - parts[0].size();
}

void PortConnection::end_writing() { state_->socket->end_writing(); }
int PortConnection::fd() const { return state_->socket->fd(); }
bool PortConnection::pending() const {
  return !state_->ahead.empty() || state_->socket->has_buffered();
}

Result<PreviewInfo> Client::open_port(std::string_view sandbox, const PreviewRequest& request) {
  json::object body{{"port", request.port}};
  if (!request.access.empty()) body["access"] = request.access;
  if (request.lifetime) body["expiresInSeconds"] = request.lifetime->count();
  ATOLL_ASSIGN(std::string answer,
               impl_->call(impl_->quick, "POST", runtime_target(sandbox, "/preview-links"),
                           json::serialize(body)));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return to_preview(member(value, "previewLink"));
}

Result<std::vector<PreviewInfo>> Client::preview_links(std::string_view sandbox) {
  ATOLL_ASSIGN(std::string answer,
               impl_->call(impl_->quick, "GET", runtime_target(sandbox, "/preview-links"), {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return client::list_of(member(value, "previewLinks"), to_preview);
}

Result<void> Client::remove_preview_link(std::string_view sandbox, std::string_view id) {
  std::string target = runtime_target(sandbox, "/preview-links/") + http::percent_encode(id);
  ATOLL_TRY(impl_->call(impl_->quick, "DELETE", target, {}));
  return {};
}

Result<PortConnection> Client::connect_port(std::string_view sandbox, uint16_t port) {
  std::string target = runtime_target(sandbox, "/ports/" + std::to_string(port) + "/tcp");
  ATOLL_ASSIGN(auto upgraded, impl_->quick.upgrade(target, impl_->headers, "tcp"));
  upgraded.socket->set_timeout(std::chrono::milliseconds(0));
  auto state = std::make_unique<PortConnection::State>();
  state->socket = std::move(upgraded.socket);
  state->ahead = std::move(upgraded.read_ahead);
  return PortConnection(std::move(state));
}

}  // namespace atl
