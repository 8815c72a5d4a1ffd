// Watches whose events are fetched: each gathers in the background until somebody asks.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "api/context.h"
#include "atoll/sandbox_session.h"

namespace atl::api::e2b {

// A watch's events as clients expect them. They take a file that was moved to a name for a new one,
// and know nothing of the temporary names under which files are written here.
class EventTranslator {
 public:
  EventTranslator(std::shared_ptr<SandboxSession> session, std::string base)
      : session_(std::move(session)), base_(std::move(base)) {}
  // {"name":"a.txt","type":"EVENT_TYPE_CREATE"}, any number of them.
  Task<std::vector<std::string>> translate(FileEvent event);

 private:
  std::string event_json(std::string_view path, std::string_view type) const;

  std::shared_ptr<SandboxSession> session_;
  std::string base_;
  bool replacing_ = false;  // a temporary name was given up: the next name has the file
};
// Is this a name that stands only while a file is being written?
bool is_temporary(std::string_view path);

class Watches : public std::enable_shared_from_this<Watches> {
 public:
  // A watcher of a sandbox; at most so many at a time.
  static constexpr size_t kMostPerSandbox = 64;
  Task<Result<std::string>> add(const Target& target, std::unique_ptr<FileWatcher> watcher,
                                std::string base);
  // What has happened since it was last asked, as a JSON array; NotFound where there is no such.
  Result<std::string> take(const std::string& sandbox, const std::string& id);
  void remove(const std::string& sandbox, const std::string& id);

 private:
  struct Watch {
    std::string sandbox;
    EventTranslator translator;
    std::unique_ptr<FileWatcher> watcher;
    std::string events;  // JSON, comma-separated
    size_t count = 0;
  };
  Task<void> gather(std::string id, std::shared_ptr<Watch> watch);
  std::shared_ptr<Watch> find(const std::string& sandbox, const std::string& id) const;

  std::map<std::string, std::shared_ptr<Watch>> watches_;
};

}  // namespace atl::api::e2b
