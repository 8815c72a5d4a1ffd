// One client of one process: its output from a chosen offset on, its input, its terminal size.
#pragma once

#include "agent/connection.h"
#include "agent/process.h"

namespace atl::agent {

class Agent;

class Attachment : public Connection, public ProcessObserver {
 public:
  Attachment(Agent& agent, UniqueFd fd, wire::FrameBuffer pending, std::shared_ptr<Process> process,
             const wire::AttachRequest& request);
  ~Attachment() override;

  void on_output() override { pump(); }
  void on_exit() override { pump(); }
  void on_input_taken() override;
  uint64_t backlog() const override;

 protected:
  void on_frame(const wire::Frame& frame) override;
  void on_closed() override;
  void on_drained() override;

 private:
  struct Cursor {
    Stream stream;
    bool wanted;
    uint64_t offset;
    uint64_t stop;  // where a snapshot without follow ends
  };
  void pump();
  bool pump_stream(Cursor& cursor, const OutputLog& log);
  bool finish_frame();
  const OutputLog& log_of(const Cursor& cursor) const;
  bool caught_up(const Cursor& cursor, const OutputLog& log) const;
  void write_input(std::string_view bytes);
  void flush_input();
  void end_input();
  void watch_input(int fd);
  void unwatch_input();
  void finish_if_done();

  class InputWatcher : public Watcher {
   public:
    explicit InputWatcher(Attachment& owner) : owner_(owner) {}
    void on_ready(uint32_t) override { owner_.flush_input(); }

   private:
    Attachment& owner_;
  };

  Agent& agent_;
  std::shared_ptr<Process> process_;
  Cursor cursors_[2];
  Cursor* in_frame_ = nullptr;  // whose frame is half sent
  size_t frame_left_ = 0;
  bool follow_;
  bool finished_ = false;
  std::string input_;
  bool input_end_ = false;
  bool input_taken_ = false;
  int watched_input_ = -1;
  InputWatcher input_watcher_;
};

}  // namespace atl::agent
