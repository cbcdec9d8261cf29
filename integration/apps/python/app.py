"""A counter behind Einlass, at level L3 of the contract: Python's standard library with SQLite.

    python3 integration/apps/python/app.py --listen 127.0.0.1:3000 --db counter.db
    curl -H 'Webhook-Gate-Source: me' -H 'Webhook-Gate-Event: 1' -d '{"amount":5}' http://127.0.0.1:3000/hook
    curl http://127.0.0.1:3000/counter

The effect and one row per event are one transaction (Store.once). A known event is answered from its row, and so is
the outcome question. Kill the process whenever you like.

Whoever reaches /webhook-outcome can ask for any event, so the site in front passes on only /hook:
`reverse_proxy /hook 127.0.0.1:3000`. The last lines of this file are for the tests; leave them out.
"""

import argparse
import collections
import contextlib
import http.client
import http.server
import json
import os
import signal
import sqlite3
import sys
import threading
import time
import urllib.parse

MAX_BODY = 64 * 1024

# The rows are kept at least as long as the gate keeps its receipts.
SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL; -- a commit is on disk when it returns: what the gate is told must outlive a power failure
CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY CHECK (id = 1), total INTEGER NOT NULL);
INSERT INTO counter VALUES (1, 0) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS outcomes (
    source TEXT, event TEXT, outcome TEXT NOT NULL, status INTEGER NOT NULL, content_type TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (source, event)
);
"""


def receipt(outcome, status, content_type, body):
    """What became of an event: the row, the callback and the answer to the outcome question are all this."""
    return {"outcome": outcome, "status": status, "content_type": content_type, "body": body}


class Store:
    def __init__(self, path):
        self.path = path
        self.writer = threading.Lock()  # SQLite has one; here they queue
        self.db = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
        self.db.executescript(SCHEMA)

    def once(self, event, work):
        """Does an event's work and keeps its receipt, in one transaction; a known event only gets its receipt."""
        with self.writer, self.db:  # commits at the end, rolls back if anything fails
            self.db.execute("BEGIN IMMEDIATE")
            result = self.row(self.db, event)
            if not result:
                result = work(self.db)
                self.db.execute("INSERT INTO outcomes VALUES (?, ?, ?, ?, ?, ?)", (*event, *result.values()))
        return result

    def look_up(self, event):
        """Gives an event's receipt, or None. On a connection of its own: it does not wait for anybody's work."""
        with contextlib.closing(sqlite3.connect(self.path, timeout=5)) as db:
            return self.row(db, event)

    @staticmethod
    def row(db, event):
        query = "SELECT outcome, status, content_type, body FROM outcomes WHERE source = ? AND event = ?"
        row = db.execute(query, event).fetchone()
        return receipt(*row) if row else None


def add(db, body):
    """The work: adds the amount, or refuses the event for good."""
    if len(body) > MAX_BODY:
        return receipt("rejected", 413, "text/plain", "the event is too large")
    try:
        amount = json.loads(body)["amount"]
    except (ValueError, LookupError, TypeError, RecursionError):
        amount = None
    if type(amount) is not int or not 1 <= amount <= 1_000_000:
        return receipt("rejected", 422, "text/plain", "amount must be a number from 1 to 1000000")
    total = db.execute("UPDATE counter SET total = total + ? RETURNING total", (amount,)).fetchone()[0]
    return receipt("committed", 200, "application/json", json.dumps({"total": total}))


def confirm(url, token, result):
    """Tells the gate what became of the event, so that it knows also if the answer gets lost. Tries a few times."""
    to = urllib.parse.urlsplit(url)
    headers = {"Content-Type": "application/json", "Webhook-Gate-Token": token}
    for pause in (0, 0.1, 0.5, 2):
        time.sleep(pause)
        connection = http.client.HTTPConnection(to.netloc, timeout=2)  # without TLS: the gate is next door
        try:
            connection.request("POST", f"{to.path}?{to.query}", json.dumps(result), headers)
            answer = connection.getresponse()
            said, state = answer.status, answer.read(4096)
        except (OSError, http.client.HTTPException) as error:
            said = error
        finally:
            connection.close()
        if said == 200 and b'"state"' in state:  # another 200 is not the gate's: the URL leads elsewhere
            return
        if isinstance(said, int) and said < 500:
            break  # 409 is for a person: another receipt was stored before, or the attempt was closed for good
    print("the gate could not be told what became of an event:", said, file=sys.stderr)


