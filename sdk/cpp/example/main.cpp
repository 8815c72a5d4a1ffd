// Makes a sandbox, runs a command in it, keeps its state, and makes another from that.
#include <atoll/client.h>

#include <cstdio>

static atl::Result<int> show() {
  ATOLL_ASSIGN(atl::Client client,
               atl::Client::connect());  // ATOLL_URL, ATOLL_API_KEY or ATOLL_SOCKET
  atl::CreateRequest request;
  request.env["WHO"] = "sandbox";
  ATOLL_ASSIGN(atl::Sandbox sandbox, client.create(request));
  ATOLL_TRY(client.write_file(sandbox.id, "/workspace/note", "kept\n"));
  atl::ExecRequest exec;
  exec.argv = {"/bin/sh", "-c", "echo hello from $WHO; cat note"};
  ATOLL_ASSIGN(atl::ExecResult result, client.exec(sandbox.id, exec));
  fputs(result.stdout_data.c_str(), stdout);
  ATOLL_ASSIGN(atl::SnapshotInfo snapshot, client.snapshot(sandbox.id));
  atl::CreateRequest from_it;
  from_it.from_snapshot = snapshot.id;
  ATOLL_ASSIGN(atl::Sandbox copy, client.create(from_it));
  ATOLL_ASSIGN(std::string note, client.read_file(copy.id, "/workspace/note"));
  fputs(note.c_str(), stdout);
  for (const std::string& id : {sandbox.id, copy.id}) ATOLL_TRY(client.remove(id));
  ATOLL_TRY(client.remove_snapshot(snapshot.id));
  return result.exit_code;
}

int main() {
  atl::Result<int> code = show();
  if (code) return *code;
  fprintf(stderr, "%s\n", code.error().message().c_str());
  return 1;
}
