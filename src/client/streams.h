#pragma once

#include "atoll/client.h"
#include "http/client.h"
#include "http/client_websocket.h"

namespace atl {

struct Attachment::State {
  explicit State(http::ClientWebSocket connected) : socket(std::move(connected)) {}
  http::ClientWebSocket socket;
};

struct OutputReader::State {
  explicit State(http::ResponseStream opened) : response(std::move(opened)) {}
  http::ResponseStream response;
};

struct LogReader::State {
  explicit State(http::ResponseStream opened) : response(std::move(opened)) {}
  http::ResponseStream response;
};

struct WatchReader::State {
  explicit State(http::ResponseStream opened) : response(std::move(opened)) {}
  http::ResponseStream response;
};

struct EventReader::State {
  State(http::ResponseStream opened, std::string from)
      : response(std::move(opened)), position(std::move(from)) {}
  http::ResponseStream response;
  std::string position;
};

}  // namespace atl