class Handler(http.server.BaseHTTPRequestHandler):
    timeout = 10  # seconds for a request to arrive
    store = None
    busy, working = threading.Lock(), collections.Counter()  # how many requests work on an event

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if self.path != "/hook" or not length.isdecimal():
            return self.say(404 if self.path != "/hook" else 411)
        length = min(int(length), MAX_BODY + 1)
        body = self.rfile.read(length)
        event = (self.gate("Source"), self.gate("Event"))
        if len(body) < length or not all(event):
            return self.say(400)  # it broke off, so it is not the event; or it did not come through the gate
        self.count(event, 1)
        try:
            result = self.store.once(event, lambda db: add(db, body))
        except sqlite3.Error as error:
            self.log_error("event %s: %s", event[1], error)
            result = self.failed(event)
        finally:
            self.count(event, -1)
        if self.gate("Confirm") and result["outcome"]:
            # Never in the way: the answer waits a second for it at most.
            telling = threading.Thread(target=confirm, args=(self.gate("Confirm"), self.gate("Token"), result))
            telling.start()
            telling.join(1)
        self.answer(result)

    def failed(self, event):
        """After a failure of any kind only the row tells what became of the event. Without a look nothing is said."""
        try:
            return self.store.look_up(event) or receipt("aborted", 503, "text/plain", "try again")
        except sqlite3.Error:
            return receipt("", 503, "text/plain", "try again")

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/webhook-outcome":
            return self.outcome(dict(urllib.parse.parse_qsl(url.query)))
        if url.path == "/counter":
            with contextlib.closing(sqlite3.connect(self.store.path)) as db:
                return self.say(200, str(db.execute("SELECT total FROM counter").fetchone()[0]))
        self.say(404)

    def outcome(self, query):
        """Answers the outcome question. 404 is "I know nothing of it": mind that a wrong path says the same."""
        event = (query.get("source"), query.get("event"))
        working = self.count(event, 0)  # asked before the look at the row: what ends in between is in the row
        try:
            result = self.store.look_up(event)
        except sqlite3.Error:
            return self.say(503)
        if result:
            return self.say(200, json.dumps(result), "application/json")
        self.say(202 if working else 404)

    def count(self, event, by):
        with self.busy:
            self.working[event] += by
            return self.working[event] or self.working.pop(event)

    def gate(self, name):
        """One of the gate's headers; what is not ASCII in an event id is UTF-8, which Python reads as Latin-1."""
        return self.headers.get("Webhook-Gate-" + name, "").encode("latin-1").decode("utf-8", "replace")

    def answer(self, result):
        self.say(result["status"], result["body"], result["content_type"], result["outcome"])

    def say(self, status, body="", content_type="text/plain", outcome=""):
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        if outcome:
            self.send_header("Webhook-Gate-Outcome", outcome)
        self.end_headers()
        self.wfile.write(data)

    def log_request(self, *_):
        pass


def main():
    options = argparse.ArgumentParser(description="a counter behind Einlass")
    options.add_argument("--listen", default="127.0.0.1:3000", help="address; only the gate should reach it")
    options.add_argument("--db", default="counter.db", help="SQLite file")
    options = options.parse_args()
    Handler.store = Store(options.db)
    host, port = options.listen.rsplit(":", 1)
    http.server.ThreadingHTTPServer.request_queue_size = 128
    server = http.server.ThreadingHTTPServer((host, int(port)), Handler)
    print("listening on %s:%d" % server.server_address[:2], flush=True)
    server.serve_forever()


# For the tests only: CRASH_AT=before_commit|after_commit|after_callback|before_answer ends the process there.
if os.environ.get("CRASH_AT"):

    def crash(point):
        if os.environ["CRASH_AT"] == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def passing(function, before, after):
        def passes(*args):
            crash(before)
            result = function(*args)
            crash(after)
            return result

        return passes

    def open_store(store, path, opens=Store.__init__):
        opens(store, path)
        store.db.set_trace_callback(lambda sql: crash("before_commit") if sql == "COMMIT" else None)

    Store.__init__ = open_store
    Store.once = passing(Store.once, "", "after_commit")
    confirm = passing(confirm, "", "after_callback")
    Handler.answer = passing(Handler.answer, "before_answer", "")

if __name__ == "__main__":
    main()
