#!/usr/bin/env python3
"""PostgreSQL at work in a sandbox that is kept, copied and returned to: whatever comes of it starts and is whole."""

import os
import pathlib
import sys

import fixture
from fixture import AtollCase, Box, cli, http as request, unique, wait_until

POSTGRES = pathlib.Path(os.environ.get("ATOLL_CACHE", "/var/cache/atoll"), "postgres")
BIN = "/usr/lib/postgresql/15/bin"
DATA = "/workspace/db"

# Transfers between rows: their sum is the same in every state that a transaction has left.
WORK = """
create table account (id int primary key, amount int not null);
insert into account select i, 100 from generate_series(1, 100) i;
create table log (id bigserial primary key, at timestamptz default now());
create procedure work() language plpgsql as $$
declare giver int; taker int;
begin
  loop
    giver := 1 + floor(random() * 50);
    taker := 51 + floor(random() * 50);
    update account set amount = amount - 1 where id = giver;
    update account set amount = amount + 1 where id = taker;
    insert into log default values;
    commit;
  end loop;
end $$;
"""


class Databases(AtollCase):
    def sh(self, box, script):
        done = box.exec("/bin/sh", "-c", f"PATH={BIN}:$PATH; export LC_ALL=C.UTF-8; {script}", user="user")
        self.assertEqual(done["exitCode"], 0, done)
        return done["stdout"]

    def sql(self, box, text):
        return self.sh(box, f"psql -h /tmp -At -v ON_ERROR_STOP=1 postgres <<'END'\n{text}\nEND").strip()

    def start(self, box):
        """After a crash, as a copy sees it: the server replays its log first."""
        self.sh(box, f"rm -f {DATA}/postmaster.pid; pg_ctl -D {DATA} -w -t 60 -o '-k /tmp -c listen_addresses= "
                     f"-c unix_socket_directories=/tmp' -l {DATA}/log start >/dev/null")

    def check(self, box):
        """How many transactions it has."""
        self.start(box)
        self.assertEqual(self.sql(box, "select sum(amount) from account"), "10000")
        gaps = "select count(*) from (select id, lag(id) over (order by id) l from log) x where id - l > 1"
        self.assertEqual(self.sql(box, gaps), "0", "no transaction is missing between others")
        self.sh(box, "pg_amcheck -h /tmp --install-missing --heapallindexed postgres")
        return int(self.sql(box, "select count(*) from log"))

    def test_postgresql(self):
        name = unique("pg")
        cli("create", "--name", name, "--memory", "1g")
        box = Box(request("GET", f"/v1/sandboxes/{name}").json["id"])
        for folder in ("usr/lib", "usr/share/postgresql"):
            cli("cp", str(POSTGRES / folder), f"{name}:/{folder.rpartition('/')[0]}")
        self.sh(box, f"initdb -D {DATA} --no-sync >/dev/null")
        self.start(box)
        self.sql(box, WORK)
        box.spawn("/bin/sh", "-c", f"{BIN}/psql -h /tmp postgres -c 'call work()'", user="user")
        done = lambda: int(self.sql(box, "select count(*) from log"))  # noqa: E731
        wait_until(lambda: done() > 100, 30, "transactions are made")
        kept, seen = [], 0
        for _ in range(5):
            before = done()
            kept.append(request("POST", box.path("/snapshots"), {}).json["snapshotId"])
            copy = Box(request("POST", "/v1/sandboxes", {"fromSnapshot": kept[-1]}).json["id"])
            fork = Box(request("POST", box.path("/fork"), {}).json["sandbox"]["id"])
            for other in (copy, fork):
                has = self.check(other)
                self.assertGreaterEqual(has, before, "what was committed before is there")
            seen = before
            for other in (copy, fork):
                request("DELETE", other.path(""))
            wait_until(lambda count=seen: done() > count, 30, "it goes on")
        self.assertEqual(request("POST", box.path("/restore"), {"snapshotId": kept[0]}).status, 200)
        self.assertLessEqual(self.check(box), seen)


if __name__ == "__main__":
    if not POSTGRES.is_dir():
        print(f"skipped: {POSTGRES} is missing (./dev setup)")
        sys.exit(77)
    fixture.main()
