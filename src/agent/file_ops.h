// The operations behind FileRequest. Each sends its own replies and data on the channel; a
// returned error becomes the request's Failure.
#pragma once

#include "agent/file_channel.h"

namespace atl::agent {

// Paths in requests are absolute by the time they get here.
Result<void> file_stat(FileChannel& channel, const wire::FileRequest& request);
Result<void> file_list(FileChannel& channel, const wire::FileRequest& request);
Result<void> file_read(FileChannel& channel, const wire::FileRequest& request);
Result<void> file_write(FileChannel& channel, const wire::FileRequest& request);
Result<void> file_mkdir(FileChannel& channel, const wire::FileRequest& request);
Result<void> file_move(FileChannel& channel, const wire::FileRequest& request);
Result<void> file_remove(FileChannel& channel, const wire::FileRequest& request);
Result<void> file_search(FileChannel& channel, const wire::FileRequest& request);
Result<void> file_watch(FileChannel& channel, const wire::FileRequest& request);
Result<void> tree_read(FileChannel& channel, const wire::FileRequest& request);
Result<void> tree_write(FileChannel& channel, const wire::FileRequest& request);

// Shared pieces.
FileEntry make_entry(const std::string& path, const struct stat& info);
Result<void> make_parents(const std::string& path);
Result<void> make_directories(const std::string& path, uint32_t mode);
Result<void> remove_tree(int parent, const char* name);
std::string parent_of(const std::string& path);
std::string base_name(const std::string& path);
// What a file is called while it is being written beside its place.
std::string unfinished_name();
bool is_unfinished(std::string_view name);

}  // namespace atl::agent
